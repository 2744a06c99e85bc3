/**
 * The topics as clients see them that share no code with alk: every record that the running actors
 * write is known to exactly one published schema, and whoever reads `alk.events` and `alk.traces`
 * read_committed gets each record once, in order, linked, whatever was aborted in between.
 */
import { execFile } from "node:child_process"
import { hash } from "node:crypto"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Partitioners } from "kafkajs"
import { inject } from "vitest"
import { runProjection } from "../../src/actors/projection/Projection.ts"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import { signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { makeReceiptId, SYSTEM_TENANT, uuidv7 } from "../../src/domain/Identifiers.ts"
import type { Command } from "../../src/domain/records/Command.ts"
import { CommandWriter } from "../../src/domain/records/CommandWriter.ts"
import { toBatch } from "../../src/domain/records/EventBatch.ts"
import {
  RECEIPT_HEADER,
  TENANT_HEADER,
  WRITER_HEADER
} from "../../src/domain/records/RecordHeaders.ts"
import {
  FORMAT_HEADER,
  FORMAT_VERSION,
  type TopicKind,
  topicKinds,
  topicName
} from "../../src/domain/records/Topics.ts"
import { REBUILD_KEY, REBUILT_KEY } from "../../src/domain/records/ViewRebuild.ts"
import type { RegistryOperation } from "../../src/domain/registry/RegistryEntry.ts"
import { nowMicros } from "../../src/domain/Timestamp.ts"
import { factTypes } from "../../src/domain/traces/FactText.ts"
import type { RecordOtlpSpan, TraceOperation } from "../../src/domain/traces/TraceOperation.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import type { NewRecord } from "../../src/ports/EventLog.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import { StoredTopics } from "../../src/ports/TopicRows.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import { CommandLog, layerCommandLog } from "../../src/services/commands/CommandLog.ts"
import { prepareItem } from "../../src/services/ingest/Prepare.ts"
import {
  addNamedEvent,
  at,
  details,
  endExecution,
  endSpan,
  erase,
  otlpSpan,
  payloadOf,
  startExecution,
  startSpan
} from "../actors/support/Traces.ts"
import { asService } from "../support/Authenticated.ts"
import { eventually } from "../support/Eventually.ts"
import { checkFacts } from "../support/IndependentTrace.ts"
import { append, leaveTransaction, readAll, settled, withLog } from "../support/Log.ts"
import { prunedPoint } from "../support/PrunedPoints.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { faultInValue, kindsOf, publishedNames } from "./Published.ts"

const run = promisify(execFile)
const OUTPUT_BYTES_MAX = 64 * 1_048_576
const NOW = "2026-11-21T12:00:00.000000Z"
const SECRET = "a secret of the tests that is long enough"
const PARTITIONS = 2

interface Line {
  readonly partition: number
  readonly offset: number
  readonly key: string | null
  readonly headers: Record<string, string>
  readonly value?: string | null
  readonly value_base64?: string
}

const read = (prefix: string, topic: TopicKind, ...more: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const { stderr, stdout } = await run(
      process.execPath,
      ["test/independent/kafka_reader.mjs", inject("bootstrap"), topicName(prefix, topic), ...more],
      { maxBuffer: OUTPUT_BYTES_MAX }
    )
    const lines = stdout.split("\n").filter((line) => line !== "")
    return { lines: lines.map((line) => JSON.parse(line) as Line), stderr }
  })

const command = (tenantId: string, count: number, more: Partial<Command> = {}): Command => ({
  kind: "ingest",
  tenantId,
  receiptId: makeReceiptId(SECRET, tenantId, uuidv7()),
  attempt: crypto.randomUUID(),
  receivedAt: NOW,
  events: toBatch(
    Array.from({ length: count }, (_, index) => {
      const prepared = prepareItem(
        {
          ...(index % 2 === 0 ? { id: `evt-${index}` } : {}),
          actor: { id: "user-ü", type: "human", email: "a@example.com" },
          action: "document.read",
          resource: { id: "doc/1", type: "document" },
          outcome: "success",
          metadata: { index, "😀": ["\t\n", null, 1.5] }
        },
        { index, mode: "single", tenantId, acceptedAt: NOW, secret: SECRET }
      )
      if ("error" in prepared) throw new Error(prepared.error.message)
      return prepared.ok
    })
  ),
  errors: [],
  warnings: [],
  ...more
})

/** The store is no subject here: it takes everything and holds nothing. */
const storeOfNothing = Layer.mergeAll(
  Layer.succeed(StoredTopics, {
    of: () => ({
      asideTable: "nowhere",
      highest: () => Effect.succeed(undefined),
      rows: () => Effect.succeed([]),
      compare: () => Effect.succeed([]),
      remove: () => Effect.void,
      index: () => Effect.succeed(0),
      denied: () => Effect.succeed([]),
      setAside: () => Effect.void
    })
  }),
  Layer.mock(CheckpointStore, {
    insert: () => Effect.void
  }),
  Layer.mock(TraceStore, {
    eraseDetails: () => Effect.void,
    extent: () => Effect.succeed({ rows: 0, lowest: 0, highest: 0 }),
    insertFacts: () => Effect.void,
    hasDuplicates: () => Effect.succeed(false)
  }),
  Layer.mock(EventStore, {
    page: () => Effect.succeed({ bodies: [], total: 0 }),
    insertEvents: () => Effect.succeed([]),
    insertReceipts: () => Effect.void,
    insertConflicts: () => Effect.void,
    hasDuplicates: () => Effect.succeed(false),
    lastEvents: () => Effect.succeed([]),
    eraseDetails: () => Effect.void,
    eraseAgain: () => Effect.void,
    purgeErased: Effect.succeed(0)
  })
)

const settings = { ...checkpointSigner, windows: { dedup: 1_000, idempotency: 1_000 } }

const idempotency = { key: "ab".repeat(16), body: "cd".repeat(16), forgetConflict: false }
const registry = (operation: RegistryOperation): Command =>
  command(SYSTEM_TENANT, 1, { kind: "registry", operation })

const runningSpan = ({ endedAt: _, ...span }: RecordOtlpSpan): RecordOtlpSpan => span

const traces = (tenantId: string, operations: ReadonlyArray<TraceOperation>): Command =>
  command(tenantId, 0, {
    kind: "trace",
    traces: operations.map((operation, index) => ({ ...operation, index }))
  })

/** Every type of fact, with and without details, from the API and from OpenTelemetry. */
const traceCommands: ReadonlyArray<Command> = [
  traces("acme", [
    startExecution("run/1", { details: details({ agent_name: "Ü", metadata: {}, trigger: "t" }) }),
    startSpan("run/1", "step %", { details: details({ metadata: { n: 1.5 }, name: "a \n b" }) }),
    startSpan("run/1", "next", { causedBy: ["step %"] }),
    {
      ...addNamedEvent("acme", "next", "event", "tool.request"),
      payloads: [payloadOf("a value that has no room")]
    },
    endSpan("step %", { status: "FAILED", details: details({ error: "broken" }) }),
    endExecution("run/1", { details: details({ metadata: { "😀": [null] } }) })
  ]),
  traces("globex", [
    otlpSpan("trace", "child", {
      parentSpanId: "root",
      events: [
        { eventId: "o", eventType: "e", timestamp: at(1), details: details({ payload: { n: 1 } }) }
      ]
    }),
    startExecution("runs on")
  ]),
  traces("globex", [otlpSpan("trace", "root", { executionDetails: details({ agent_name: "a" }) })]),
  traces("globex", [runningSpan(otlpSpan("trace", "another root"))]),
  traces("globex", [otlpSpan("trace", "root", { details: details({ name: "" }) })]),
  traces("acme", [erase("run/1"), endExecution("nobody's")])
]

const commands: ReadonlyArray<Command> = [
  ...traceCommands,
  command("acme", 5),
  command("globex", 3),
  command("acme", 5, { idempotency }),
  command("acme", 5, { idempotency }),
  registry({ op: "create_tenant", tenant: { id: "acme", name: "Acme", created_at: NOW } }),
  registry({
    op: "create_key",
    key: {
      id: "key_1",
      tenant_id: "acme",
      scopes: ["read"],
      hint: "alk_live_abcd…",
      hash: "ab".repeat(32),
      created_at: NOW
    }
  }),
  registry({
    op: "create_link",
    link: {
      id: "lnk_1",
      tenant_id: "acme",
      filter: { actorId: "user-ü", metadata: [{ path: "index", value: "1" }] },
      hash: "cd".repeat(32),
      created_by: "key_1",
      created_at: NOW,
      expires_at: "2026-11-28T12:00:00.000000Z",
      max_uses: 2,
      uses: 0
    }
  }),
  registry({ op: "use_link", tenant_id: "acme", link_id: "lnk_1", used_at: NOW }),
  registry({
    op: "create_session",
    session: {
      id: "ses_1",
      tenant_id: "acme",
      key_id: "key_1",
      hash: "ef".repeat(32),
      created_at: NOW,
      expires_at: "2026-11-28T12:00:00.000000Z"
    }
  }),
  registry({
    op: "settle_quarantined",
    quarantine_act: { id: "1-9", state: "dropped", settled_at: NOW, settled_by: "admin" }
  }),
  registry({
    op: "note_data_version",
    data_version: { id: "topics", version: 1, program: "0.1.0", noted_at: NOW }
  }),
  registry({
    op: "grow_partitions",
    step: "begin",
    from: PARTITIONS,
    to: 2 * PARTITIONS,
    changed_at: NOW,
    data_version: { id: "topics", version: 2, program: "0.1.0", noted_at: NOW }
  }),
  registry({ op: "use_keys", uses: [{ key_id: "key_1", used_at: NOW }] }),
  registry({ op: "set_retention", tenant_id: "acme", days: 30, changed_at: NOW }),
  registry({ op: "prune", pruned: prunedPoint("acme", 1) }),
  registry({
    op: "request_deletion",
    tenant_id: "gone",
    deletion: { by: "admin", requested_at: NOW }
  }),
  registry({
    op: "delete_tenant",
    tombstone: { tenant_id: "gone", deleted_at: NOW, deleted_by: "admin" }
  }),
  registry({
    op: "add_signing_key",
    signing_key: {
      key_id: checkpointSigner.signer.keyId,
      vkey: checkpointSigner.signer.vkey,
      public_key: checkpointSigner.signer.publicKey,
      added_at: NOW
    }
  }),
  command("_probe", 0, { kind: "probe", receiptId: "a-probe" }),
  command("acme", 0, { kind: "checkpoint" }),
  command("initech", 4)
]

/** Bytes that no program can read, with headers that say whose they are. */
const unreadable: NewRecord = {
  topic: "commands",
  partition: 1,
  key: "acme",
  value: Buffer.from([0, 255, 1]),
  headers: {
    [FORMAT_HEADER]: String(FORMAT_VERSION),
    [RECEIPT_HEADER]: "of-bytes",
    [TENANT_HEADER]: "acme",
    [WRITER_HEADER]: new CommandWriter().next(nowMicros())
  }
}

/** An operator asks for a view to be compared with the topics. */
const rebuild: NewRecord = {
  topic: "progress",
  partition: 0,
  key: REBUILD_KEY,
  value: JSON.stringify({ id: "5e923378-4634-4a54-ac54-699e7c83922c", requested_at: NOW })
}

const partitions = Array.from({ length: PARTITIONS }, (_, partition) => partition)

const countOf = Effect.fnUntraced(function* (topic: TopicKind) {
  const all = yield* Effect.forEach(partitions, (partition) => readAll(topic, partition))
  return all.flat().length
})

const until = (topic: TopicKind, count: number) =>
  eventually(`${count} records of alk.${topic}`, countOf(topic), (found) => found >= count)

const runForAWhile = <A, E, R>(actor: Effect.Effect<A, E, R>) =>
  Effect.forkScoped(Effect.scoped(actor))

/** Let sequencers and a projection work on all commands, with aborted transactions around them. */
const produce = Effect.fnUntraced(
  function* (prefix: string) {
    const commandLog = yield* CommandLog
    const abort = Effect.forEach(["events", "traces"] as const, (topic) =>
      leaveTransaction(prefix, topic, ["aborted", "aborted"], "abort")
    )
    yield* abort
    for (const one of commands) yield* commandLog.submit(one)
    yield* append([unreadable])
    const sequencers = yield* Effect.forEach(partitions, (partition) =>
      runForAWhile(runSequencer(partition, settings, () => Effect.void))
    )
    yield* until("receipts", commands.length + 1)
    yield* Effect.forEach(sequencers, Fiber.interrupt)
    yield* abort
    // A second owner of each partition goes on where the first one stopped, with a key of its own.
    yield* commandLog.submit(command("acme", 2))
    yield* commandLog.submit(traces("globex", [endExecution("runs on")]))
    const signer = signerOf("alk", Buffer.alloc(32, 8))
    const changed = { ...settings, signer, previous: settings.signer }
    const successors = yield* Effect.forEach(partitions, (partition) =>
      runForAWhile(runSequencer(partition, changed, () => Effect.void))
    )
    yield* until("receipts", commands.length + 3)
    yield* abort
    yield* abort
    yield* runProjection({ settleMs: 0 })
    yield* append([rebuild])
    yield* eventually(
      "the projection says that it has compared the view",
      Effect.map(readAll("progress"), (records) => records.map(({ key }) => key?.toString())),
      (keys) => keys.includes(REBUILT_KEY)
    )
    yield* until("progress", PARTITIONS)
    yield* Effect.forEach(successors, Fiber.interrupt)
    yield* Effect.forEach(partitions, (partition) => settled(`sequencer-${partition}`))
  },
  Effect.provide(layerCommandLog),
  Effect.provide(storeOfNothing)
)

const bytesOf = ({ value, value_base64 }: Line): Buffer | undefined =>
  value_base64 !== undefined
    ? Buffer.from(value_base64, "base64")
    : value == null
      ? undefined
      : Buffer.from(value)

/** Names of the schemas by the topic that they are of, as the README tells it. */
const schemasOf = (topic: TopicKind): ReadonlyArray<string> => {
  const prefixes = {
    events: ["audit-event"],
    commands: ["command"],
    receipts: ["receipt", "attempt-verdict"],
    state: ["state-"],
    progress: ["progress"],
    quarantine: ["quarantine"],
    registry: ["registry-"],
    traces: ["trace-fact"],
    checkpoints: ["checkpoint"]
  }[topic]
  return publishedNames.filter((name) => prefixes.some((prefix) => name.startsWith(prefix)))
}

const place = Partitioners.DefaultPartitioner()

const placeOf = (key: string): number =>
  place({
    topic: "any",
    partitionMetadata: partitions.map((partitionId) => ({
      partitionErrorCode: 0,
      partitionId,
      leader: 0,
      replicas: [],
      isr: []
    })),
    message: { key, value: null }
  })

/** What leaves the changelog again while it is read. */
const LEAVING = new Set(["state-execution", "state-span", "registry-retention"])

const checkRecord = (topic: TopicKind, line: Line): string => {
  const value = bytesOf(line)
  const record = { key: line.key, headers: line.headers, value: value ?? Buffer.alloc(0) }
  const kinds = kindsOf(record, schemasOf(topic))
  assert.strictEqual(kinds.length, 1, `${topic}: ${JSON.stringify(line)}`)
  const [kind] = kinds
  if (line.headers[RECEIPT_HEADER] === "of-bytes" && topic === "commands") return kind!
  if (value === undefined && LEAVING.has(kind!)) return kind!
  assert.isDefined(value, `${topic}: an unexpected tombstone`)
  const fault = faultInValue(kind!, record.value)
  assert.isUndefined(fault, `${topic}: ${JSON.stringify(line)}`)
  return kind!
}

/** Sequence from 1, each link to the one before, each hash true to its link. */
const checkChain = (events: ReadonlyArray<Record<string, unknown>>): void => {
  let prevHash = "0".repeat(64)
  events.forEach((event, index) => {
    const { content_hash, created_at, prev_hash, sequence_number, tenant_id } = event
    assert.strictEqual(sequence_number, index + 1)
    assert.strictEqual(prev_hash, prevHash)
    const linked = ["alk-chain-v1", tenant_id, sequence_number, created_at, content_hash, prev_hash]
    assert.strictEqual(event["hash"], hash("sha256", linked.join("\n"), "hex"))
    prevHash = String(event["hash"])
  })
}

/** The facts of all tenants, judged by an implementation that shares no code with alk. */
const checkTraces = Effect.fnUntraced(function* (prefix: string) {
  const { lines, stderr } = yield* read(prefix, "traces")
  assert.strictEqual(stderr, "")
  checkFacts(lines.map(({ value }) => value!))
  for (const [tenantId, count] of Object.entries({ acme: 9, globex: 15 })) {
    const own = lines.filter(({ key }) => key === tenantId)
    assert.strictEqual(own.length, count)
    assert.isTrue(own.every(({ partition }) => partition === placeOf(tenantId)))
    own.forEach(({ headers, value }) => {
      const { chain_sequence, created_at } = JSON.parse(value!) as Record<string, unknown>
      assert.strictEqual(headers["ce_type"], "alk.trace.fact.v1")
      assert.strictEqual(headers["ce_source"], `alk/${tenantId}/traces`)
      assert.strictEqual(headers["ce_id"], String(chain_sequence))
      assert.strictEqual(headers["ce_time"], created_at)
    })
  }
  const types = lines.map(({ value }) => (JSON.parse(value!) as { readonly type: string }).type)
  assert.sameMembers([...new Set(types)], [...factTypes])
  assert.strictEqual(lines.length, 24)
})

describe("a direct subscriber", () => {
  it.live("finds every record of every topic in exactly one schema, and the chains whole", () =>
    withLog(
      (prefix) =>
        Effect.gen(function* () {
          yield* asService({ prefix }, produce(prefix))
          const seen = new Set<string>()
          for (const topic of topicKinds) {
            const { lines } = yield* read(prefix, topic)
            for (const line of lines) seen.add(checkRecord(topic, line))
          }
          // Only where others have written too, or a changelog was lost.
          const rare = ["state-given-up", "state-repair", "state-strays"]
          assert.sameMembers([...seen, ...rare], [...publishedNames])

          const { lines, stderr } = yield* read(prefix, "events")
          assert.strictEqual(stderr, "")
          const counts = { acme: 8, globex: 3, initech: 4, [SYSTEM_TENANT]: 1 }
          for (const [tenantId, count] of Object.entries(counts)) {
            const own = lines.filter(({ key }) => key === tenantId)
            assert.strictEqual(own.length, count)
            assert.isTrue(own.every(({ partition }) => partition === placeOf(tenantId)))
            const events = own.map(({ value }) => JSON.parse(value!) as Record<string, unknown>)
            checkChain(events)
            own.forEach(({ headers }, index) => {
              assert.strictEqual(headers["ce_source"], `alk/${tenantId}`)
              assert.strictEqual(headers["ce_id"], String(events[index]!["sequence_number"]))
              assert.strictEqual(headers["ce_time"], events[index]!["created_at"])
            })
          }
          assert.strictEqual(lines.length, 16)
          yield* checkTraces(prefix)
          const filtered = yield* read(prefix, "events", "--tenant", "acme")
          assert.deepStrictEqual(
            filtered.lines,
            lines.filter(({ key }) => key === "acme")
          )
        }),
      PARTITIONS
    )
  )

  it.live("reads to the end of empty partitions and of aborted tails, not past what is open", () =>
    withLog(
      (prefix) =>
        Effect.gen(function* () {
          const event = (value: string): NewRecord => ({
            topic: "events",
            partition: 0,
            key: "acme",
            value
          })
          const values = read(prefix, "events").pipe(
            Effect.map(({ lines }) => lines.map(({ value }) => value))
          )
          assert.deepStrictEqual(yield* values, [])
          yield* leaveTransaction(prefix, "events", ["lost"], "abort")
          assert.deepStrictEqual(yield* values, [])
          yield* append([event("one")])
          yield* leaveTransaction(prefix, "events", Array<string>(20).fill("lost"), "abort")
          yield* append([event("two")])
          yield* leaveTransaction(prefix, "events", ["lost"], "abort")
          yield* leaveTransaction(prefix, "events", ["lost"], "abort")
          assert.deepStrictEqual(yield* values, ["one", "two"])
          yield* leaveTransaction(prefix, "events", ["open"], "open")
          yield* append([event("behind it")])
          assert.deepStrictEqual(yield* values, ["one", "two"])
        }),
      PARTITIONS
    )
  )
})
