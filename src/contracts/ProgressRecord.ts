/**
 * The record of `alk.progress`: how far the projection has made a partition visible. The topic is
 * compacted, the newest record of a partition is what holds.
 */
import { Schema } from "effect"
import type { Progress } from "../actors/log/Visibility.ts"
import { digits, macHeaders, natural } from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"

export const progressRecord: RecordContract = {
  name: "progress",
  topic: "progress",
  title: "Progress",
  description: "Which records of one partition can be queried by now.",
  key: digits("The partition."),
  headers: macHeaders,
  value: exactly<Progress>()(
    Schema.Struct({
      partition: natural("The partition."),
      events_next: natural("Every record of alk.events below this offset can be queried."),
      receipts_next: natural("Every record of alk.receipts below this offset can be queried."),
      traces_next: natural("Every record of alk.traces below this offset can be queried."),
      checkpoints_next: natural(
        "Every record of alk.checkpoints below this offset can be queried."
      ),
      final: Schema.Boolean.annotate({
        description: "Rows may stand in the store twice: readers must merge while reading."
      }),
      duplicates_from: natural("While final: the lowest offset that may stand there twice."),
      trace_duplicates_from: natural("The same for alk.traces."),
      rebuilding: Schema.Boolean.annotate({
        description: "The partition's view is being built anew and must not be shown."
      })
    })
  )
}
