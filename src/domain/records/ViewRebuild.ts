/**
 * The records of `alk.progress` by which an operator asks for the view of a partition to be built
 * again, and the projection says how far it is with that.
 */
import { Schema } from "effect"
import { natural, tenant, time } from "../Forms.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"
import type { RecordContract } from "./RecordContract.ts"
import { macHeaders } from "./RecordHeaders.ts"

export const REBUILD_KEY = "rebuild"
export const REBUILT_KEY = "rebuilt"

/** The record `rebuild`. */
export const ViewRebuild = Schema.Struct({
  id: Schema.String.check(Schema.isUUID()).annotate({ description: "Names the request." }),
  tenant_id: Schema.optionalKey(tenant("Only what belongs to this tenant.")),
  requested_at: time("When it was asked for.")
})
export type ViewRebuild = typeof ViewRebuild.Type

/** The record `rebuilt`. */
export const ViewRebuilt = Schema.Struct({
  id: Schema.String.check(Schema.isUUID()).annotate({ description: "Of the request." }),
  at: time("When it had come so far."),
  done: Schema.Boolean.annotate({ description: "Everything was compared." }),
  records: natural("Records that have to be compared, control records included."),
  compared: natural("Records of the topics that were compared."),
  stored: natural("Rows that were missing, or said something else, and are stored again."),
  set_aside: natural("Rows that the topics deny, moved to the table set_aside.")
})
export type ViewRebuilt = typeof ViewRebuilt.Type

const readRebuild = recordDecoder(ViewRebuild, "rebuild")
const readRebuilt = recordDecoder(ViewRebuilt, "rebuilt")

/** The last request for a partition, and what the projection has said of it last. */
export class LastRebuild {
  asked: ViewRebuild | undefined
  #said: ViewRebuilt | undefined

  /** @throws RecordUnreadable */
  take({ key, value }: { readonly key: Buffer | null; readonly value: Buffer | null }): void {
    const name = key?.toString()
    if (value === null) return
    if (name === REBUILD_KEY) this.asked = readRebuild(value)
    if (name === REBUILT_KEY) this.#said = readRebuilt(value)
  }

  /** What was said of this request; undefined before something was. */
  get rebuilt(): ViewRebuilt | undefined {
    return this.#said?.id === this.asked?.id ? this.#said : undefined
  }
}

export const rebuildRecords: ReadonlyArray<RecordContract> = [
  {
    name: "progress-rebuild",
    topic: "progress",
    title: "Progress: rebuild",
    description: "An operator asks for the view of this partition to be compared and mended.",
    key: Schema.Literal(REBUILD_KEY),
    headers: macHeaders,
    value: ViewRebuild
  },
  {
    name: "progress-rebuilt",
    topic: "progress",
    title: "Progress: rebuilt",
    description: "How far the projection is with the last such request.",
    key: Schema.Literal(REBUILT_KEY),
    headers: macHeaders,
    value: ViewRebuilt
  }
]
