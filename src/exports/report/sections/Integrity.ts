/** What was recomputed, what did not hold, and how a reader repeats it alone. */
import {
  type Break,
  HISTORY_FROM,
  HISTORY_TO,
  type VerifyReport
} from "../../../verify/Verifier.ts"
import { noticesOf } from "../../../verify/VerifyReport.ts"
import { FIELD_LENGTH_MAX } from "../EventLine.ts"
import { type Html, type HtmlPart, html, nothing } from "../Html.ts"
import type { Report, Section } from "../Report.ts"
import { count, counted, cut, hash, seconds, shown } from "../ShownText.ts"
import { command, extent, facts, table } from "../Tables.ts"
import { assuranceText, chainVerdictOf, reasonText, verdictOf } from "../Verdict.ts"

/** Breaks that are listed; a verification reports no more of them either. */
export const BREAK_ROWS_MAX = 100
/** Characters of an expected or found value. */
const VALUE_LENGTH_MAX = 240

const SHA256 = /^[0-9a-f]{64}$/

const value = (text: string): HtmlPart =>
  SHA256.test(text) ? hash(text) : shown(cut(text, VALUE_LENGTH_MAX))

const eventOf = ({ event_id }: Break): Html =>
  event_id === null
    ? nothing
    : html`<br><span class="quiet">event</span> ${shown(cut(event_id, FIELD_LENGTH_MAX))}`

const breakRow = (found: Break): ReadonlyArray<HtmlPart> => [
  count(found.sequence_number),
  html`<strong>${found.reason}</strong><br>${reasonText(found.reason)}${eventOf(found)}`,
  html`<div class="pair"><span class="quiet">expected</span><span>${value(found.expected)}</span>
    <span class="quiet">found</span><span>${value(found.actual)}</span></div>`
]

const WHERE = "of this table; repair these first, then verify again."

const breaksOf = ({ breaks, breaks_total }: VerifyReport): Html => {
  if (breaks_total === 0) return html`<p>No breaks were found.</p>`
  const listed = breaks.slice(0, BREAK_ROWS_MAX)
  return html`${table({
    caption: `Breaks of the chain, ${counted(breaks_total, "break")} in all`,
    className: "breaks",
    columns: [
      { title: "Sequence", width: 12, numeric: true },
      { title: "Reason", width: 42 },
      { title: "Evidence", width: 46 }
    ],
    rows: listed.map(breakRow)
  })}${extent(listed.length, breaks_total, "break", WHERE)}`
}

const headRows = (chain: VerifyReport): ReadonlyArray<readonly [string, HtmlPart]> => {
  const { head } = chain
  return head === null
    ? [["Head of the chain", "none: the chain is empty"]]
    : [
        ["Head, sequence number", count(head.sequence_number)],
        ["Head, hash", hash(head.hash)],
        ["Head, recorded at", `${seconds(head.created_at)} UTC`]
      ]
}

/** The chain of the executions of agents, where it was verified too. */
const tracesPart = ({ verification }: Report["input"]): Html => {
  const { traces } = verification
  if (traces === undefined) return nothing
  const { sentence, tone, word } = chainVerdictOf(traces, "fact")
  return html`<h2>The chain of agent executions</h2>
    ${facts([
      [
        "Verdict",
        html`<strong class="tone ${tone}">${word}.</strong>
        ${sentence}`
      ],
      ...headRows(traces),
      ["Scheme", html`<code>${traces.scheme}</code>`],
      ["Breaks", count(traces.breaks_total)]
    ])}
    ${traces.breaks_total === 0 ? nothing : breaksOf(traces)}`
}

/** Path and query that ask for the same check; bounds that are the whole history are left out. */
const verifyTarget = ({ bounds }: Report["input"]["verification"]): string => {
  const { from, from_sequence, to, to_sequence } = bounds
  const parameters = Object.entries({
    from: from === HISTORY_FROM ? null : from,
    to: to === HISTORY_TO ? null : to,
    from_sequence,
    to_sequence
  }).flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`]))
  return parameters.length === 0 ? "/v1/verify" : `/v1/verify?${parameters.join("&")}`
}

/** What the service says of its chains that is not a break. */
const noticesPart = ({ verification }: Report["input"]): Html => {
  const notices = noticesOf(verification)
  return notices.length === 0
    ? nothing
    : html`<p>The service itself says</p><ul>${notices.map(
        (notice) => html`<li>${shown(notice)}</li>`
      )}</ul>`
}

/** A pack ends with the last event of its time, which need not be the head of the chain. */
const comparison = ({ head, last_sequence_number: last }: VerifyReport): Html =>
  head === null || last === null
    ? nothing
    : head.sequence_number === last
      ? html`<li>Compare the head hash that the verifier prints with the one above.</li>`
      : html`<li>The head hash that the verifier prints is that of sequence ${count(last)}, where the
          pack ends; the head above came later.</li>`

const reVerify = ({ input }: Report): Html => {
  const { serviceUrl } = input.request
  return html`<h2>How to verify it again</h2>
    <p>The evidence pack of the same bounds holds every event, link and key, and three programs that
      need no installation and no network. They recompute everything and share no code with the
      service.</p>
    <ol>
      <li>Unpack the pack and compare the files with the sums in it:
        ${command("sha256sum -c sha256sums.txt")}</li>
      <li>Run one of the verifiers in its folder, or open verify.html in a browser:
        ${command("python3 verify.py", "node verify.mjs")}
        Exit code 0 means authentic or consistent, 1 tampered, 2 unreadable.</li>
      <li>To be independent of the sender of the pack, give the verifier the service's public keys,
        fetched from the service itself, and a signed checkpoint kept from before:
        ${command(
          `curl -sSf -o alk-keys.json '${serviceUrl}/.well-known/alk-keys.json'`,
          "python3 verify.py --public-key alk-keys.json --checkpoint checkpoint.txt"
        )}</li>
      ${comparison(input.verification)}
    </ol>
    <p>The service answers the same question with an API key of the tenant in
      <code>ALK_API_KEY</code>:</p>
    ${command(
      'curl -sSf -H "Authorization: Bearer $ALK_API_KEY" \\',
      `  '${serviceUrl}${verifyTarget(input.verification)}'`
    )}
    <p>The file <code>verification.json</code>, attached to this PDF, is the service's answer that
      this report was made of.</p>
    <h2>How the hashes are made</h2>
    <p>Scheme <code>${input.verification.scheme}</code>: SHA-256 over UTF-8 text, written as 64
      hexadecimal digits; JSON in the canonical form of RFC 8785; <code>\\n</code> is one line
      feed.</p>
    <ol>
      <li><code>details_hash</code> = SHA-256 of details_salt, \\n and the details (actor's e-mail
        address, resource's name, metadata)</li>
      <li><code>content_hash</code> = SHA-256 of the event's other fields together with
        details_hash</li>
      <li><code>hash</code> = SHA-256 of the scheme's name, tenant, sequence number, created_at,
        content_hash and prev_hash, each but the last followed by \\n</li>
      <li><code>prev_hash</code> = hash of the event before it; 64 zeros for the first</li>
    </ol>
    <p>Erasing an event's details removes them and their salt, and keeps details_hash: the chain
      still verifies, and what was erased can't be guessed from it.</p>`
}

const body = (report: Report): Html => {
  const { verification } = report.input
  const { sentence, tone, word } = verdictOf(verification)
  return html`
    <section class="verdict small ${tone}"><p class="label">Integrity as found by the service
        itself</p><p class="word">${word}</p><p class="sentence">${sentence}</p></section>
    ${facts([
      ...headRows(verification),
      ["Assurance", assuranceText(verification.assurance)],
      ["Breaks", count(verification.breaks_total)],
      ["Erased events", count(verification.erased_events)]
    ])}
    <h2>Breaks</h2>
    ${breaksOf(verification)}
    ${tracesPart(report.input)}
    ${reVerify(report)}
    <h2>What this does not establish</h2>${noticesPart(report.input)}
    <p>Hashes hold no secret. A person who can write to every part of the service, its signing key
      included, could make another chain that verifies; only checkpoints kept elsewhere contradict
      it. Keep the head hash of this page, or a signed checkpoint, outside of the service.</p>`
}

export const integrity: Section = { title: "Integrity and how to re-verify it", body }
