/**
 * The records of `alk.state`, the sequencers' changelog: a reader that replays a partition from its
 * start knows what its last owner knew. The topic is compacted, a null value removes what its key
 * named.
 */
import { Schema, Struct } from "effect"
import { CheckpointMember } from "../chain/Checkpoint.ts"
import { form, hex16, natural, sequence, sha256, text, time } from "../Forms.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"
import { StoredExecution, StoredSpan } from "../traces/StoredTrace.ts"
import type { RecordContract } from "./RecordContract.ts"
import { macHeaders } from "./RecordHeaders.ts"

/** One record of `alk.state`; a null value is a tombstone. */
export interface StateRecord {
  readonly key: string
  readonly value: string | Buffer | null
}

export const META_KEY = "meta"
export const OWNER_KEY = "owner"
export const APPLIED_KEY = "applied"
export const REPAIR_KEY = "repair"
export const HEAD_PREFIX = "head/"
export const TRACE_HEAD_PREFIX = "trace-head/"
export const CHECKPOINT_PREFIX = "checkpoint/"
export const EXECUTION_PREFIX = "x/"
export const SPAN_PREFIX = "s/"
export const SIGNER_KEY = "signer"
export const HAND_OVER_PREFIX = "hand-over/"
export const GIVEN_UP_PREFIX = "given-up/"
export const WRITER_PREFIX = "writer/"
export const DEDUP_PREFIX = "dedup/"
export const IDEMPOTENCY_PREFIX = "idem/"
export const STRAYS_PREFIX = "strays/"

/** Bytes of one packed entry of a window: 16 of key, 16 of fingerprint, 8 of number. */
export const ENTRY_BYTES = 40

/** What the partition's changelog was written under. */
export const Meta = Schema.Struct({
  format: Schema.Literal(1).annotate({ description: "Version of the changelog." }),
  partitions: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
    description: "Partition count of every topic when the changelog was begun."
  })
})

export const Owner = Schema.Struct({
  owner: Schema.String.check(Schema.isUUID()).annotate({ description: "Names the owner's start." })
})

/** The record `repair`. */
const StoredRepair = Schema.Struct({
  at: time("When an operator has accepted what the topics have lost.")
})

/** When the topics were last taken for what a sequencer has written. */
export const Adopted = Schema.Struct({
  at: time("When the changelog was made again from the topics."),
  events_next: natural("What alk.events held before this offset counts by its links alone."),
  traces_next: natural("What alk.traces held before this offset counts by its links alone.")
})
export type Adopted = typeof Adopted.Type

/** The record `applied`. */
export const StoredProgress = Schema.Struct({
  command_offset: Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1)).annotate({
    description: "Offset on alk.commands of the last command applied; -1 before the first."
  }),
  events_next: natural("Offset on alk.events after the last event written."),
  traces_next: natural("Offset on alk.traces after the last fact written."),
  traces_forgotten: natural(
    "Executions with facts up to here, exclusive, may not be in the changelog any more."
  ),
  heads_digest: sha256(
    "Of the heads of all chains: what the topics hold ends with them, or is not it."
  ),
  writers_total: natural("What the records of the writers of commands add up to."),
  strays_total: natural("Records of the changelog that name offsets of other programs."),
  dedup_first: natural("Ordinal of the first entry of the records `dedup/…`."),
  dedup_next: natural("Ordinal after the last one."),
  idempotency_first: natural("The same of the records `idempotency/…`."),
  idempotency_next: natural("Ordinal after the last one."),
  received_up_to: natural(
    "When the newest command that was applied was received, microseconds since 1970."
  ),
  copies_up_to: natural(
    "Which commands of that time and before were applied is not known any more, microseconds since "
      + "1970: each of them is taken for a copy. 0 where it is known."
  ),
  awaited: Schema.optionalKey(Schema.Literal(true)).annotate({
    description: "A request waits until what this transaction has written is shown."
  }),
  adopted: Schema.optionalKey(Adopted).annotate({
    description:
      "The changelog was lost and was made again from the topics. No MAC says of what they held then "
      + "that a sequencer had written it."
  })
})
export type StoredProgress = typeof StoredProgress.Type

const tree = Schema.NullOr(
  form(
    /^(?:0|[1-9][0-9]*):[A-Za-z0-9+/]*={0,2}$/u,
    "The Merkle tree: its size and the hashes of its complete subtrees."
  )
).annotate({ description: "null if the start of the chain has left the topic." })

/** The record `head/<tenant>`. */
export const StoredHead = Schema.Struct({
  sequence_number: sequence("Of the tenant's last event."),
  hash: sha256("Of the tenant's last event."),
  created_at: time("Of the tenant's last event."),
  tree
})
export type StoredHead = typeof StoredHead.Type

/** The record `trace-head/<tenant>`. */
const StoredTraceHead = Schema.Struct({
  sequence_number: sequence("chain_sequence of the tenant's last fact."),
  hash: sha256("Of the tenant's last fact."),
  created_at: time("Of the tenant's last fact."),
  tree
})

/** The record `signer`. */
export const TreeSigner = Schema.Struct({
  vkey: text("The public key as C2SP writes it."),
  previous: Schema.NullOr(text("The key that has handed all trees over to it.")).annotate({
    description: "null if none has."
  })
})
export type TreeSigner = typeof TreeSigner.Type

/** The record `writer/<writer>`. */
export const StoredWriter = Schema.Struct({
  number: sequence("Of its last command that was applied.")
})

/** The record `strays/<chain>/<first offset>`. */
export const StoredStrays = Schema.Struct({
  next: sequence("Offset after the last of them.")
})

/** An entry of a window, unpacked. */
export const WindowEntry = Schema.Struct({
  key: hex16("dedup: names tenant and event id. idem: names tenant, method, path and key."),
  fingerprint: hex16("dedup: fingerprint of the content. idem: names the body."),
  number: natural("dedup: the sequence_number. idem: microseconds since 1970 of acceptance.")
})
export type WindowEntry = typeof WindowEntry.Type

/** @throws RecordUnreadable */
export const readMeta = recordDecoder(Meta.mapFields(Struct.pick(["partitions"])), "meta")
/** @throws RecordUnreadable */
export const readOwner = recordDecoder(Schema.Struct({ owner: text("Its start.") }), "owner")
/** @throws RecordUnreadable */
export const readTreeSigner = recordDecoder(TreeSigner, "signer")
/** @throws RecordUnreadable */
export const readWriter = recordDecoder(StoredWriter, "writer")
/** @throws RecordUnreadable */
export const readStrays = recordDecoder(StoredStrays, "strays")
/** @throws RecordUnreadable */
export const readApplied = recordDecoder(StoredProgress, "applied")

const contracts: ReadonlyArray<Omit<RecordContract, "topic" | "headers">> = [
  {
    name: "state-meta",
    title: "State: meta",
    description: "What the partition's changelog was written under.",
    key: Schema.Literal(META_KEY),
    value: Meta
  },
  {
    name: "state-owner",
    title: "State: owner",
    description:
      "The first thing that a new owner of the partition writes: it has read all there is once it "
      + "reads this again.",
    key: Schema.Literal(OWNER_KEY),
    value: Owner
  },
  {
    name: "state-applied",
    title: "State: applied",
    description: "How far the partition has come. Part of every transaction of the sequencer.",
    key: Schema.Literal(APPLIED_KEY),
    value: StoredProgress
  },
  {
    name: "state-repair",
    title: "State: repair",
    description:
      "An operator accepts what the topics have lost: the next owner says what that is, goes on "
      + "without it and removes this record.",
    key: Schema.Literal(REPAIR_KEY),
    value: StoredRepair
  },
  {
    name: "state-head",
    title: "State: head",
    description: "The end of one tenant's chain.",
    key: form(
      new RegExp(`^${HEAD_PREFIX}(?:[a-z0-9][a-z0-9_-]{0,62}|_system)$`, "u"),
      `\`${HEAD_PREFIX}<tenant_id>\``
    ),
    value: StoredHead
  },
  {
    name: "state-trace-head",
    title: "State: head of trace facts",
    description: "The end of one tenant's chain of trace facts.",
    key: form(
      new RegExp(`^${TRACE_HEAD_PREFIX}[a-z0-9][a-z0-9_-]{0,62}$`, "u"),
      `\`${TRACE_HEAD_PREFIX}<tenant_id>\``
    ),
    value: StoredTraceHead
  },
  {
    name: "state-checkpoint",
    title: "State: checkpoint",
    description: "The newest checkpoint of one of a tenant's chains.",
    key: form(
      new RegExp(`^${CHECKPOINT_PREFIX}(?:[a-z0-9][a-z0-9_-]{0,62}|_system)(?:/traces)?$`, "u"),
      `\`${CHECKPOINT_PREFIX}<tenant_id>\`, of trace facts \`${CHECKPOINT_PREFIX}<tenant_id>/traces\``
    ),
    value: CheckpointMember
  },
  {
    name: "state-execution",
    title: "State: execution",
    description:
      "An execution that the sequencer has in memory: one that runs, or has ended and is not yet "
      + "known to be in the store. In the key, `/` and `%` in ids are percent-encoded.",
    key: form(/^x\/[a-z0-9][a-z0-9_-]{0,62}\/[^/]+$/u, "`x/<tenant_id>/<execution_id>`"),
    value: StoredExecution
  },
  {
    name: "state-span",
    title: "State: span",
    description: "A span of an execution that the sequencer has in memory.",
    key: form(
      /^s\/[a-z0-9][a-z0-9_-]{0,62}\/[^/]+\/[^/]+$/u,
      "`s/<tenant_id>/<execution_id>/<span_id>`"
    ),
    value: StoredSpan
  },
  {
    name: "state-window",
    title: "State: window",
    description:
      "Entries of the window of client ids (dedup) or of Idempotency-Keys (idem) that one "
      + `transaction added. The value is binary: ${ENTRY_BYTES} bytes per entry, 16 of key, 16 of `
      + "fingerprint, 8 of number (unsigned, big-endian). Described here is what it unpacks to, in order.",
    key: form(
      new RegExp(`^(?:${DEDUP_PREFIX}|${IDEMPOTENCY_PREFIX})(?:0|[1-9][0-9]*)$`, "u"),
      "Window, and the number of its first entry, counted from the partition's first ever."
    ),
    value: Schema.Array(WindowEntry)
  },
  {
    name: "state-hand-over",
    title: "State: tree handed over",
    description:
      "The last checkpoint of a tree by a signing key that was replaced. Its note names the next key: "
      + "what the old one signs of larger trees is refused.",
    key: form(
      new RegExp(
        `^${HAND_OVER_PREFIX}[0-9a-f]{8}/(?:[a-z0-9][a-z0-9_-]{0,62}|_system)(?:/traces)?$`,
        "u"
      ),
      `\`${HAND_OVER_PREFIX}<key_id>/<tenant_id>\`, of trace facts with \`/traces\` after it`
    ),
    value: CheckpointMember
  },
  {
    name: "state-given-up",
    title: "State: checkpoint given up",
    description:
      "A checkpoint that the log does not lead to: an operator has accepted that, and checkpoints of "
      + "the tree up to its size that were made until then refuse the partition no more.",
    key: form(
      new RegExp(`^${GIVEN_UP_PREFIX}(?:[a-z0-9][a-z0-9_-]{0,62}|_system)(?:/traces)?$`, "u"),
      `\`${GIVEN_UP_PREFIX}<tenant_id>\`, of trace facts \`${GIVEN_UP_PREFIX}<tenant_id>/traces\``
    ),
    value: CheckpointMember
  },
  {
    name: "state-signer",
    title: "State: signing key",
    description: "The key that signs the trees of the partition.",
    key: Schema.Literal(SIGNER_KEY),
    value: TreeSigner
  },
  {
    name: "state-writer",
    title: "State: writer of commands",
    description:
      "How far the commands of one writer were applied: a command with a number that is not above "
      + "this one is a copy.",
    key: form(
      new RegExp(`^${WRITER_PREFIX}[0-9]{1,16}-[0-9a-f]{8}$`, "u"),
      `\`${WRITER_PREFIX}<microseconds since 1970 of its start>-<random>\``
    ),
    value: StoredWriter
  },
  {
    name: "state-strays",
    title: "State: records of others",
    description:
      "Offsets of alk.events or alk.traces that hold nothing which the sequencer has written: the "
      + "first is in the key. Nothing beyond the offsets in `applied` is the sequencer's either.",
    key: form(
      new RegExp(`^${STRAYS_PREFIX}(?:events|traces)/(?:0|[1-9][0-9]*)$`, "u"),
      `\`${STRAYS_PREFIX}<events or traces>/<first offset>\``
    ),
    value: StoredStrays
  }
]

export const stateRecords: ReadonlyArray<RecordContract> = contracts.map((contract) => ({
  ...contract,
  topic: "state",
  headers: macHeaders
}))
