/** A random sample that an auditor can draw again and tick off. */

import { type BrokenEvents, type Doubt, marked } from "../BrokenEvents.ts"
import type { EventLine } from "../EventLine.ts"
import { outcomeMark } from "../EventTables.ts"
import type { Sample } from "../Evidence.ts"
import { type Html, type HtmlPart, html, nothing } from "../Html.ts"
import { chapter, type Report, type Section } from "../Report.ts"
import { SAMPLE_SIZE } from "../Sampling.ts"
import { type CutText, count, counted, hash, micros, seconds, shown } from "../ShownText.ts"
import { facts, table } from "../Tables.ts"

const method = ({ evidence, input }: Report): Html => {
  const { population, sample } = evidence
  const { head } = input.verification
  if (population <= SAMPLE_SIZE) {
    return html`<p>The population has no more than ${SAMPLE_SIZE} events, so all of them are in the
      sample.</p>`
  }
  return html`<p>Simple random sampling without replacement of ${SAMPLE_SIZE} events from
    ${count(population)}. The seed was not chosen: it follows from the head hash, and another head
    hash means another chain.</p>
    ${facts([
      ["Head hash", head === null ? "none" : hash(head.hash)],
      ["Seed", hash(sample.seed)]
    ])}
    <h2>To draw it again</h2>
    <ol>
      <li>The population in ascending sequence order has positions 1 to ${count(population)}; in the
        evidence pack of the same bounds and filter these are the lines of
        <code>events.ndjson</code>.</li>
      <li>The seed is the SHA-256, as hexadecimal digits, of three lines joined by line feeds:
        <code>alk-sample-v1</code>, the tenant's id, the head hash.</li>
      <li>For n = 1, 2, 3, … take the SHA-256 of the seed, a line feed and n in decimal; read its
        first 13 hexadecimal digits as a number; divide it by ${population}; the remainder plus 1 is
        a position. A position that was drawn before is skipped.</li>
      <li>Stop at ${SAMPLE_SIZE} positions. For n = 1 in a shell:
        <code class="command">printf '%s\\n%s' SEED 1 | sha256sum</code></li>
    </ol>`
}

const worksheet = ({ drawn }: Sample, marks: BrokenEvents): Html =>
  table({
    caption: "Worksheet: the sample by position, to be filled in",
    className: "worksheet",
    columns: [
      { title: "Draw", width: 8, numeric: true },
      { title: "Position", width: 13, numeric: true },
      { title: "Sequence", width: 13, numeric: true },
      { title: "Time (UTC)", width: 20 },
      { title: "Agrees with source", width: 17 },
      { title: "Exception", width: 17 },
      { title: "Initials", width: 12 }
    ],
    rows: drawn.map(({ draw, event, position }) => [
      draw === 0 ? "–" : count(draw),
      count(position),
      event === undefined
        ? html`<strong class="tone broken">missing</strong>`
        : html`${count(event.sequenceNumber)} ${marked(marks(event.sequenceNumber))}`,
      event === undefined ? nothing : seconds(event.timestamp),
      html`<span class="box"></span>`,
      html`<span class="box"></span>`,
      nothing
    ])
  })

const optional = (name: string, value: HtmlPart): ReadonlyArray<readonly [string, HtmlPart]> =>
  value === undefined ? [] : [[name, value]]

/** An id, its type and its name; what is ours is quiet, so that foreign text can't pass for it. */
const named = (id: CutText, type: CutText | string, name: CutText | undefined): Html =>
  html`${shown(id)} <span class="quiet">(type</span> ${shown(type)}<span class="quiet">)</span>${
    name === undefined ? nothing : html`, ${shown(name)}`
  }`

const card = (position: number, event: EventLine, mark: Doubt | undefined): Html => {
  const { erasedAt } = event
  const doubt = mark === undefined ? undefined : html`${marked(mark)}, see ${chapter("integrity")}`
  const title = `Position ${count(position)}, sequence ${count(event.sequenceNumber)}`
  return html`<article class="card"><h3>${title}</h3>
    ${facts(
      [
        ...optional("Integrity", doubt),
        ["Event", shown(event.id)],
        ["Time", html`${micros(event.timestamp)} UTC, recorded ${micros(event.createdAt)}`],
        ["Actor", named(event.actorId, event.actorType, event.actorEmail)],
        ["Action", html`${shown(event.action)}, ${outcomeMark(event.outcome)}`],
        ["Resource", named(event.resourceId, event.resourceType, event.resourceName)],
        ...optional(
          "Metadata",
          event.metadata && html`<span class="json">${shown(event.metadata)}</span>`
        ),
        ...optional(
          "Details",
          erasedAt && html`<span class="erased">Details erased ${seconds(erasedAt)} UTC</span>`
        ),
        ["Content hash", hash(event.contentHash)],
        ["Previous hash", hash(event.prevHash)],
        ["Hash", hash(event.hash)]
      ],
      "facts dense"
    )}</article>`
}

const body = (report: Report): Html => {
  const { sample } = report.evidence
  if (sample.drawn.length === 0)
    return html`<p class="none">0 events: there is nothing to draw
    from.</p>`
  return html`<h2>Method</h2>${method(report)}
    ${worksheet(sample, report.brokenEvents)}
    <h2>The sampled events</h2>
    <p>${counted(sample.drawn.length, "event")} with everything that is stored of them, long values
      cut where said.</p>
    <div class="cards">${sample.drawn.map(({ event, position }) =>
      event === undefined
        ? nothing
        : card(position, event, report.brokenEvents(event.sequenceNumber))
    )}</div>`
}

export const samples: Section = { title: "Samples", body }
