/**
 * Reads the body of `POST /v1/verify`: events, a receipt or a checkpoint that a client kept.
 * Refuses what can't be compared with a chain, naming the field.
 */
import { Schema } from "effect"
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { type Fields, parseJsonInSteps } from "../../domain/json/Json.ts"
import { JsonCursor } from "../../domain/json/JsonBytes.ts"
import { ITEM_VALUES_MAX } from "../../domain/json/StrictJson.ts"
import type { Sliced } from "../../domain/Slices.ts"
import type { ClientReceipt } from "../../verify/ClientEvidence.ts"
import { readAs, refuseUnknown } from "../contract/Bodies.ts"
import { ApiError, invalid } from "../messages/ApiError.ts"
import {
  KEPT_EVENTS_MAX,
  KEPT_NOTE_LENGTH_MAX,
  KeptEvent,
  KeptHash,
  KeptSequence,
  keptList,
  ReceiptEvidence
} from "./VerifySchemas.ts"

export type ClientEvidence =
  | { readonly events: ReadonlyArray<AuditEvent> }
  | { readonly receipt: ClientReceipt }
  | { readonly checkpoint: string }

const MEMBERS = ["events", "receipt", "checkpoint"] as const

/** The accepted ids with their places in the request: those that no error names. */
const placesOf = (
  ids: ReadonlyArray<string>,
  errors: ReadonlySet<number>
): ReadonlyArray<readonly [index: number, id: string]> => {
  let index = -1
  return ids.map((id) => {
    do index += 1
    while (errors.has(index))
    return [index, id]
  })
}

const receiptOf = (value: unknown): ClientReceipt => {
  const evidence = readAs(ReceiptEvidence, value, "receipt")
  const receipt = value as Fields
  const { ids } = evidence
  const errors = new Set(evidence.errors?.map(({ index }) => index))
  const given = (receipt["duplicates"] ?? []) as ReadonlyArray<Fields>
  const duplicates = new Map(given.map((duplicate) => [duplicate["index"], duplicate]))
  const appended = ids.length - duplicates.size
  const last = receipt["last_sequence_number"]
  const first =
    last === undefined
      ? undefined
      : readAs(KeptSequence, receipt["first_sequence_number"], "receipt.first_sequence_number")
  if (first !== undefined) {
    const end = readAs(KeptSequence, last, "receipt.last_sequence_number")
    if (end - first + 1 !== appended) {
      const numbers = end - first + 1
      throw invalid("receipt.ids", `are ${appended} new events, the sequence numbers ${numbers}`)
    }
  } else if (appended !== 0) {
    throw invalid("receipt.last_sequence_number", "is missing: events were appended")
  }
  let next = first ?? 0
  const events = placesOf(ids, errors).map(([index, id]) => {
    const duplicate = duplicates.get(index)
    const path = "receipt.duplicates.sequence_number"
    return {
      id,
      sequenceNumber:
        duplicate === undefined ? next++ : readAs(KeptSequence, duplicate["sequence_number"], path)
    }
  })
  return {
    id: receipt["receipt_id"],
    given: receipt,
    events,
    head:
      last === undefined
        ? undefined
        : {
            sequenceNumber: last as number,
            hash: readAs(KeptHash, receipt["head_hash"], "receipt.head_hash")
          }
  }
}

const noteOf = (value: unknown): string => {
  const note = readAs(Schema.String, value, "checkpoint")
  if (note.length > KEPT_NOTE_LENGTH_MAX) {
    throw invalid("checkpoint", `is over ${KEPT_NOTE_LENGTH_MAX} characters`)
  }
  return note
}

/** Values of a body: what is made of them is in memory at once. */
const VALUES_MAX = 262_144

const tooManyValues = (what: string, most: number): ApiError =>
  new ApiError({
    code: "payload_too_large",
    message: `${what}: over ${most} values; send fewer events at once`
  })

/** Reads the values of a body: no more than one event, or one other member, in one step. */
class Reader {
  readonly cursor: JsonCursor
  #values = 0

  constructor(bytes: Buffer) {
    this.cursor = new JsonCursor(bytes)
  }

  /** Throws ApiError, or SyntaxError for what is no JSON. */
  *value(): Sliced<unknown> {
    const walk = this.cursor.value(ITEM_VALUES_MAX)
    this.#values += walk.values
    if (this.#values > VALUES_MAX) throw tooManyValues("the body", VALUES_MAX)
    if (walk.isTooMuch) throw tooManyValues("an event or other member", ITEM_VALUES_MAX)
    return yield* parseJsonInSteps(this.cursor.textOf(walk), walk.isKeyEscaped)
  }

  /** One more than there may be at most. */
  *list(): Sliced<ReadonlyArray<unknown>> {
    const items: Array<unknown> = []
    for (const _ of this.cursor.elements()) {
      yield
      if (items.push(yield* this.value()) > KEPT_EVENTS_MAX) return items
    }
    return items
  }

  *members(): Sliced<ReadonlyMap<string, unknown>> {
    const members = new Map<string, unknown>()
    for (const name of this.cursor.members()) {
      yield
      const isList = name === "events" && this.cursor.isAtArray
      const value = yield* isList ? this.list() : this.value()
      members.set(name, value)
      if (Array.isArray(value) && value.length > KEPT_EVENTS_MAX) return members
    }
    this.cursor.end()
    return members
  }
}

function* parsed(bytes: Buffer): Sliced<ReadonlyMap<string, unknown>> {
  const reader = new Reader(bytes)
  try {
    if (reader.cursor.isAtObject) return yield* reader.members()
    yield* reader.value()
    reader.cursor.end()
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw new ApiError({ code: "invalid_json", message: "the body is not JSON" })
  }
  throw invalid("body", "must be an object")
}

/** What the body holds; throws ApiError. */
export function* clientEvidenceOf(bytes: Buffer): Sliced<ClientEvidence> {
  const body = yield* parsed(bytes)
  refuseUnknown([...body.keys()], MEMBERS, "a verification")
  const given = MEMBERS.filter((name) => (body.get(name) ?? null) !== null)
  const [member, second] = given
  if (member === undefined || second !== undefined) {
    throw invalid(second ?? "events", `exactly one of ${MEMBERS.join(", ")} is required`)
  }
  const value = body.get(member)
  switch (member) {
    case "events":
      // Their number first: no more events are looked at than a request may hold.
      for (const [index, event] of readAs(anyEvents, value, member).entries()) {
        yield
        readAs(KeptEvent, event, `${member}[${index}]`)
      }
      // As they were sent: members that no event has are part of the evidence.
      return { events: value as ReadonlyArray<AuditEvent> }
    case "receipt":
      return { receipt: receiptOf(value) }
    case "checkpoint":
      return { checkpoint: noteOf(value) }
  }
}

const anyEvents = keptList(Schema.Unknown, 1)
