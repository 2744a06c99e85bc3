/**
 * The records of `alk.quarantine`: a command that could not be applied, kept as it was, and the
 * marker of the installation. A command's receipt says `failed`; one that this
 * service did not write, or wrote before, has none. Nothing else happened.
 */
import { Schema } from "effect"
import { digits, text, time } from "../Forms.ts"
import { parseJson } from "../json/Json.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"
import type { RecordContract } from "./RecordContract.ts"
import {
  COMMAND_HEADER,
  KIND_HEADER,
  MAC_HEADER,
  macHeader,
  REASON_HEADER
} from "./RecordHeaders.ts"
import { FORMAT_HEADER } from "./Topics.ts"

/** Key of the marker, partition 0. */
export const MARKER_KEY = "installation"
/** Keys and forms of the markers of versions before the first release. */
export const EARLIER_MARKER_KEY = "authenticated-from"
const EARLIER_FORMATS: ReadonlySet<unknown> = new Set([1, 2])

/** The value of the marker. */
export const Marker = Schema.Struct({
  format: Schema.Literal(3).annotate({ description: "Form of the internal records." }),
  created_at: time("When the first process of the installation was started.")
})
export type Marker = typeof Marker.Type

/** @throws RecordUnreadable */
export const readMarker: (value: string | Buffer) => Marker = recordDecoder(Marker, "marker")

/** Whether a version before the first release has written this marker. */
export const isEarlierMarker = (value: string | Buffer): boolean => {
  const marker = parseJson(value.toString()) as { readonly format?: unknown } | null
  return EARLIER_FORMATS.has(marker?.format)
}

/**
 * Why a command is there. `unreadable`: this service wrote it, and this version can't read it.
 * `failed`: it was read, and applying it failed twice. `copy`: one like it was applied before, or it
 * is not known any more. `foreign`: this service did not write it. Only the first two may be tried again.
 */
export const quarantineKinds = ["unreadable", "failed", "copy", "foreign"] as const
export type QuarantineKind = (typeof quarantineKinds)[number]

const kindHeader = Schema.Literals(quarantineKinds).annotate({
  description:
    "unreadable: it could not be read. failed: it could not be applied. copy: one like it was "
    + "written before. foreign: this service did not write it. Earlier versions did not say it."
})

export const quarantineRecords: ReadonlyArray<RecordContract> = [
  {
    name: "quarantine",
    topic: "quarantine",
    title: "Quarantined command",
    description:
      "The bytes of a command that could not be read or applied, unchanged. They may be anything; "
      + "described here is their base64 text.",
    key: digits("Offset of the command on alk.commands, same partition."),
    headers: Schema.Struct({
      [COMMAND_HEADER]: digits("The same offset."),
      [REASON_HEADER]: text("Why it could not be applied."),
      [KIND_HEADER]: Schema.optionalKey(kindHeader),
      [MAC_HEADER]: Schema.optionalKey(macHeader),
      [FORMAT_HEADER]: Schema.optionalKey(
        digits("How the command is written, as far as it is said.")
      )
    }),
    value: Schema.String.annotate({ contentEncoding: "base64" })
  },
  {
    name: "quarantine-marker",
    topic: "quarantine",
    title: "Marker of the installation",
    description:
      "Written once, to partition 0, before any other record: says with which secret the internal "
      + "records are authenticated. It is here because the topic is not compacted.",
    key: Schema.Literal(MARKER_KEY),
    headers: Schema.Struct({ [MAC_HEADER]: macHeader }),
    value: Marker
  }
]
