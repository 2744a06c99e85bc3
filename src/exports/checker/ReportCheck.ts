/** What verification.json and the manifest say of the events, against what was read. */
import { SCHEME } from "../../domain/events/HashChain.ts"
import { type Fields, isObject } from "../../domain/json/Json.ts"
import type { EventCheck } from "./EventCheck.ts"
import { counted, range, shown } from "./Findings.ts"
import { canonical, isSequence } from "./Lines.ts"
import { type Manifest, scopeOf } from "./Manifest.ts"
import type { OpenPack } from "./OpenPack.ts"
import type { PackChain } from "./PackChain.ts"
import { FILE } from "./PackFiles.ts"

/** Notices of the service that a report lists of each chain, and characters of one. */
const NOTICES_MAX = 20
const NOTICE_LENGTH_MAX = 400

const cutNotice = (text: string): string => {
  const characters = [...text.slice(0, 2 * NOTICE_LENGTH_MAX + 2)]
  if (characters.length <= NOTICE_LENGTH_MAX) return text
  return `${characters.slice(0, NOTICE_LENGTH_MAX).join("")}…`
}

/** What the service says of a chain that is not a break of it, as sentences of a report. */
const noticesOf = (report: unknown, records: string): ReadonlyArray<string> => {
  const said = (isObject(report) ? report["notices"] : undefined) ?? []
  const notices: ReadonlyArray<unknown> = Array.isArray(said) ? said : [said]
  const more = notices.length - NOTICES_MAX
  return [
    ...notices
      .slice(0, NOTICES_MAX)
      .map((notice) => `${FILE.verification} says of the ${records}: ${cutNotice(shown(notice))}.`),
    ...(more > 0 ? [`${FILE.verification} says ${more} more of the ${records}.`] : [])
  ]
}

/** A report of the service, whose members are not looked at until they are compared. */
interface ServiceReport extends Fields {
  readonly bounds: Fields
  readonly breaks: ReadonlyArray<unknown>
}

const isReport = (value: unknown): value is ServiceReport =>
  isObject(value) && isObject(value["bounds"]) && Array.isArray(value["breaks"])

/** Checks what the service says; returns its notices, as sentences of a report. */
export const checkReport = (
  pack: OpenPack,
  manifest: Manifest,
  said: unknown,
  events: EventCheck,
  chain: PackChain
): ReadonlyArray<string> => {
  const { found } = pack
  if (!isReport(said)) {
    if (pack.has(FILE.verification))
      found.mismatch(FILE.verification, null, "a verification report")
    return []
  }
  const differs = (what: string, read: unknown, told: unknown): void =>
    found.differs(FILE.verification, what, read, told)
  const { isComplete, isFiltered } = scopeOf(manifest)
  differs("tenant_id", manifest.tenant_id, said["tenant_id"])
  differs("scheme", SCHEME, said["scheme"])
  differs("bounds", canonical(manifest.bounds), canonical(said.bounds))
  differs("verified_at", manifest.generated_at, said["verified_at"])
  differs("head", canonical(manifest["head"] ?? null), canonical(said["head"] ?? null))
  const [first, last] = [chain.first?.sequence_number ?? null, chain.last?.sequence_number ?? null]
  for (const file of [said, manifest]) {
    const saidLast = file["last_sequence_number"]
    differs("first_sequence_number", first, file["first_sequence_number"])
    if (last !== null && isSequence(saidLast) && saidLast > last) {
      found.problem(FILE.links, last + 1, "tail_missing", range(last + 1, saidLast), "none")
      break
    }
    differs("last_sequence_number", last, saidLast)
  }
  differs("links", chain.links, manifest.counts["links"])
  differs("events", events.events, manifest.counts["events"])
  differs("events_checked", chain.links, said["events_checked"])
  if (!isFiltered) differs("events_in_bounds", events.events, said["events_in_bounds"])
  if (isComplete) differs("erased_events", events.erased, said["erased_events"])
  checkHead(pack, said["head"], chain)
  takeAccusations(pack, said)
  const { from, to } = said.bounds
  const erased =
    events.targets === 0 ? "" : `; ${counted(events.targets, "erasure")} named in the chain`
  found.checked.push(
    `${counted(chain.links, "link")} of the chain of ${manifest.tenant_id}`
      + (first === null || last === null ? "" : `, ${range(first, last)}`)
      + ": each recomputed, and held against the one before it.",
    `${counted(events.events, "event")} from ${shown(from)} to ${shown(to)}: `
      + `contents, details, order and links recomputed${erased}.`
  )
  return [...noticesOf(said, "events"), ...noticesOf(said["traces"], "facts")]
}

/** A pack without an upper bound ends at the head that it names, and no pack after it. */
const checkHead = ({ found }: OpenPack, head: unknown, chain: PackChain): void => {
  const { hash, sequence_number: said } = isObject(head) ? head : {}
  const own = chain.last?.sequence_number
  const missing = isSequence(said) ? chain.missingTo(said) : undefined
  if (missing !== undefined) {
    found.problem(FILE.links, missing[0], "tail_missing", range(...missing), "none")
  } else if (chain.ends === undefined || chain.last === undefined || own === undefined) {
    return
  } else if (!isSequence(said) || said < own) {
    found.problem(FILE.verification, own, "report_mismatch", `head ${own}`, `head ${shown(said)}`)
  } else if (said === own && hash !== chain.last.hash) {
    found.problem(FILE.links, own, "hash_mismatch", `head ${shown(hash)}`, chain.last.hash)
  }
}

/** What the service itself had found when it made the pack. */
const takeAccusations = ({ found }: OpenPack, report: ServiceReport): void => {
  const { breaks_total: total, status, traces, valid } = report
  const ofTraces = isObject(traces) ? traces["breaks"] : undefined
  const breaks = [...report.breaks, ...(Array.isArray(ofTraces) ? ofTraces : [])]
  for (const broken of breaks) {
    if (!isObject(broken)) continue
    const { actual, expected, reason, sequence_number: place } = broken
    const sequence = isSequence(place) ? place : null
    found.problem(FILE.verification, sequence, shown(reason), shown(expected), shown(actual))
  }
  if ((valid !== true || isSequence(total)) && breaks.length === 0) {
    const actual = `status ${shown(status)}`
    found.problem(FILE.verification, null, "report_mismatch", "a valid chain", actual)
  }
}
