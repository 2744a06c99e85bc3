/**
 * The offline check of an evidence pack by the program's own code: the same checks as the verifiers
 * inside the pack, with the functions that the service itself hashes and verifies with. Asks no
 * service and believes nothing but the files, the keys and the checkpoints that it is given.
 */
import { canonicalize, NotCanonicalizable } from "../domain/CanonicalJson.ts"
import { SCHEME } from "../domain/HashChain.ts"
import type { JsonValue } from "../domain/StrictJson.ts"
import { ArchiveUnreadable, type ArchiveReader } from "../ports/Archive.ts"
import {
  counted,
  PackFindings,
  packFiles,
  sequences,
  unreadablePack,
  type PackReport,
  type UnreadablePack
} from "./PackFindings.ts"
import { jsonOf, PackFiles } from "./PackFiles.ts"
import { PackLog } from "./PackLog.ts"
import {
  isFields,
  isOpenEnded,
  isSequence,
  readManifest,
  type PackManifest
} from "./PackManifest.ts"
import { PackSeal, type GivenCheckpoint, type GivenKey } from "./PackSeal.ts"

/** What whoever checks a pack has besides the pack. */
export interface PackCheckOptions {
  readonly keys: ReadonlyArray<GivenKey>
  readonly checkpoints: ReadonlyArray<GivenCheckpoint>
}

type Report = Readonly<Record<string, unknown>>

const shown = (value: unknown): string =>
  value === undefined || value === null
    ? "none"
    : typeof value === "object"
      ? canonicalize(value as JsonValue)
      : String(value)

/** Holds what the service says of a pack against what is in it. */
class Statement {
  readonly #found: PackFindings
  readonly #log: PackLog
  readonly #manifest: PackManifest

  constructor(found: PackFindings, manifest: PackManifest, log: PackLog) {
    this.#found = found
    this.#manifest = manifest
    this.#log = log
  }

  #compare(what: string, expected: unknown, actual: unknown): void {
    const [wanted, said] = [expected ?? null, actual ?? null]
    if (wanted === said) return
    const { verification } = packFiles
    const words = [`${what} ${shown(wanted)}`, `${what} ${shown(said)}`] as const
    this.#found.problem(verification, null, "report_mismatch", ...words)
  }

  check(report: Report): void {
    const manifest = this.#manifest
    const text = (value: unknown) => canonicalize((value ?? null) as JsonValue)
    this.#compare("tenant_id", manifest.tenantId, report["tenant_id"])
    this.#compare("scheme", SCHEME, report["scheme"])
    this.#compare("bounds", text(manifest.bounds), text(report["bounds"]))
    this.#compare("verified_at", manifest.generatedAt, report["verified_at"])
    this.#compare("head", text(manifest.head), text(report["head"]))
    this.#span(report["first_sequence_number"], report["last_sequence_number"]) &&
      this.#span(manifest.first, manifest.last)
    this.#counts(report)
    this.#head(report)
    this.#accusations(report)
    this.#summary(report["bounds"] as Report)
  }

  #span(saidFirst: unknown, saidLast: unknown): boolean {
    const { first, last } = this.#log
    this.#compare("first_sequence_number", first?.sequence_number, saidFirst)
    const end = last?.sequence_number
    if (end !== undefined && isSequence(saidLast) && saidLast > end) {
      this.#missing(end + 1, saidLast)
      return false
    }
    this.#compare("last_sequence_number", end, saidLast)
    return true
  }

  #missing(from: number, to: number): void {
    this.#found.problem(packFiles.links, from, "tail_missing", sequences(from, to), "none")
  }

  #counts(report: Report): void {
    const { counts, isComplete, isFiltered } = this.#manifest
    const { erasedEvents, events, links } = this.#log
    this.#compare("links", links, counts["links"])
    this.#compare("events", events, counts["events"])
    this.#compare("events_checked", links, report["events_checked"])
    if (!isFiltered) this.#compare("events_in_bounds", events, report["events_in_bounds"])
    if (isComplete) this.#compare("erased_events", erasedEvents, report["erased_events"])
  }

  /** A pack without an upper bound ends at the head that it names. */
  #head({ bounds, head }: Report): void {
    const { last } = this.#log
    if (last === undefined || !isOpenEnded(bounds as Report)) return
    const own = last.sequence_number
    const said = isFields(head) ? head["sequence_number"] : undefined
    if (!isSequence(said) || said < own) {
      const words = [`head ${own}`, `head ${shown(said)}`] as const
      this.#found.problem(packFiles.verification, own, "report_mismatch", ...words)
    } else if (said > own) {
      this.#missing(own + 1, said)
    } else if ((head as Report)["hash"] !== last.hash) {
      const expected = `head ${shown((head as Report)["hash"])}`
      this.#found.problem(packFiles.links, own, "hash_mismatch", expected, last.hash)
    }
  }

  /** What the service itself had found when it made the pack. */
  #accusations({ breaks, breaks_total, status, valid }: Report): void {
    const found = this.#found
    const { verification } = packFiles
    for (const broken of breaks as ReadonlyArray<unknown>) {
      if (!isFields(broken)) continue
      const { actual, expected, reason, sequence_number } = broken
      const sequence = isSequence(sequence_number) ? sequence_number : null
      found.problem(verification, sequence, shown(reason), shown(expected), shown(actual))
    }
    const isBroken = valid !== true || (typeof breaks_total === "number" && breaks_total > 0)
    if (isBroken && (breaks as ReadonlyArray<unknown>).length === 0) {
      const words = ["a valid chain", `status ${shown(status)}`] as const
      found.problem(verification, null, "report_mismatch", ...words)
    }
  }

  #summary({ from, to }: Report): void {
    const { erasures, events, first, last, links } = this.#log
    const span =
      first === undefined || last === undefined
        ? ""
        : `, ${sequences(first.sequence_number, last.sequence_number)}`
    const erased = erasures === 0 ? "" : `; ${counted(erasures, "erasure")} named in the chain`
    this.#found.checked.push(
      `${counted(links, "link")} of the chain of ${this.#manifest.tenantId}${span}: each ` +
        "recomputed, and held against the one before it.",
      `${counted(events, "event")} from ${shown(from)} to ${shown(to)}: contents, details, order ` +
        `and links recomputed${erased}.`
    )
  }
}

const readReport = async (files: PackFiles, found: PackFindings): Promise<Report | undefined> => {
  const { verification } = packFiles
  const report = jsonOf(await files.text(verification))
  if (isFields(report) && isFields(report["bounds"]) && Array.isArray(report["breaks"])) {
    return report
  }
  if (files.has(verification)) {
    const words = ["a verification report", "something else"] as const
    found.problem(verification, null, "content_mismatch", ...words)
  }
  return undefined
}

/** What these files can't show, whatever they hold. */
const limitsOf = (
  files: PackFiles,
  manifest: PackManifest,
  log: PackLog,
  seal: PackSeal,
  options: PackCheckOptions
): ReadonlyArray<string> => {
  const { counts, isComplete, isFiltered } = manifest
  const limits: Array<string> = []
  if (!seal.isPinned) {
    limits.push(
      "Who made the pack: no public key was given, so the signatures were held against the key " +
        `inside the pack (${seal.ownKeys || "none"}). Get the key from the service yourself ` +
        "(/.well-known/alk-keys.json) and give it."
    )
  }
  if (options.checkpoints.length === 0) {
    limits.push(
      "That nothing was rewritten and signed again: whoever holds the signing key can do that. A " +
        "checkpoint that you kept earlier shows it."
    )
  }
  if (!isComplete && log.events < log.links) {
    limits.push(
      `That ${packFiles.events} leaves no event of the bounds out: it holds ${log.events} of ` +
        `${log.links} linked events` +
        `${isFiltered ? ", those that the filter in the manifest selected" : ""}; the manifest's ` +
        "signature is the service's word for it."
    )
  }
  if (isSequence(counts["executions"]) || isSequence(counts["spans"])) {
    limits.push("The execution traces: only that they are the files that were signed.")
  }
  if (files.has("evidence.pdf")) {
    limits.push("The words of evidence.pdf: only that it is the file that was signed.")
  }
  limits.push("The times: created_at is the service's own clock.")
  if (files.strangers.length > 0) {
    limits.push(`Files in this folder that are not of the pack: ${files.strangers.join(", ")}.`)
  }
  return limits
}

const reportOf = (
  found: PackFindings,
  manifest: PackManifest | undefined,
  log: PackLog | undefined
): PackReport => ({
  verdict: found.total === 0 ? "intact" : "tampered",
  tenant_id: manifest?.tenantId ?? null,
  generated_at: manifest?.generatedAt ?? null,
  bounds: manifest?.bounds ?? null,
  events: log?.events ?? 0,
  links: log?.links ?? 0,
  first_sequence_number: log?.first?.sequence_number ?? null,
  last_sequence_number: log?.last?.sequence_number ?? null,
  head_hash: log?.last?.hash ?? null,
  problems: found.problems(),
  problems_total: found.total,
  checked: found.checked,
  not_established: found.open
})

const run = async (reader: ArchiveReader, options: PackCheckOptions): Promise<PackReport> => {
  const found = new PackFindings()
  const files = new PackFiles(reader, found)
  const manifest = await readManifest(files, found)
  if (manifest === undefined) {
    await files.compare(undefined)
    return reportOf(found, undefined, undefined)
  }
  const seal = new PackSeal(files, found, manifest, options.keys)
  await seal.readKeys()
  await seal.checkSignature()
  await seal.readTree()
  await seal.readNotes(options.checkpoints)
  const log = new PackLog(files, found, manifest, seal)
  await log.readErasures()
  await log.join()
  const report = await readReport(files, found)
  if (report !== undefined) new Statement(found, manifest, log).check(report)
  await log.checkErasures()
  seal.checkNotes(log.first?.sequence_number, log.last?.sequence_number ?? 0)
  await files.compare(manifest.files)
  found.open.push(...limitsOf(files, manifest, log, seal, options))
  return reportOf(found, manifest, log)
}

/** Check the files of a pack. Memory is bounded, but for what was erased. */
export const checkPack = async (
  reader: ArchiveReader,
  options: PackCheckOptions
): Promise<PackReport | UnreadablePack> => {
  try {
    return await run(reader, options)
  } catch (error) {
    if (error instanceof ArchiveUnreadable) return unreadablePack(error.message)
    // Deeper than the stack, or half a surrogate pair.
    if (error instanceof RangeError || error instanceof NotCanonicalizable) {
      return unreadablePack("it holds JSON that no writer of packs makes")
    }
    throw error
  }
}
