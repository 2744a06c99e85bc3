/**
 * Reads the body of `POST /v1/verify`: events, a receipt or a checkpoint that a client kept.
 * Refuses what can't be compared with a chain, naming the field.
 */
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { type Fields, isObject, parseJson } from "../../domain/json/Json.ts"
import { parseTimestamp } from "../../domain/Timestamp.ts"
import type { ClientReceipt } from "../../verify/ClientEvidence.ts"
import { refuseUnknown } from "../contract/Bodies.ts"
import { ApiError, invalid } from "../messages/ApiError.ts"
import { KEPT_EVENTS_MAX, KEPT_NOTE_LENGTH_MAX } from "./VerifySchemas.ts"

export type ClientEvidence =
  | { readonly events: ReadonlyArray<AuditEvent> }
  | { readonly receipt: ClientReceipt }
  | { readonly checkpoint: string }

const MEMBERS = ["events", "receipt", "checkpoint"] as const
const HASH_FORM = /^[0-9a-f]{64}$/
/** Strings that every stored event has. */
const EVENT_STRINGS = [
  "id",
  "timestamp",
  "action",
  "outcome",
  "tenant_id",
  "created_at",
  "prev_hash",
  "content_hash",
  "hash"
]

const fieldsOf = (value: unknown, path: string): Fields => {
  if (!isObject(value)) throw invalid(path, "must be an object")
  return value
}

const sequenceOf = (value: unknown, path: string): number => {
  if (!Number.isSafeInteger(value) || (value as number) < 1) {
    throw invalid(path, "must be an integer from 1 on")
  }
  return value as number
}

const stringOf = (value: unknown, path: string): string => {
  if (typeof value !== "string") throw invalid(path, "must be a string")
  return value
}

const hashOf = (value: unknown, path: string): string => {
  const text = stringOf(value, path)
  if (!HASH_FORM.test(text)) throw invalid(path, "must be 64 lower-case hex digits")
  return text
}

const listOf = (value: unknown, path: string, itemsMin: number): ReadonlyArray<unknown> => {
  if (!Array.isArray(value) || value.length < itemsMin || value.length > KEPT_EVENTS_MAX) {
    throw invalid(path, `must be an array of ${itemsMin} to ${KEPT_EVENTS_MAX} items`)
  }
  return value
}

/** A time as answers show it. */
const timeOf = (value: unknown, path: string): void => {
  const text = stringOf(value, path)
  if (parseTimestamp(text) !== text) {
    throw invalid(path, "must be a time as answers show it, YYYY-MM-DDTHH:MM:SS.ffffffZ")
  }
}

/** A person or a thing: its id and type, and the one string that may be erased. */
const checkParty = (value: unknown, path: string, optional: string): void => {
  const party = fieldsOf(value, path)
  stringOf(party["id"], `${path}.id`)
  stringOf(party["type"], `${path}.type`)
  if (party[optional] !== undefined) stringOf(party[optional], `${path}.${optional}`)
}

const eventOf = (value: unknown, path: string): AuditEvent => {
  const event = fieldsOf(value, path)
  sequenceOf(event["sequence_number"], `${path}.sequence_number`)
  for (const name of EVENT_STRINGS) stringOf(event[name], `${path}.${name}`)
  for (const name of ["prev_hash", "content_hash", "hash"]) hashOf(event[name], `${path}.${name}`)
  checkParty(event["actor"], `${path}.actor`, "email")
  checkParty(event["resource"], `${path}.resource`, "name")
  if (event["metadata"] !== undefined) fieldsOf(event["metadata"], `${path}.metadata`)
  for (const name of ["details_salt", "details_hash"]) {
    if (event[name] !== undefined) stringOf(event[name], `${path}.${name}`)
  }
  for (const name of ["timestamp", "created_at", "erased_at"]) {
    if (event[name] !== undefined) timeOf(event[name], `${path}.${name}`)
  }
  return event as unknown as AuditEvent
}

/** Indexes in the request that a list of `{index, …}` names. */
const indexesOf = (value: unknown, path: string): ReadonlyMap<number, Fields> =>
  new Map(
    listOf(value ?? [], path, 0).map((item, at) => {
      const fields = fieldsOf(item, `${path}[${at}]`)
      const { index } = fields
      if (!Number.isSafeInteger(index) || (index as number) < 0) {
        throw invalid(`${path}[${at}].index`, "must be an integer from 0 on")
      }
      return [index as number, fields]
    })
  )

/** The accepted ids with their places in the request: those that no error names. */
const placesOf = (
  ids: ReadonlyArray<string>,
  errors: ReadonlyMap<number, Fields>
): ReadonlyArray<readonly [index: number, id: string]> => {
  let index = -1
  return ids.map((id) => {
    do index += 1
    while (errors.has(index))
    return [index, id]
  })
}

const receiptOf = (value: unknown): ClientReceipt => {
  const receipt = fieldsOf(value, "receipt")
  if (receipt["status"] !== "committed") {
    throw invalid("receipt.status", 'must be "committed": no other one says anything of the chain')
  }
  const ids = listOf(receipt["ids"], "receipt.ids", 0).map((id, at) =>
    stringOf(id, `receipt.ids[${at}]`)
  )
  const duplicates = indexesOf(receipt["duplicates"], "receipt.duplicates")
  const errors = indexesOf(receipt["errors"], "receipt.errors")
  const appended = ids.length - duplicates.size
  const last = receipt["last_sequence_number"]
  const first =
    last === undefined
      ? undefined
      : sequenceOf(receipt["first_sequence_number"], "receipt.first_sequence_number")
  if (first !== undefined) {
    const end = sequenceOf(last, "receipt.last_sequence_number")
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
        duplicate === undefined ? next++ : sequenceOf(duplicate["sequence_number"], path)
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
            hash: hashOf(receipt["head_hash"], "receipt.head_hash")
          }
  }
}

const noteOf = (value: unknown): string => {
  const note = stringOf(value, "checkpoint")
  if (note.length > KEPT_NOTE_LENGTH_MAX) {
    throw invalid("checkpoint", `is over ${KEPT_NOTE_LENGTH_MAX} characters`)
  }
  return note
}

const parsed = (bytes: Buffer): unknown => {
  try {
    return parseJson(bytes.toString("utf8"))
  } catch {
    throw new ApiError({ code: "invalid_json", message: "the body is not JSON" })
  }
}

/** What the body holds; throws ApiError. */
export const clientEvidenceOf = (bytes: Buffer): ClientEvidence => {
  const body = parsed(bytes)
  if (!isObject(body)) throw invalid("body", "must be an object")
  refuseUnknown(Object.keys(body), MEMBERS, "a verification")
  const given = MEMBERS.filter((name) => body[name] !== undefined && body[name] !== null)
  const [member, second] = given
  if (member === undefined || second !== undefined) {
    throw invalid(second ?? "events", `exactly one of ${MEMBERS.join(", ")} is required`)
  }
  switch (member) {
    case "events":
      return {
        events: listOf(body["events"], "events", 1).map((event, at) =>
          eventOf(event, `events[${at}]`)
        )
      }
    case "receipt":
      return { receipt: receiptOf(body["receipt"]) }
    case "checkpoint":
      return { checkpoint: noteOf(body["checkpoint"]) }
  }
}
