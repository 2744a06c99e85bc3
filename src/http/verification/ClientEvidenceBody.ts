/**
 * Reads the body of `POST /v1/verify`: events, a receipt or a checkpoint that a client kept.
 * Refuses what can't be compared with a chain, naming the field.
 */
import { Schema } from "effect"
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { type Fields, isObject, parseJson } from "../../domain/json/Json.ts"
import { afterSpace, walkValue } from "../../domain/json/JsonBytes.ts"
import type { ClientReceipt } from "../../verify/ClientEvidence.ts"
import { readAs, refuseUnknown } from "../contract/Bodies.ts"
import { ApiError, invalid } from "../messages/ApiError.ts"
import {
  KEPT_NOTE_LENGTH_MAX,
  KeptEvents,
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

/** Values of a body: it is read in one go. */
const VALUES_MAX = 262_144

const parsed = (bytes: Buffer): unknown => {
  if (walkValue(bytes, afterSpace(bytes, 0), VALUES_MAX).isTooMuch) {
    const message = `the body: over ${VALUES_MAX} values; send fewer events at once`
    throw new ApiError({ code: "payload_too_large", message })
  }
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
      // Their number first: no more events are looked at than a request may hold.
      readAs(keptList(Schema.Unknown, 1), body["events"], "events")
      readAs(KeptEvents, body)
      // As they were sent: members that no event has are part of the evidence.
      return { events: body["events"] as ReadonlyArray<AuditEvent> }
    case "receipt":
      return { receipt: receiptOf(body["receipt"]) }
    case "checkpoint":
      return { checkpoint: noteOf(body["checkpoint"]) }
  }
}
