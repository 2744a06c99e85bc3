/**
 * What is repaired in OpenTelemetry spans so that they can be stored, as a closed list: the fact of
 * a span names each repair, by its code and the place. How each is done is decided where spans are
 * read.
 */
import { Schema } from "effect"
import { natural, sha256, text } from "../Forms.ts"

/** What is wrong, and what is stored instead, by code. */
export const repairRules = {
  broken_text:
    "A text holds U+0000, half a surrogate pair or bytes that are no UTF-8; each has U+FFFD in its "
    + "place, and the SHA-256 of the text as sent is kept.",
  deep_value: "A value nests too deep; its deeper part is kept as JSON text.",
  end_before_start:
    "The end is before the start; the span ends as it starts, and the end is kept as sent.",
  event_time: "The time of an event is missing or impossible; the event has the time of the start.",
  impossible_time: "A time can't be stored; the other end is taken, and the time is kept as sent.",
  link_to_itself: "A span links to itself; the link is kept in the metadata and is no edge.",
  long_key:
    "A key is too long; its beginning is the key, and the value has the whole key beside it.",
  long_name: "A name is too long; its beginning is shown, and the metadata has the whole name.",
  many_links:
    "A span has too many links; the later ones are kept in the metadata and are no edges.",
  missing_start: "The start is missing; the end is taken.",
  other_content:
    "The span was sent again with other content. That of the latest end is shown; what was sent "
    + "besides is kept in the facts of the span.",
  repeated_key: "A key is given more than once; its last value is kept.",
  shared_id:
    "The id is that of two spans, client and server; the later one to come has a derived id, and the "
    + "server is below the client.",
  unknown_name: "An enum has a name that does not exist; it counts as unset, and is kept as sent.",
  unknown_status: "The status code does not exist; it counts as unset, and the metadata has it.",
  unreadable_origin:
    "A resource or scope can't be read as a whole; what of its JSON can be is kept, and `as_sent` "
    + "has its JSON text, or its bytes in base64.",
  unreadable_parent:
    "The id of the parent can't be read; the span is a root, and the id is kept as sent."
} as const satisfies Readonly<Record<string, string>>

export type RepairCode = keyof typeof repairRules

export const repairCodes = Object.keys(repairRules) as ReadonlyArray<RepairCode>

/** Repairs that depend on what was there before. */
export const decidedRepairs = [
  "other_content",
  "shared_id"
] as const satisfies ReadonlyArray<RepairCode>
export type DecidedRepair = (typeof decidedRepairs)[number]

/** Repairs of a span that are named one by one; the others are counted by code. */
export const REPAIRS_NAMED_MAX = 20

export const Repair = Schema.Struct({
  code: Schema.Literals(repairCodes).annotate({
    description: "What was wrong: see docs/traces.md."
  }),
  path: text("Where, in the names of the protocol."),
  sent: Schema.optionalKey(
    Schema.String.annotate({ description: "What was sent, where it is short." })
  ),
  sha256: Schema.optionalKey(sha256("Of the bytes of the text as sent.")),
  count: Schema.optionalKey(
    natural(
      `This one and further ones of the same code, beyond the ${REPAIRS_NAMED_MAX} that are named.`
    )
  )
}).annotate({ identifier: "Repair", description: "Something that was repaired when it came in." })
export type Repair = typeof Repair.Type
