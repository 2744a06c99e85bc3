/** The columns of a fact that its MAC covers, and that MAC. */
import type { MarkedFact } from "../../../domain/records/FactPlace.ts"
import type { FactType } from "../../../domain/traces/FactText.ts"
import type { RowBinary } from "../client/RowBinary.ts"

export const MARKED =
  "tenant_id, execution_id, fact_number, type, sequence_number, hash, kafka_partition,"
  + " kafka_offset, mac"

/** A row of them. */
export const markedFactOf = (row: RowBinary): MarkedFact => ({
  tenantId: row.string(),
  executionId: row.string(),
  factNumber: row.uint64(),
  // What no fact has is covered by no MAC.
  type: row.string() as FactType,
  sequenceNumber: row.uint64(),
  hash: row.string(),
  partition: row.uint32(),
  offset: row.uint64(),
  mac: row.string()
})
