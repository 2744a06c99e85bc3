/**
 * Sequencer, projection and verifier over topics and a database of a test's own, started and
 * stopped by hand, and the commands that make evidence: events, erasures, checkpoints.
 */
import { Effect, Layer, type Scope } from "effect"
import { layerChainEnds } from "../../../src/actors/chainEnds/ChainEndsOfLog.ts"
import { layerLogFollower } from "../../../src/actors/follower/LogFollower.ts"
import { PublishedKeys } from "../../../src/actors/follower/PublishedKeys.ts"
import { runProjection } from "../../../src/actors/projection/Projection.ts"
import { runSequencer } from "../../../src/actors/sequencer/Sequencer.ts"
import type { CheckpointRecord } from "../../../src/domain/chain/Checkpoint.ts"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { ERASURE_ACTION, ERASURE_RESOURCE_TYPE } from "../../../src/domain/events/Erasure.ts"
import { emptyFilter } from "../../../src/domain/events/EventFilter.ts"
import type { Command } from "../../../src/domain/records/Command.ts"
import { toBatch } from "../../../src/domain/records/EventBatch.ts"
import type { Progress } from "../../../src/domain/records/Progress.ts"
import { APPLIED_KEY } from "../../../src/domain/records/StateRecords.ts"
import { currentTime } from "../../../src/domain/Timestamp.ts"
import type { EventLog } from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { prepareItem } from "../../../src/services/ingest/Prepare.ts"
import { layerCheckedEvents } from "../../../src/verify/CheckedEvents.ts"
import { layerCheckedFacts } from "../../../src/verify/CheckedFacts.ts"
import { layerSignedCheckpoints } from "../../../src/verify/SignedCheckpoints.ts"
import { layerVerifier, Verifier, type VerifyRequest } from "../../../src/verify/Verifier.ts"
import { commandRecord, ingestCommand } from "../../support/Events.ts"
import { eventually } from "../../support/Eventually.ts"
import {
  append,
  decidedEnd,
  freshPrefix,
  logLayer,
  readAll,
  readAtLeast
} from "../../support/Log.ts"
import { TEST_SECRET } from "../../support/Program.ts"
import { checkpointSigner } from "../../support/Signer.ts"
import { type Stores, storeLayer } from "../../support/Store.ts"
import { Chain } from "../../verify/support/Chains.ts"

export const TENANT = "acme"
const settings = { ...checkpointSigner, windows: { dedup: 100, idempotency: 100 } }

/** Run a test on topics and a database of its own; both have the name that it is given. */
export const withView = <A, E>(
  test: (name: string) => Effect.Effect<A, E, EventLog | Stores | Scope.Scope>
) => {
  const name = freshPrefix()
  return test(name).pipe(
    Effect.scoped,
    Effect.provide(Layer.mergeAll(logLayer(name), storeLayer(name)))
  )
}

export const submit = (...commands: ReadonlyArray<Command>) =>
  append(commands.map((command) => commandRecord(command)))

export const events = (count: number): Command => ingestCommand(TENANT, count)

export const wantCheckpoint = (): Command => ({ ...ingestCommand(TENANT, 0), kind: "checkpoint" })

/** The command that erases an event's details. */
export const erasureOf = ({
  content_hash,
  id,
  sequence_number,
  tenant_id
}: AuditEvent): Command => {
  const prepared = prepareItem(
    {
      actor: { id: "key_1", type: "system" },
      action: ERASURE_ACTION,
      resource: { id, type: ERASURE_RESOURCE_TYPE },
      outcome: "success",
      metadata: { reason: "asked for", sequence_number, content_hash }
    },
    {
      index: 0,
      mode: "single",
      tenantId: tenant_id,
      acceptedAt: currentTime(),
      secret: TEST_SECRET,
      isOwn: true
    }
  )
  if ("error" in prepared) throw new Error(prepared.error.message)
  return { ...ingestCommand(tenant_id, 0), events: toBatch([prepared.ok]) }
}

const textsOf = (topic: "checkpoints" | "events") =>
  readAll(topic).pipe(Effect.map((records) => records.map(({ value }) => value!.toString())))

/** The bytes of `alk.events`. */
export const topicBodies = textsOf("events")

export const topicEvents = topicBodies.pipe(
  Effect.map((bodies) => bodies.map((body) => JSON.parse(body) as AuditEvent))
)

export const topicCheckpoints = textsOf("checkpoints").pipe(
  Effect.map((bodies) => bodies.map((body) => JSON.parse(body) as CheckpointRecord))
)

/** Run a sequencer until something has come; what it fails with ends the waiting. */
export const sequencing = <A, E, R>(awaited: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(
    runSequencer(0, settings, () => Effect.void),
    awaited
  )

/** A checkpoint of a tree of this size is in the topic. */
export const signed = (size: number) =>
  eventually(`a checkpoint of ${size} events`, topicCheckpoints, (made) =>
    made.some(({ tree_size }) => tree_size === size)
  )

/** Submit commands and run a sequencer until so many events stand in the topic. */
export const sequence = Effect.fnUntraced(function* (
  total: number,
  ...commands: ReadonlyArray<Command>
) {
  yield* submit(...commands)
  yield* sequencing(readAtLeast("events", total))
  return yield* topicEvents
})

/** The list, oldest first. */
export const listed = EventStore.use((store) =>
  store.page({ tenantId: TENANT, filter: emptyFilter, order: "asc", offset: 0, limit: 1_000 }, true)
)

/** Project for as long as the scope is open. */
export const projecting = runProjection({ settleMs: 0 })

const lastProgress = Effect.map(readAll("progress"), (records) => {
  const last = records.at(-1)
  return last?.value == null
    ? undefined
    : { offset: last.offset, ...(JSON.parse(last.value.toString()) as Progress) }
})

/** Project until the readers are told of the end of every topic; answers the list. */
export const project = Effect.fnUntraced(function* () {
  const before = (yield* lastProgress)?.offset ?? -1
  yield* projecting
  const [events, checkpoints, receipts] = [
    yield* decidedEnd("events"),
    yield* decidedEnd("checkpoints"),
    yield* decidedEnd("receipts")
  ]
  yield* eventually(
    "the readers are told of the end of every topic",
    lastProgress,
    (progress) =>
      progress !== undefined
      // What an earlier projection has said of its view says nothing of this one's.
      && progress.offset > before
      && !progress.rebuilding
      && progress.events_next >= events
      && progress.checkpoints_next >= checkpoints
      && progress.receipts_next >= receipts
  )
  return yield* listed
}, Effect.scoped)

const layerOwnKey = Layer.succeed(PublishedKeys, {
  all: Effect.sync(() => {
    const { keyId, publicKey, vkey } = checkpointSigner.signer
    const addedAt = "2026-01-01T00:00:00.000000Z"
    return [{ keyId, publicKey, vkey, trusted: "root" as const, addedAt }]
  }),
  caughtUp: Effect.void,
  refusal: () => Effect.succeed(undefined)
})

/** The chain of the topic up to a sequence, and another one behind it, freshly computed. */
export const rewritten = (bodies: ReadonlyArray<string>, kept: number, length: number) => {
  const chain = new Chain(TENANT)
  chain.bodies.push(...bodies.slice(0, kept))
  const { created_at, hash, sequence_number } = JSON.parse(bodies[kept - 1]!) as AuditEvent
  chain.head = { sequence_number, hash, created_at }
  return chain.extend(length - kept, () => ({ createdAt: created_at, outcome: "success" }))
}

/** As if a sequencer had written all that `alk.events` holds now. */
export const allSequenced = Effect.gen(function* () {
  const applied = (yield* readAll("state")).findLast(({ key }) => String(key) === APPLIED_KEY)
  const value = { ...JSON.parse(String(applied!.value)), events_next: yield* decidedEnd("events") }
  const record = { topic: "state", partition: 0, key: APPLIED_KEY } as const
  yield* append([{ ...record, value: JSON.stringify(value) }])
})

/** What a running API verifies with. */
export const layerVerification = Layer.mergeAll(
  layerVerifier,
  layerCheckedEvents,
  layerCheckedFacts
).pipe(
  Layer.provideMerge(layerSignedCheckpoints("alk").pipe(Layer.provide(layerOwnKey))),
  Layer.provideMerge(layerChainEnds(true)),
  Layer.provideMerge(layerLogFollower)
)

export const verify = (more: Partial<VerifyRequest> = {}) =>
  Verifier.use((verifier) =>
    verifier.verify({ tenantId: TENANT, requireHead: true, ...more })
  ).pipe(Effect.provide(layerVerification))
