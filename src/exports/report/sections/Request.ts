/** What was asked, by whom, of which service; and the data of the report, by its SHA-256. */
import { type Html, html, nothing } from "../Html.ts"
import {
  alteredNotice,
  boundsText,
  digestCommand,
  periodText,
  type Report,
  reportedConditions,
  type Section
} from "../Report.ts"
import { count, cut, hash, seconds, shown } from "../ShownText.ts"
import { command, facts, table } from "../Tables.ts"

/** Characters of one value of a filter. */
const CONDITION_LENGTH_MAX = 300
/** Characters of the request. */
const REQUEST_LENGTH_MAX = 2_000

const filterTable = ({ input }: Report): Html => {
  const conditions = reportedConditions(input.filter)
  if (conditions.length === 0) {
    return html`<p>No filter: every event within the bounds belongs to the population.</p>`
  }
  return table({
    caption: "Conditions other than the bounds of time, all of which an event meets",
    columns: [
      { title: "Field", width: 35 },
      { title: "Value", width: 65 }
    ],
    rows: conditions.map(([name, value]) => [shown(name), shown(cut(value, CONDITION_LENGTH_MAX))])
  })
}

const data = (report: Report): Html => {
  const { evidence, input } = report
  const { bytes, events, sha256 } = evidence.survey
  return html`${alteredNotice(report)}${facts([
    ["SHA-256", hash(sha256)],
    ["Events, bytes", `${count(events)}, ${count(bytes)}`]
  ])}
    <p>This is the hash of the events of the population as NDJSON: ascending, one event a line, each
      line with its line feed. To repeat it with an API key of the tenant in
      <code>ALK_API_KEY</code>:</p>
    ${command(digestCommand(input.request, evidence.bounded))}
    <p>Events that arrive later do not change the answer. An erasure does: it removes details of
      events that are in it.</p>`
}

const body = (report: Report): Html => {
  const { evidence, id, input } = report
  const { generatedAt, request, serviceName, tenant, verification } = input
  const { bounds } = verification
  return html`
    ${facts([
      ["Report", html`<code>${id}</code>`],
      [
        "Tenant",
        html`${shown(tenant.id)}${
          tenant.name === undefined ? nothing : html` (${shown(tenant.name)})`
        }`
      ],
      ["Asked for with", html`${request.askedBy.kind} ${shown(request.askedBy.id)}`],
      ["Request", html`<code>${shown(cut(request.line, REQUEST_LENGTH_MAX))}</code>`],
      ["Bounds, by event time", boundsText(verification)],
      ["Exact bounds, inclusive", html`${bounds.from}<br>${bounds.to}`],
      ["Events found cover", periodText(evidence)],
      [
        "Service",
        html`${shown(serviceName)} at ${shown(request.serviceUrl)}, API version
        ${request.apiVersion}`
      ],
      ["Generated", html`${seconds(generatedAt)} UTC`]
    ])}
    <p>Bounds that were left out mean the entire history that the service supports, events dated in
      the future included.</p>
    <h2>Filter</h2>
    ${filterTable(report)}
    <h2>The data behind this report</h2>
    ${data(report)}`
}

export const request: Section = { title: "What was asked", body }
