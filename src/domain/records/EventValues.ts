/**
 * Members of metadata that an event has no room for: references replace them, and the values
 * are facts of an execution that holds nothing else. It has no start, so that no list of executions
 * shows it.
 */
import { Schema } from "effect"
import type { AuditEvent } from "../events/AuditEvent.ts"
import { parseEvent } from "../events/StoredEvent.ts"
import { natural, text } from "../Forms.ts"
import { derivedUuid } from "../Identifiers.ts"
import { isObject, type JsonValue } from "../json/Json.ts"
import { PreparedPayload, REFERENCE_FORM } from "../traces/Payload.ts"

/** The values of one event on their way to the chain. */
export const EventValues = Schema.Struct({
  index: natural("Place of the event in the request."),
  executionId: text("The execution that holds the values, and nothing else."),
  spanId: text("The id of the event."),
  payloads: Schema.Array(PreparedPayload)
}).annotate({ identifier: "EventValues" })
export type EventValues = typeof EventValues.Type

/** The execution that holds the values of an event. The salt of its details makes it the event's own. */
export const holderOf = (contentHash: string): string =>
  derivedUuid("alk-event-values", contentHash)

const isReference = (value: JsonValue | undefined): boolean =>
  isObject(value) && typeof value["$ref"] === "string" && REFERENCE_FORM.test(value["$ref"])

/** True where metadata has references, or is one; a client can send what looks like them. */
const mayHaveValues = (metadata: JsonValue | undefined): boolean =>
  isReference(metadata) || (isObject(metadata) && Object.values(metadata).some(isReference))

/** The executions that hold values of these events, if they are what they look like. */
export const holdersOf = (
  events: ReadonlyArray<Pick<AuditEvent, "content_hash" | "metadata">>
): ReadonlyArray<string> =>
  events
    .filter(({ metadata }) => mayHaveValues(metadata))
    .map(({ content_hash }) => holderOf(content_hash))

/** The same of events as they are stored; few of them are parsed. */
export const holdersIn = (bodies: ReadonlyArray<string>): ReadonlyArray<string> =>
  holdersOf(
    bodies
      .filter((body) => body.includes('"$ref":"sha256:'))
      .flatMap((body) => parseEvent(body) ?? [])
  )
