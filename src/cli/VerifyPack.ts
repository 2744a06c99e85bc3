/**
 * `alk verify`: checks an evidence pack on the disk and says what holds, what does not, and what
 * the files can't show. Starts no part of the service and reads no configuration.
 */
import { readFileSync } from "node:fs"
import { Effect, Schema } from "effect"
import { checkPack } from "../exports/PackCheck.ts"
import {
  counted,
  unreadablePack,
  type PackReport,
  type UnreadablePack
} from "../exports/PackFindings.ts"
import { keysOfText, type GivenCheckpoint, type GivenKey } from "../exports/PackSeal.ts"
import { Archive } from "../ports/Archive.ts"

/** The command was called with something that it does not know. */
export class VerifyRefused extends Schema.TaggedError<VerifyRefused>()("VerifyRefused", {
  message: Schema.String
}) {}

export const VERIFY_HELP = `alk verify <pack.zip | folder> [options]

Checks an evidence pack offline, as the verifiers inside the pack do, with the program's own code.

  --public-key KEY     the service's public key, or a file that holds it: the answer of
                       /.well-known/alk-keys.json, C2SP (name+id+base64), PEM, or base64. May be
                       repeated.
  --checkpoint FILE    a checkpoint that you kept earlier: a signed note, or the answer of
                       /v1/chain/checkpoints/latest. May be repeated.
  --json               the report as JSON

Exit code 0: intact. 1: tampered. 2: unreadable.
`

/** What the command has to say, and its exit code. */
export interface VerifyOutcome {
  readonly text: string
  readonly exitCode: 0 | 1 | 2
}

interface Asked {
  readonly path: string
  readonly keys: ReadonlyArray<GivenKey>
  readonly checkpoints: ReadonlyArray<GivenCheckpoint>
  readonly json: boolean
}

const textOfFile = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

const refuse = (message: string): never => {
  throw new VerifyRefused({ message: `verify: ${message}` })
}

const givenKeys = (value: string): ReadonlyArray<GivenKey> => {
  const keys = keysOfText(textOfFile(value) ?? value)
  return keys.length > 0 ? keys : refuse(`${value} can't be opened as a file that holds a public key, and is none itself`)
}

const givenCheckpoint = (value: string): GivenCheckpoint => {
  const text = textOfFile(value)
  return text === undefined ? refuse(`${value} can't be opened`) : { label: value, text }
}

const read = (args: ReadonlyArray<string>): Asked => {
  const keys: Array<GivenKey> = []
  const checkpoints: Array<GivenCheckpoint> = []
  let path: string | undefined
  let json = false
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!
    if (arg === "--json") json = true
    else if (arg === "--public-key" || arg === "--checkpoint") {
      at += 1
      const value = args[at] ?? refuse(`${arg} needs a value`)
      if (arg === "--public-key") keys.push(...givenKeys(value))
      else checkpoints.push(givenCheckpoint(value))
    } else if (arg.startsWith("-") || path !== undefined) refuse(`unknown argument ${arg}`)
    else path = arg
  }
  path ??= refuse("name a pack or a folder; see alk verify --help")
  return { path, keys, checkpoints, json }
}

/** Characters of one line that comes out of a pack. */
const SHOWN_MAX = 200
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu

/** What a pack says may hold anything, terminal commands too. */
const printable = (text: string): string => {
  const escaped = text.replaceAll(
    UNPRINTABLE,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
  )
  return escaped.length > SHOWN_MAX ? `${escaped.slice(0, SHOWN_MAX)}…` : escaped
}

const problemLines = ({ problems, problems_total }: PackReport): ReadonlyArray<string> => {
  if (problems_total === 0) return []
  const more = problems_total > problems.length ? `, the first ${problems.length}` : ""
  return [
    "",
    `Problems: ${problems_total}${more}`,
    ...problems.flatMap(({ actual, expected, file, reason, sequence_number }) => [
      `  ${sequence_number === null ? "" : `sequence ${sequence_number}: `}` +
        `${printable(reason)} in ${printable(file)}`,
      `      expected ${printable(expected)}`,
      `      found    ${printable(actual)}`
    ])
  ]
}

const listLines = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  - ${printable(line)}`)]

const reportLines = (path: string, report: PackReport | UnreadablePack): ReadonlyArray<string> => {
  if (report.verdict === "unreadable") {
    return [`UNREADABLE  ${path}`, `  ${printable(report.message)}`]
  }
  const { bounds, events, generated_at, links, tenant_id, verdict } = report
  const { from, to } = (bounds ?? {}) as { readonly from?: string; readonly to?: string }
  const about =
    from === undefined || to === undefined
      ? []
      : [
          `  tenant ${printable(tenant_id ?? "")}, ${printable(from)} to ${printable(to)}`,
          `  ${counted(events, "event")}, ${counted(links, "link")}, ` +
            `made ${printable(generated_at ?? "")}`
        ]
  return [
    `${verdict.toUpperCase()}  ${path}`,
    ...about,
    ...problemLines(report),
    ...listLines("Checked", report.checked),
    ...listLines("Not established", report.not_established)
  ]
}

const exitCodes = { intact: 0, tampered: 1, unreadable: 2 } as const

/** Check the pack that the arguments name. */
export const verifyPack = Effect.fn("VerifyPack.verify")(function*(args: ReadonlyArray<string>) {
  const archive = yield* Archive
  const { checkpoints, json, keys, path } = yield* Effect.try({
    try: () => read(args),
    catch: (error) => {
      if (error instanceof VerifyRefused) return error
      throw error
    }
  })
  const report = yield* archive.read(path).pipe(
    Effect.flatMap((reader) => Effect.promise(() => checkPack(reader, { keys, checkpoints }))),
    Effect.scoped,
    Effect.catchTag("ArchiveUnreadable", ({ message }) => Effect.succeed(unreadablePack(message)))
  )
  const outcome: VerifyOutcome = {
    text: json
      ? `${JSON.stringify(report, null, 2)}\n`
      : `${reportLines(path, report).join("\n")}\n`,
    exitCode: exitCodes[report.verdict]
  }
  return outcome
})

/** The command: says its outcome, or why it could not begin, and sets the exit code. */
export const verifyCommand = (args: ReadonlyArray<string>): Effect.Effect<void, never, Archive> =>
  verifyPack(args).pipe(
    Effect.map(({ exitCode, text }) => {
      process.stdout.write(text)
      process.exitCode = exitCode
    }),
    Effect.catchTag("VerifyRefused", ({ message }) =>
      Effect.sync(() => {
        process.stderr.write(`alk: ${message}\n`)
        process.exitCode = exitCodes.unreadable
      })
    )
  )
