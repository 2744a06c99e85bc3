/** Projects `alk.checkpoints`: what proofs and verification refer to. */
import { RecordFields } from "../../domain/json/RecordFields.ts"
import { type CheckpointRow, CheckpointStore } from "../../ports/CheckpointStore.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import { bodyOf, CONTROL, insertAll, type ProjectedTopic } from "./ProjectedTopic.ts"

/**
 * Checks the form only: whether a checkpoint is genuine is for its signature to say.
 * @throws RecordUnreadable
 */
const checkpointRow = (partition: number, record: LogRecord): CheckpointRow => {
  const body = bodyOf(record)
  const fields = RecordFields.of(body, "checkpoint")
  const tenantId = fields.text("tenant_id")
  if (CONTROL.test(tenantId)) throw fields.wrong("tenant_id", "an id")
  const treeSize = fields.integer("tree_size", 1)
  return { partition, offset: record.offset, tenantId, treeSize, body }
}

/** The row of a record that is a checkpoint. */
export const checkpointRowIfAny = (
  partition: number,
  record: LogRecord
): CheckpointRow | undefined => {
  try {
    return checkpointRow(partition, record)
  } catch {
    // Reported when it was projected.
    return undefined
  }
}

export const projectedCheckpoints: ProjectedTopic = {
  topic: "checkpoints",
  begin: () => {
    const rows: Array<CheckpointRow> = []
    return {
      take: (partition, record) => {
        rows.push(checkpointRow(partition, record))
      },
      store: CheckpointStore.use((store) => insertAll(rows, store.insert))
    }
  }
}
