/**
 * The record of `alk.quarantine`: a command that could not be applied, kept as it was. Its receipt
 * says `failed`; nothing else happened.
 */
import { Schema } from "effect"
import { REASON_HEADER } from "../actors/Sequencer.ts"
import { COMMAND_HEADER } from "../domain/Receipt.ts"
import { digits, text } from "./Forms.ts"
import type { RecordContract } from "./RecordContract.ts"

export const quarantineRecord: RecordContract = {
  name: "quarantine",
  topic: "quarantine",
  title: "Quarantined command",
  description:
    "The bytes of a command that could not be read or applied, unchanged. They may be anything; " +
    "described here is their base64 text.",
  key: digits("Offset of the command on alk.commands, same partition."),
  headers: Schema.Struct({
    [COMMAND_HEADER]: digits("The same offset."),
    [REASON_HEADER]: text("Why it could not be applied.")
  }),
  value: Schema.String.annotate({ contentEncoding: "base64" })
}
