/** Real commands with real events, as accept makes them, for tests below the HTTP API. */
import { makeReceiptId, uuidv7 } from "../../src/domain/Identifiers.ts"
import { COMMAND_FORMAT, type Command } from "../../src/domain/records/Command.ts"
import { encodeCommand } from "../../src/domain/records/CommandBytes.ts"
import { type PreparedEvent, toBatch } from "../../src/domain/records/EventBatch.ts"
import { currentTime } from "../../src/domain/Timestamp.ts"
import type { NewRecord } from "../../src/ports/EventLog.ts"
import { prepareItem } from "../../src/services/ingest/Prepare.ts"
import { TEST_SECRET } from "./Program.ts"

export const preparedEvent = (
  tenantId: string,
  index: number,
  fields: Record<string, unknown> = {}
): PreparedEvent => {
  const prepared = prepareItem(
    {
      actor: { id: `user-${index % 3}`, type: "human", email: `u${index}@example.com` },
      action: index % 2 === 0 ? "document.read" : "document.share",
      resource: { id: `doc-${index}`, type: "document", name: `Dökument ${index}` },
      outcome: "success",
      metadata: { index, note: `nöte ${index}` },
      ...fields
    },
    {
      index,
      mode: "single",
      tenantId,
      acceptedAt: currentTime(),
      secret: TEST_SECRET
    }
  )
  if ("error" in prepared) throw new Error(prepared.error.message)
  return prepared.ok
}

export const ingestCommand = (
  tenantId: string,
  count: number,
  fields: Record<string, unknown> = {}
): Command => ({
  kind: "ingest",
  tenantId,
  receiptId: makeReceiptId(TEST_SECRET, tenantId, uuidv7()),
  attempt: crypto.randomUUID(),
  receivedAt: currentTime(),
  events: toBatch(
    Array.from({ length: count }, (_, index) => preparedEvent(tenantId, index, fields))
  ),
  errors: [],
  warnings: []
})

/** The value of a command without events whose head is this JSON. */
export const commandWithHead = (json: string): Buffer => {
  const value = Buffer.alloc(4 + Buffer.byteLength(json) + 4)
  value.writeUInt32LE(value.length - 8)
  value.write(json, 4)
  return value
}

export const commandRecord = (command: Command, partition = 0): NewRecord => {
  const value = encodeCommand(command)
  return {
    topic: "commands",
    partition,
    key: command.tenantId,
    value,
    headers: {
      "alk-format": String(COMMAND_FORMAT),
      "alk-receipt": command.receiptId,
      "alk-tenant": command.tenantId
    }
  }
}
