/** Projects `alk.receipts`: the final receipts, once they have left the memory of API processes. */
import { RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { KIND_HEADER, RECEIPT_HEADER, TENANT_HEADER } from "../../domain/records/RecordHeaders.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import { EventStore, type ReceiptRow } from "../../ports/EventStore.ts"
import { bodyOf, CONTROL, insertAll, measured, type ProjectedTopic } from "./ProjectedTopic.ts"
import { isGone, type RemovedChains } from "./RemovedChains.ts"

const takeReceipt = (
  into: Array<ReceiptRow>,
  removed: RemovedChains,
  partition: number,
  record: LogRecord
): void => {
  const header = (name: string) => record.headers[name]?.toString() ?? ""
  if (header(KIND_HEADER) !== "outcome") return
  const [tenantId, receiptId] = [header(TENANT_HEADER), header(RECEIPT_HEADER)]
  if (CONTROL.test(tenantId) || CONTROL.test(receiptId)) {
    throw new RecordUnreadable("its headers hold control characters")
  }
  if (isGone(removed, tenantId)) return
  const body = bodyOf(record)
  if (body.length === 0) throw new RecordUnreadable("it has no value")
  into.push({ partition, offset: record.offset, tenantId, receiptId, body })
}

export const projectedReceipts: ProjectedTopic = {
  topic: "receipts",
  begin: ({ removed }) => {
    const rows: Array<ReceiptRow> = []
    return {
      take: (partition, record) => takeReceipt(rows, removed, partition, record),
      store: EventStore.use((store) => measured(rows.length, insertAll(rows, store.insertReceipts)))
    }
  }
}
