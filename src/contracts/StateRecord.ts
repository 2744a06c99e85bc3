/**
 * The records of `alk.state`, the sequencers' changelog: whoever replays a partition from its start
 * knows what its last owner knew. The topic is compacted, a null value removes what its key named.
 */
import { Schema } from "effect"
import { ENTRY_BYTES, type WindowEntry } from "../actors/sequencer/PackedWindow.ts"
import {
  APPLIED_KEY,
  type Applied,
  CHECKPOINT_PREFIX,
  DEDUP_PREFIX,
  HAND_OVER_PREFIX,
  HEAD_PREFIX,
  IDEMPOTENCY_PREFIX,
  META_KEY,
  OWNER_KEY,
  SIGNER_KEY,
  type StoredHead,
  TRACE_HEAD_PREFIX,
  type TreeSigner,
  WRITER_PREFIX
} from "../actors/sequencer/SequencerState.ts"
import type { StoredExecution, StoredSpan } from "../actors/sequencer/traces/TraceState.ts"
import { executionStatuses } from "../domain/traces/TraceFact.ts"
import { CheckpointValue } from "./CheckpointRecord.ts"
import { form, hex16, macHeaders, natural, sequence, sha256, text, time } from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"

const fixedKey = (key: string) => Schema.Literal(key)

export const metaRecord: RecordContract = {
  name: "state-meta",
  topic: "state",
  title: "State: meta",
  description: "What the partition's changelog was written under.",
  key: fixedKey(META_KEY),
  headers: macHeaders,
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
    "The first thing that a new owner of the partition writes: it has read all there is once it "
    + "reads this again.",
  key: fixedKey(OWNER_KEY),
  headers: macHeaders,
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
  headers: macHeaders,
  value: exactly<Applied>()(
    Schema.Struct({
      command_offset: Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1)).annotate({
        description: "Offset on alk.commands of the last command applied; -1 before the first."
      }),
      events_next: natural("Offset on alk.events behind the last event written."),
      traces_next: natural("Offset on alk.traces behind the last fact written."),
      traces_forgotten: natural(
        "Executions with facts up to here, exclusive, may not be in the changelog any more."
      ),
      events_total: natural("Events ever appended: the heads of all tenants add up to it."),
      facts_total: natural("Trace facts ever appended: the trace heads add up to it."),
      writers_total: natural("What the records of the writers of commands add up to.")
    })
  )
}

const storedTree = Schema.NullOr(
  form(
    /^(?:0|[1-9][0-9]*):[A-Za-z0-9+/]*={0,2}$/u,
    "The Merkle tree: its size and the hashes of its complete subtrees."
  )
).annotate({ description: "null if the start of the chain has left the topic." })

export const headRecord: RecordContract = {
  name: "state-head",
  topic: "state",
  title: "State: head",
  description: "The end of one tenant's chain.",
  key: form(
    new RegExp(`^${HEAD_PREFIX}(?:[a-z0-9][a-z0-9_-]{0,62}|_system)$`, "u"),
    `\`${HEAD_PREFIX}<tenant_id>\``
  ),
  headers: macHeaders,
  value: exactly<StoredHead>()(
    Schema.Struct({
      sequence_number: sequence("Of the tenant's last event."),
      hash: sha256("Of the tenant's last event."),
      created_at: time("Of the tenant's last event."),
      tree: storedTree
    })
  )
}

export const traceHeadRecord: RecordContract = {
  name: "state-trace-head",
  topic: "state",
  title: "State: head of trace facts",
  description: "The end of one tenant's chain of trace facts.",
  key: form(
    new RegExp(`^${TRACE_HEAD_PREFIX}[a-z0-9][a-z0-9_-]{0,62}$`, "u"),
    `\`${TRACE_HEAD_PREFIX}<tenant_id>\``
  ),
  headers: macHeaders,
  value: exactly<StoredHead>()(
    Schema.Struct({
      sequence_number: sequence("chain_sequence of the tenant's last fact."),
      hash: sha256("Of the tenant's last fact."),
      created_at: time("Of the tenant's last fact."),
      tree: storedTree
    })
  )
}

export const stateCheckpointRecord: RecordContract = {
  name: "state-checkpoint",
  topic: "state",
  title: "State: checkpoint",
  description: "The newest checkpoint of one of a tenant's chains.",
  key: form(
    new RegExp(`^${CHECKPOINT_PREFIX}(?:[a-z0-9][a-z0-9_-]{0,62}|_system)(?:/traces)?$`, "u"),
    `\`${CHECKPOINT_PREFIX}<tenant_id>\`, of trace facts \`${CHECKPOINT_PREFIX}<tenant_id>/traces\``
  ),
  headers: macHeaders,
  value: CheckpointValue
}

const traceStatus = (description: string) =>
  Schema.Literals(executionStatuses).annotate({ description })

const anyId = (description: string) => Schema.NonEmptyString.annotate({ description })

export const executionRecord: RecordContract = {
  name: "state-execution",
  topic: "state",
  title: "State: execution",
  description:
    "An execution that the sequencer has in memory: one that runs, or has ended and is not yet "
    + "known to be in the store. In the key, `/` and `%` in ids are percent-encoded.",
  key: form(/^x\/[a-z0-9][a-z0-9_-]{0,62}\/[^/]+$/u, "`x/<tenant_id>/<execution_id>`"),
  headers: macHeaders,
  value: exactly<StoredExecution>()(
    Schema.Struct({
      status: traceStatus("Of the execution."),
      source: Schema.Literals(["api", "otlp"]),
      provisional: Schema.Boolean.annotate({
        description: "Made by OpenTelemetry spans whose root has not arrived."
      }),
      root_span_id: anyId("Its root span."),
      started_at: time("When it started."),
      started_at_given: Schema.Boolean.annotate({ description: "The client said so." }),
      ended_at: Schema.NullOr(time("When it ended.")),
      fact_count: natural("Its facts so far."),
      event_count: natural("Its trace events so far."),
      erased_through: natural("fact_number of its last erasure; 0 without one."),
      last_offset: natural("Offset on alk.traces of its last fact."),
      touched_at: natural("Microseconds since 1970 when it was last named."),
      partial: Schema.Boolean.annotate({
        description: "Spans that have no record of their own stand in the store."
      })
    })
  )
}

export const spanRecord: RecordContract = {
  name: "state-span",
  topic: "state",
  title: "State: span",
  description: "A span of an execution that the sequencer has in memory.",
  key: form(
    /^s\/[a-z0-9][a-z0-9_-]{0,62}\/[^/]+\/[^/]+$/u,
    "`s/<tenant_id>/<execution_id>/<span_id>`"
  ),
  headers: macHeaders,
  value: exactly<StoredSpan>()(
    Schema.Struct({
      parent_span_id: Schema.NullOr(anyId("Its parent; null for the root.")),
      caused_by_span_ids: Schema.Array(Schema.String),
      span_type: text("Its type."),
      status: traceStatus("Of the span."),
      started_at: time("When it started."),
      started_at_given: Schema.Boolean.annotate({ description: "The client said so." }),
      ended_at: Schema.NullOr(time("When it ended.")),
      fact_number: natural("Of its span.started."),
      details: Schema.NullOr(
        Schema.Struct({ salt: hex16("Salt of details_hash."), hash: sha256("details_hash.") })
      ).annotate({ description: "By which a repetition is recognised; null once erased." })
    })
  )
}

export const handOverRecord: RecordContract = {
  name: "state-hand-over",
  topic: "state",
  title: "State: tree handed over",
  description:
    "The last checkpoint of a tree by a signing key that was replaced. Its note names the next key: "
    + "what the old one signs of larger trees is refused.",
  key: form(
    new RegExp(
      `^${HAND_OVER_PREFIX}[0-9a-f]{8}/(?:[a-z0-9][a-z0-9_-]{0,62}|_system)(?:/traces)?$`,
      "u"
    ),
    `\`${HAND_OVER_PREFIX}<key_id>/<tenant_id>\`, of trace facts with \`/traces\` behind it`
  ),
  headers: macHeaders,
  value: CheckpointValue
}

export const signerRecord: RecordContract = {
  name: "state-signer",
  topic: "state",
  title: "State: signing key",
  description: "The key that signs the trees of the partition.",
  key: fixedKey(SIGNER_KEY),
  headers: macHeaders,
  value: exactly<TreeSigner>()(
    Schema.Struct({
      vkey: text("The public key as C2SP writes it."),
      previous: Schema.NullOr(text("The key that has handed all trees over to it.")).annotate({
        description: "null if none has."
      })
    })
  )
}

export const writerRecord: RecordContract = {
  name: "state-writer",
  topic: "state",
  title: "State: writer of commands",
  description:
    "How far the commands of one writer were applied: a command with a number that is not above "
    + "this one is a copy.",
  key: form(
    new RegExp(`^${WRITER_PREFIX}[0-9]{1,16}-[0-9a-f]{8}$`, "u"),
    `\`${WRITER_PREFIX}<microseconds since 1970 of its start>-<random>\``
  ),
  headers: macHeaders,
  value: Schema.Struct({ number: sequence("Of its last command that was applied.") })
}

export const windowRecord: RecordContract = {
  name: "state-window",
  topic: "state",
  title: "State: window",
  description:
    "Entries of the window of client ids (dedup) or of Idempotency-Keys (idem) that one "
    + `transaction added. The value is binary: ${ENTRY_BYTES} bytes per entry, 16 of key, 16 of `
    + "mark, 8 of number (unsigned, big-endian). Described here is what it unpacks to, in order.",
  key: form(
    new RegExp(`^(?:${DEDUP_PREFIX}|${IDEMPOTENCY_PREFIX})(?:0|[1-9][0-9]*)$`, "u"),
    "Window, and the number of its first entry, counted from the partition's first ever."
  ),
  headers: macHeaders,
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
