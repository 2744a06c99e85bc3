/**
 * Records without their details, until the record of the chain is read that says who erased them.
 * One that stays was stripped without an erasure.
 */
import { isObject, type JsonObject } from "../../domain/json/Json.ts"
import type { ChainRecord } from "./Recompute.ts"

/** Records that are kept at most; further ones are not looked for. */
const PENDING_MAX = 100_000

type Pending = Readonly<
  Record<"content_hash" | "erased_at" | "execution_id" | "fact_number" | "id", JsonObject[string]>
>

/** Says that a record was erased: the members that both have. */
const explains = (erasure: ChainRecord, sequence: number, erased: Pending): boolean => {
  const { fields, scheme } = erasure
  if (scheme === "alk-trace-v1") {
    return (
      fields["execution_id"] === erased.execution_id
      && fields["created_at"] === erased.erased_at
      && Number(erased.fact_number) < Number(fields["fact_number"])
    )
  }
  const { metadata, resource } = fields
  return (
    isObject(metadata)
    && metadata["sequence_number"] === sequence
    && metadata["content_hash"] === erased.content_hash
    && isObject(resource)
    && resource["id"] === erased.id
  )
}

const isErasure = ({ fields }: ChainRecord): boolean =>
  fields["action"] === "alk.event.erased" || fields["type"] === "execution.erased"

/** Of one chain. */
export class PendingErasures {
  readonly #pending = new Map<number, Pending>()

  /** Sequences of records whose erasure was not read. */
  get sequences(): ReadonlyArray<number> {
    return [...this.#pending.keys()]
  }

  /** The next record of the chain, whole by its hashes. */
  add(record: ChainRecord): void {
    const { fields, sequence } = record
    if (fields["erased_at"] !== undefined && this.#pending.size < PENDING_MAX) {
      this.#pending.set(sequence, fields as Pending)
    }
    if (!isErasure(record)) return
    for (const [earlier, erased] of this.#pending) {
      if (explains(record, earlier, erased)) this.#pending.delete(earlier)
    }
  }
}
