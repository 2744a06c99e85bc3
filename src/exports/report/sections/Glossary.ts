/** The words of the report, and how it writes what can't be seen. */
import { type Html, html } from "../Html.ts"
import type { Section } from "../Report.ts"

const terms: ReadonlyArray<readonly [string, string]> = [
  ["Actor", "Who did something: a person (human), an agent on its own (agent), or a system."],
  ["Action", "What was done, as dotted words such as document.read."],
  ["Break", "A place at which the stored record is not what the hash chain says it was."],
  [
    "Chain",
    "The events of one tenant as they were recorded, each with the hash of the one before."
  ],
  ["Checkpoint", "A signed statement of how long a chain was and what its content hashes to."],
  ["Details", "The parts of an event that may be erased: e-mail address, resource name, metadata."],
  [
    "Erased event",
    "An event whose details were removed on request. The erasure is itself an event of the chain."
  ],
  [
    "Event time, recorded",
    "When it happened according to the source; when the service chained it."
  ],
  [
    "Evidence pack",
    "A ZIP file with every event of the same bounds, keys, checkpoints and offline verifiers."
  ],
  ["Head", "The last event of a chain. Its hash depends on the whole chain before it."],
  ["Outcome", "success: it was done. failure: it was refused. error: it went wrong."],
  ["Population", "All events that the bounds and the filter of this report choose."],
  ["Sequence number", "An event's place in its chain, from 1 without gaps."],
  [
    "Tenant",
    "The organisation or unit whose log this is. Chains of different tenants are separate."
  ]
]

const body = (): Html => html`<dl>${terms.map(
  ([term, meaning]) => html`<dt>${term}</dt><dd>${meaning}</dd>`
)}</dl>
  <h2>How to read the text of events</h2>
  <p>Text that came from outside is shown as it was sent and is never interpreted. Characters that
    would be invisible, that change the direction of writing, or that this document has no glyph
    for, are written as their code point: <bdi dir="ltr" class="code-point">U+200B</bdi> is a space
    without width. Long values are cut, with the number of characters that were left out.</p>`

export const glossary: Section = { title: "Glossary and notation", body }
