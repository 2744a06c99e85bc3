/**
 * The records of `alk.quarantine`: a command that could not be applied, kept as it was, and the
 * marker from which on internal records need a MAC. A command's receipt says `failed`; one that this
 * service did not write, or wrote before, has none. Nothing else happened.
 */
import { Schema } from "effect"
import { REASON_HEADER } from "../actors/sequencer/Sequencer.ts"
import { COMMAND_HEADER } from "../domain/records/Receipt.ts"
import { MAC_HEADER } from "../domain/records/RecordMac.ts"
import { MARKER_KEY, type Marker } from "../services/commands/TakeOver.ts"
import { digits, macHeader, natural, text, time } from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"

export const quarantineRecord: RecordContract = {
  name: "quarantine",
  topic: "quarantine",
  title: "Quarantined command",
  description:
    "The bytes of a command that could not be read or applied, unchanged. They may be anything; "
    + "described here is their base64 text.",
  key: digits("Offset of the command on alk.commands, same partition."),
  headers: Schema.Struct({
    [COMMAND_HEADER]: digits("The same offset."),
    [REASON_HEADER]: text("Why it could not be applied.")
  }),
  value: Schema.String.annotate({ contentEncoding: "base64" })
}

export const markerRecord: RecordContract = {
  name: "quarantine-marker",
  topic: "quarantine",
  title: "Marker of authenticated records",
  description:
    "Written once, to partition 0: from these offsets on a record of alk.registry, alk.commands, "
    + "alk.state or alk.progress needs a MAC. It stands here because the topic is not compacted.",
  key: Schema.Literal(MARKER_KEY),
  headers: Schema.Struct({ [MAC_HEADER]: macHeader }),
  value: exactly<Marker>()(
    Schema.Struct({
      taken_over_at: time("When the topics were taken over."),
      offsets: Schema.Array(
        Schema.Struct({
          topic: text("The topic, without its prefix."),
          partition: natural("The partition."),
          offset: natural("Offset behind the last record that was taken over.")
        })
      )
    })
  )
}
