/**
 * The records of `alk.state`, the sequencers' changelog: whoever replays a partition from its start
 * knows what its last owner knew. The topic is compacted, a null value removes what its key named.
 */
import { Schema } from "effect"
import { ENTRY_BYTES, type WindowEntry } from "../actors/PackedWindow.ts"
import {
  APPLIED_KEY,
  DEDUP_PREFIX,
  HEAD_PREFIX,
  IDEMPOTENCY_PREFIX,
  META_KEY,
  OWNER_KEY,
  type Head
} from "../actors/SequencerState.ts"
import { form, hex16, natural, noHeaders, sequence, sha256, time } from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"

const fixedKey = (key: string) => Schema.Literal(key)

export const metaRecord: RecordContract = {
  name: "state-meta",
  topic: "state",
  title: "State: meta",
  description: "What the partition's changelog was written under.",
  key: fixedKey(META_KEY),
  headers: noHeaders,
  value: Schema.Struct({
    format: Schema.Literal(1).annotate({ description: "Version of the changelog." }),
    partitions: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
      description: "Partition count of every topic; it can't change."
    })
  })
}

export const ownerRecord: RecordContract = {
  name: "state-owner",
  topic: "state",
  title: "State: owner",
  description:
    "The first thing that a new owner of the partition writes: it has read all there is once it " +
    "reads this again.",
  key: fixedKey(OWNER_KEY),
  headers: noHeaders,
  value: Schema.Struct({
    owner: Schema.String.check(Schema.isUUID()).annotate({
      description: "Names the owner's start."
    })
  })
}

export const appliedRecord: RecordContract = {
  name: "state-applied",
  topic: "state",
  title: "State: applied",
  description: "How far the partition has come. Part of every transaction of the sequencer.",
  key: fixedKey(APPLIED_KEY),
  headers: noHeaders,
  value: Schema.Struct({
    command_offset: Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1)).annotate({
      description: "Offset on alk.commands of the last command applied; -1 before the first."
    }),
    events_next: natural("Offset on alk.events behind the last event written.")
  })
}

export const headRecord: RecordContract = {
  name: "state-head",
  topic: "state",
  title: "State: head",
  description: "The end of one tenant's chain.",
  key: form(
    new RegExp(`^${HEAD_PREFIX}(?:[a-z0-9][a-z0-9_-]{0,62}|_system)$`, "u"),
    `\`${HEAD_PREFIX}<tenant_id>\``
  ),
  headers: noHeaders,
  value: exactly<Head>()(
    Schema.Struct({
      sequence_number: sequence("Of the tenant's last event."),
      hash: sha256("Of the tenant's last event."),
      created_at: time("Of the tenant's last event.")
    })
  )
}

export const windowRecord: RecordContract = {
  name: "state-window",
  topic: "state",
  title: "State: window",
  description:
    "Entries of the window of client ids (dedup) or of Idempotency-Keys (idem) that one " +
    `transaction added. The value is binary: ${ENTRY_BYTES} bytes per entry, 16 of key, 16 of ` +
    "mark, 8 of number (unsigned, big-endian). Described here is what it unpacks to, in order.",
  key: form(
    new RegExp(`^(?:${DEDUP_PREFIX}|${IDEMPOTENCY_PREFIX})(?:0|[1-9][0-9]*)$`, "u"),
    "Window, and the number of its first entry, counted from the partition's first ever."
  ),
  headers: noHeaders,
  value: exactly<ReadonlyArray<WindowEntry>>()(
    Schema.Array(
      Schema.Struct({
        key: hex16("dedup: names tenant and event id. idem: names tenant, method, path and key."),
        mark: hex16("dedup: fingerprint of the content. idem: names the body."),
        number: natural("dedup: the sequence_number. idem: microseconds since 1970 of acceptance.")
      })
    )
  )
}
