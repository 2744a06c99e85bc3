/**
 * What an operator sets for every report: the mapping of criteria, and the name and logo on it.
 * Files are read once, at the start, so that what is wrong with them stops the start.
 */
import { readFileSync, statSync } from "node:fs"
import { Effect, Result, Schema } from "effect"
import { sha256Hex } from "../../domain/Identifiers.ts"
import { type CriteriaMapping, parseMapping } from "./Criteria.ts"
import { defaultMapping } from "./DefaultMapping.ts"

/** A picture as a data URI may hold it. */
export interface Logo {
  readonly mediaType: "image/png" | "image/jpeg"
  readonly bytes: Buffer
}

export interface ReportSettings {
  readonly mapping: CriteriaMapping
  /** Whose report it is; undefined: only the service is named. */
  readonly organisation: string | undefined
  readonly logo: Logo | undefined
}

export const defaultReportSettings: ReportSettings = {
  mapping: defaultMapping,
  organisation: undefined,
  logo: undefined
}

/** SHA-256 over the settings. */
export const fingerprintOf = ({ logo, mapping, organisation }: ReportSettings): string =>
  sha256Hex(JSON.stringify([mapping, organisation ?? null, logo?.bytes.toString("base64")]))

/** Bytes of the file with the mapping. */
const MAPPING_BYTES_MAX = 1_048_576
/** Bytes of the logo: it is in every report. */
export const LOGO_BYTES_MAX = 512 * 1_024

/** A file that a setting names can't be used; `message` names the setting and the file. */
export class ReportFileUnusable extends Schema.TaggedError<ReportFileUnusable>()(
  "ReportFileUnusable",
  { message: Schema.String }
) {}

const reasonOf = (cause: unknown): string => {
  const { code, message } = cause as { readonly code?: string; readonly message?: string }
  if (code === "ENOENT") return "is not there"
  if (code === "EACCES" || code === "EPERM") return "may not be read by this user"
  return `can't be read: ${message}`
}

const readLimited = (path: string, bytesMax: number): Result.Result<Buffer, string> => {
  try {
    const { size } = statSync(path)
    if (size > bytesMax) return Result.fail(`has ${size} bytes; at most ${bytesMax} are allowed`)
    return Result.succeed(readFileSync(path))
  } catch (cause) {
    return Result.fail(reasonOf(cause))
  }
}

const mappingOf = (bytes: Buffer) => parseMapping(bytes.toString("utf8"))

const startsWith = (bytes: Buffer, ...start: ReadonlyArray<number>): boolean =>
  start.every((byte, index) => bytes[index] === byte)

/** PNG and JPEG by their first bytes. SVG is refused: it is a program as much as a picture. */
const logoOf = (bytes: Buffer): Result.Result<Logo, string> => {
  if (startsWith(bytes, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) {
    return Result.succeed({ mediaType: "image/png", bytes })
  }
  if (startsWith(bytes, 0xff, 0xd8, 0xff)) return Result.succeed({ mediaType: "image/jpeg", bytes })
  return Result.fail("is neither PNG nor JPEG")
}

const ofFile = <A>(
  variable: string,
  path: string | undefined,
  bytesMax: number,
  parse: (bytes: Buffer) => Result.Result<A, string>
): Effect.Effect<A | undefined, ReportFileUnusable> => {
  if (path === undefined) return Effect.succeed(undefined)
  const parsed = Result.flatMap(readLimited(path, bytesMax), parse)
  return Result.isSuccess(parsed)
    ? Effect.succeed(parsed.success)
    : Effect.fail(new ReportFileUnusable({ message: `${variable}: ${path} ${parsed.failure}` }))
}

/** Read the files that the configuration names. */
export const readReportSettings = Effect.fn("ReportSettings.read")(function* (config: {
  readonly criteriaFile: string | undefined
  readonly organisation: string | undefined
  readonly logoFile: string | undefined
}) {
  const { criteriaFile, logoFile, organisation } = config
  const mapping = yield* ofFile("ALK_CRITERIA_FILE", criteriaFile, MAPPING_BYTES_MAX, mappingOf)
  const logo = yield* ofFile("ALK_REPORT_LOGO_FILE", logoFile, LOGO_BYTES_MAX, logoOf)
  const settings: ReportSettings = { mapping: mapping ?? defaultMapping, organisation, logo }
  return settings
})
