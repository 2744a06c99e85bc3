/** A report in words, as the program prints it. */
import { type Fields, isObject } from "../../domain/json/Json.ts"
import { counted } from "./Findings.ts"
import { FILE } from "./PackFiles.ts"
import type { PackKey, PackReport, UnreadablePack } from "./Report.ts"

/** What a report says of a key, in one line. */
export const keyText = (key: PackKey): string => {
  const { endorsed_by: by, handed_over: sizes, name, next, retired_at: retired } = key
  const parts: Array<string> = []
  if (key.pinned) parts.push("given, or known by a checkpoint that was given")
  if (by !== null) parts.push(`endorsed by ${by}`)
  if (key.trusted === "root") parts.push("the first key of the pack")
  if (key.trusted === "unendorsed") parts.push("not endorsed by a key that counts")
  if (key.signs_manifest) parts.push(`signs ${FILE.manifest}`)
  if (retired !== null) parts.push(`replaced${next === null ? "" : ` by ${next}`} at ${retired}`)
  if (sizes.events !== null) parts.push(`handed over at ${counted(sizes.events, "event")}`)
  if (sizes.traces !== null) parts.push(`handed over at ${counted(sizes.traces, "fact")}`)
  return `${name}+${key.key_id}: ${parts.join("; ")}`
}

/** The sequences that bounds name, if they name any. */
export const sequencesText = ({ from_sequence: first, to_sequence: last }: Fields): string =>
  (first ?? last ?? null) === null ? "" : `, sequences ${first ?? 1} to ${last ?? "the newest"}`

const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu

/** What a pack says may hold anything, terminal commands too. */
const escaped = (value: unknown): string =>
  String(value).replace(
    UNPRINTABLE,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/** A value of a pack, which may be as long as a file. */
const printable = (value: unknown): string => {
  const text = escaped(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

/** Sentences of this program: whole. */
const listed = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  - ${escaped(line)}`)]

const VERDICTS = {
  authentic: "AUTHENTIC",
  consistent: "CONSISTENT, ORIGIN NOT CHECKED",
  tampered: "TAMPERED"
}

/** A report in words. `path`: what was checked. */
export const reportLines = (
  path: string,
  report: PackReport | UnreadablePack
): ReadonlyArray<string> => {
  if (report.verdict === "unreadable")
    return [`UNREADABLE  ${path}`, `  ${printable(report.message)}`]
  const { bounds, problems, problems_total: total, verdict } = report
  const lines = [`${VERDICTS[verdict]}  ${path}`]
  if (isObject(bounds)) {
    const { events, generated_at: made, links, tenant_id: tenant } = report
    lines.push(
      `  tenant ${printable(tenant)}, ${printable(bounds["from"])} to ${printable(bounds["to"])}`
        + sequencesText(bounds),
      `  ${counted(events, "event")}, ${counted(links, "link")}, made ${printable(made)}`
    )
  }
  if (report.head_hash !== null) {
    lines.push(
      `  head hash ${printable(report.head_hash)}, sequence ${report.last_sequence_number}`
    )
  }
  if (total > 0)
    lines.push(
      "",
      `Problems: ${total}${total > problems.length ? `, the first ${problems.length}` : ""}`
    )
  for (const { actual, expected, file, reason, sequence_number: sequence } of problems) {
    const where = sequence === null ? "" : `sequence ${sequence}: `
    lines.push(`  ${where}${printable(reason)} in ${printable(file)}`)
    lines.push(`      expected ${printable(expected)}`, `      found    ${printable(actual)}`)
  }
  const { checked, not_established: open } = report
  return [
    ...lines,
    ...listed("Signing keys", report.keys.map(keyText)),
    ...listed("Checked", checked),
    ...listed("Not established", open)
  ]
}
