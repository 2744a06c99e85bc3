/** Checks one event, or one fact of a trace, against the hashes that it carries. */
import type { AuditEvent } from "../gen/Api.d.ts"
import { type MismatchReason, mismatchOf, NotARecord, toRecord } from "./Recompute.ts"

/** What a check of one record has found. */
export type Verification =
  | {
      readonly valid: true
      /** Its details were erased: what they were can't be checked any more, the rest is. */
      readonly isErased: boolean
    }
  | {
      readonly valid: false
      readonly reason: MismatchReason | "not_a_record"
      readonly expected: string
      readonly actual: string
    }

/**
 * Recomputes details, content and link of a stored event (or of a record of `alk.traces`) from its
 * content. Give the text or the bytes where you have them: `JSON.parse` of Node 24 and 26 can return
 * wrong keys (nodejs/node#63785).
 *
 * A valid event is whole. That it is the service's own, in its place, its neighbours say
 * (ChainVerifier) and the signed checkpoints (`GET /v1/chain/proofs/inclusion`).
 */
export const verifyEvent = async (
  event: AuditEvent | string | Uint8Array | object
): Promise<Verification> => {
  try {
    const record = toRecord(event)
    const mismatch = await mismatchOf(record)
    if (mismatch === undefined) return { valid: true, isErased: record.isErased }
    return { valid: false, ...mismatch }
  } catch (error) {
    if (!(error instanceof NotARecord)) throw error
    return {
      valid: false,
      reason: "not_a_record",
      expected: "a stored event",
      actual: error.message
    }
  }
}
