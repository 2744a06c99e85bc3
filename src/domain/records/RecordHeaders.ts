/** The Kafka headers of internal records: their names, and their forms as schemas. */
import { Schema } from "effect"
import { sha256 } from "../Forms.ts"
import { FORMAT_VERSION } from "./Topics.ts"

/** 64 hex digits: the MAC of the record. */
export const MAC_HEADER = "alk-mac"
/** Of a command, readable even where its value is not. */
export const RECEIPT_HEADER = "alk-receipt"
export const TENANT_HEADER = "alk-tenant"
/** Which writer wrote the command, and its number there: `<writer>/<number>`. */
export const WRITER_HEADER = "alk-writer"
/** Tells the records of `alk.receipts` and of `alk.quarantine` apart without parsing them. */
export const KIND_HEADER = "alk-kind"
/** The attempt that a record answers. */
export const ATTEMPT_HEADER = "alk-attempt"
/** The offset of the command that a record answers: what a rebuild goes by. */
export const COMMAND_HEADER = "alk-command"
/** Why a command was quarantined. */
export const REASON_HEADER = "alk-reason"

/** The header `alk-format`. */
export const formatHeader = Schema.Literal(String(FORMAT_VERSION)).annotate({
  description: "Version of the record's form. A reader stops at a version above its own."
})

/** The header `alk-mac`. */
export const macHeader = sha256(
  "HMAC-SHA256 under a key derived from ALK_SECRET, over topic, partition, key, value and headers."
)

/** Records of which a reader knows only that the service wrote them. */
export const macHeaders = Schema.Struct({ [MAC_HEADER]: macHeader })

/** The command that a record answers; -1 if it names none, or this service did not write it. */
export const commandOffsetOf = ({
  headers,
  refused
}: {
  readonly headers: Readonly<Record<string, Buffer>>
  readonly refused?: string
}): number => {
  if (refused !== undefined) return -1
  const text = headers[COMMAND_HEADER]?.toString() ?? ""
  const offset = Number(text)
  return /^[0-9]+$/.test(text) && Number.isSafeInteger(offset) ? offset : -1
}
