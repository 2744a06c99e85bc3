/**
 * Everything behind the HTTP API, in memory: the real pure step of the sequencer over arrays, so
 * that sequence numbers, duplicates and idempotency are true, and switches for what may go wrong.
 */

import { Deferred, Effect, Layer, Redacted, Stream } from "effect"
import { ChainEnds } from "../../../src/actors/chainEnds/ChainEnds.ts"
import { LiveFeed, TooManyStreams } from "../../../src/actors/feeds/LiveFeed.ts"
import { ResumePointInvalid } from "../../../src/actors/feeds/LiveStream.ts"
import { Readers } from "../../../src/actors/feeds/Subscriber.ts"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import { Keys, type Principal } from "../../../src/actors/follower/Keys.ts"
import { RegistryView } from "../../../src/actors/follower/LogFollower.ts"
import {
  type Decision,
  type ReceiptState,
  Receipts
} from "../../../src/actors/follower/Receipts.ts"
import { WrittenEvents } from "../../../src/actors/follower/WrittenEvents.ts"
import { ProjectionProgress } from "../../../src/actors/log/ProjectionProgress.ts"
import { erasedTargetOf } from "../../../src/actors/projection/ProjectionErasure.ts"
import { advance } from "../../../src/actors/sequencer/Changelog.ts"
import { emptyState } from "../../../src/actors/sequencer/SequencerState.ts"
import { step } from "../../../src/actors/sequencer/SequencerStep.ts"
import { treeOfCheckpoint } from "../../../src/domain/chain/Checkpoint.ts"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import type { EventFilter } from "../../../src/domain/events/EventFilter.ts"
import { eraseEvent } from "../../../src/domain/events/HashChain.ts"
import { SYSTEM_TENANT, sha256Hex } from "../../../src/domain/Identifiers.ts"
import type { Command } from "../../../src/domain/records/Command.ts"
import { decodeCommand, encodeCommand } from "../../../src/domain/records/CommandBytes.ts"
import { everythingOwn } from "../../../src/domain/records/OwnOffsets.ts"
import { noProgress } from "../../../src/domain/records/Progress.ts"
import type { Receipt } from "../../../src/domain/records/Receipt.ts"
import { partitionedTopics } from "../../../src/domain/records/Topics.ts"
import { Placement } from "../../../src/domain/registry/Placement.ts"
import { currentTime } from "../../../src/domain/Timestamp.ts"
import { ExportAnswers } from "../../../src/http/exports/ExportAnswers.ts"
import { ExportJobs } from "../../../src/http/exports/jobs/ExportJobs.ts"
import { notFound } from "../../../src/http/messages/ApiError.ts"
import { ApiSettings, type Settings } from "../../../src/http/messages/ApiSettings.ts"
import { Readiness } from "../../../src/http/operations/Readiness.ts"
import {
  type ConsoleBundle,
  ConsoleFiles,
  ConsoleUnavailable
} from "../../../src/ports/ConsoleFiles.ts"
import { EventLog, type LogUnavailable } from "../../../src/ports/EventLog.ts"
import {
  type EventListQuery,
  type EventPageQuery,
  EventStore,
  type KeysetPages,
  type Stats,
  StatsTooLarge,
  StoreUnavailable
} from "../../../src/ports/EventStore.ts"
import { SqlRefused, SqlStore } from "../../../src/ports/SqlStore.ts"
import { layerKeys } from "../../../src/services/administration/Administration.ts"
import { KeyUses } from "../../../src/services/administration/KeyUses.ts"
import { layerPartitionGrowth } from "../../../src/services/administration/PartitionGrowth.ts"
import {
  type QuarantinedBytes,
  QuarantineTopic
} from "../../../src/services/administration/QuarantineTopic.ts"
import { layerSessions } from "../../../src/services/administration/Sessions.ts"
import { layerShareLinks } from "../../../src/services/administration/ShareLinks.ts"
import { layerSystemAuditLog } from "../../../src/services/administration/SystemAuditLog.ts"
import { layerPrunedTrees } from "../../../src/services/checkpoints/PrunedTrees.ts"
import {
  CommandLog,
  type CommandLogBusy,
  type CommandTooLarge
} from "../../../src/services/commands/CommandLog.ts"
import { COMMIT_TIMEOUT_MS } from "../../../src/services/ingest/Ingest.ts"
import { makeRecentEvents, RecentEvents } from "../../../src/services/ingest/RecentEvents.ts"
import { EventErasures } from "../../../src/services/retention/EventErasures.ts"
import { layerRetentions } from "../../../src/services/retention/Retentions.ts"
import { SignedCheckpoints } from "../../../src/verify/SignedCheckpoints.ts"
import { type Break, Verifier, type VerifyRequest } from "../../../src/verify/Verifier.ts"
import { eventuallyAsync } from "../../support/Eventually.ts"
import { matches } from "../../support/Matches.ts"
import { eventsIn } from "../../support/PackedEvents.ts"
import { ForwardClock } from "./ForwardClock.ts"
import { layerProofs, ProofWorld, SIGNER } from "./ProofDoubles.ts"
import { layerTraces, TraceWorld } from "./TraceDoubles.ts"

export const SECRET = "a secret of the tests, 32 characters long"
export const ADMIN_TOKEN = "admin-token-of-the-tests"
export const WRITE_KEY = `alk_live_${"w".repeat(43)}`
export const READ_KEY = `svc_live_${"r".repeat(43)}`
export const OTHER_KEY = `alk_live_${"o".repeat(43)}`

const BUCKETS_MAX = 10_000
const windows = { dedup: 1_000, idempotency: 1_000 }

const principals: Readonly<Record<string, Principal>> = {
  [WRITE_KEY]: { tenantId: "acme", keyId: "key_write", scopes: ["write"] },
  [READ_KEY]: { tenantId: "acme", keyId: "key_read", scopes: ["read"] },
  [OTHER_KEY]: { tenantId: "globex", keyId: "key_other", scopes: ["read", "write"] },
  [ADMIN_TOKEN]: { tenantId: SYSTEM_TENANT, keyId: "admin", scopes: ["read"] }
}

export const settings: Settings = {
  host: "127.0.0.1",
  port: 0,
  hasConsole: true,
  publicUrl: undefined,
  corsOrigins: [],
  fastAccept: true,
  anyAction: false,
  limits: {
    bodyBytesMax: 1_048_576,
    bodyBudgetBytes: 16 * 1_048_576,
    eventBytesMax: 65_536,
    metadataBytesMax: 32_768,
    payloadBytesMax: 65_536,
    actionLengthMax: 128
  },
  streamsPerTenantMax: 100,
  eventsPerSecondMax: undefined,
  exportsAtOnceMax: undefined,
  failedKeysPerMinuteMax: 1_000,
  secret: Redacted.make(SECRET),
  serviceName: "alk",
  requestLog: "all",
  topicRetentionMs: "forever"
}

const unreachable = (operation: string) =>
  new StoreUnavailable({ operation, cause: new Error("no store in this test") })

const parse = (body: string): AuditEvent => JSON.parse(body) as AuditEvent

/** The state behind one test server, and the switches. */
export class World {
  /** What time it is for the server. */
  readonly clock = new ForwardClock()
  readonly state = emptyState(0, 1, windows)
  readonly commands: Array<Command> = []
  readonly bodies: Array<string> = []
  /** What the topic has at an offset, where that is not what is stored. */
  readonly written = new Map<number, string | "removed">()
  readonly receipts = new Map<string, Receipt>()
  readonly decisions = new Map<string, Deferred.Deferred<Decision>>()
  readonly proofs = new ProofWorld()
  readonly traces = new TraceWorld()
  /** Nobody works on partitions that were added. */
  probesStuck = false
  /** Where tenants are; partitions of each topic. */
  readonly placement = new Placement(1)
  counted = 1
  /** What is on `alk.quarantine`. */
  readonly quarantined: Array<QuarantinedBytes> = []
  /** undefined: the admin routes are closed. */
  adminToken: Redacted.Redacted | undefined = Redacted.make(ADMIN_TOKEN)
  /** Ids of the keys that were used, each time. */
  readonly used: Array<string> = []
  /** Who a key belongs to. */
  readonly principals = new Map(Object.entries(principals))
  readonly streams: Array<{ readonly filter: EventFilter; readonly after: number | undefined }> = []
  /** What the projection of this process has stored last. */
  readonly recent = makeRecentEvents()
  /** Whether the projection runs in this process. */
  projects = false
  /** What the next `submit` fails with. */
  refuse: CommandLogBusy | CommandTooLarge | LogUnavailable | undefined
  /** Written, but nobody decides. */
  undecided = false
  /** Decided, but not shown. */
  invisible = false
  storeDown = false
  /** A scan breaks off after the first chunk. */
  scanBreaks = false
  /** Milliseconds that each chunk of a scan takes. */
  scanMs = 0
  /** What the store waits for before it answers a statement, and after the first chunk of a scan. */
  storeGate: Effect.Effect<void> = Effect.void
  rebuilding = false
  statsTooLarge = false
  /** What is counted, whatever is there. */
  stats: Stats | undefined
  ready = true
  /** Whoever asks whether it is ready waits for ever. */
  stuck = false
  /** undefined: it can't be built. */
  console: ConsoleBundle | undefined = {
    entry: "main-A1.js",
    styles: "main-B2.css",
    preloads: ["chunk-C3.js"],
    layoutWorker: "Layout-D4.js",
    packWorker: "Pack-E5.js",
    files: new Map([
      ["main-A1.js", "run()"],
      ["main-B2.css", "a {}"],
      ["chunk-C3.js", "export const part = 1"]
    ])
  }
  /** How often somebody has asked. */
  asked = 0
  streamsMax = 100
  sse: Stream.Stream<Uint8Array> = Stream.never
  breaks: ReadonlyArray<Break> = []
  /** What the verifier was asked. */
  readonly verified: Array<VerifyRequest> = []
  /** Lines of progress that the verifier tells, each more than a second of the clock apart. */
  verifySeconds = 0
  /** What the verifier waits for before it tells the first of them. */
  verifyHeld: Deferred.Deferred<void> | undefined
  checkpoints: SignedCheckpoints["Service"] = SignedCheckpoints.none
  /** Throws in a handler: a defect that nobody expected. */
  defect: Error | undefined

  constructor() {
    const tenant = { id: "acme", created_at: "2026-01-01T00:00:00.000000Z" }
    this.state.registry.take([{ kind: "tenant", tenant }])
  }

  /** The first command, once it is written. */
  async firstCommand(): Promise<Command> {
    return (await eventuallyAsync("a command is written", () => this.commands[0]))!
  }

  /** So many commands more are written, and the time is over that requests wait for them. */
  async waitIsOver(commands: number): Promise<void> {
    const total = this.commands.length + commands
    await eventuallyAsync(
      `${total} commands are written`,
      () => this.commands,
      ({ length }) => length >= total
    )
    this.clock.forward(COMMIT_TIMEOUT_MS)
  }

  decide(command: Command): void {
    const now = currentTime()
    const value = encodeCommand(command)
    const arrival = { offset: this.state.applied + 1, value, command: decodeCommand(value) }
    const changes = step(this.state, [arrival], { serviceName: "alk", signer: SIGNER }, now)
    const { traces } = changes
    const events = eventsIn(changes)
    advance(this.state, changes, {
      eventsNext: this.state.eventsNext + events.length,
      tracesNext: this.state.tracesNext + traces.facts.length,
      strays: []
    })
    for (const { body } of traces.facts) this.traces.project(body)
    for (const { body, hash, tenantId } of events) {
      this.erase(body)
      this.bodies.push(body)
      const hashes = this.proofs.hashes.get(tenantId) ?? []
      this.proofs.hashes.set(tenantId, hashes)
      hashes.push(hash)
    }
    this.proofs.stored.push(...changes.checkpoints)
    if (this.projects) {
      const { eventsNext } = this.state
      const rows = events.map(({ body }, index) => ({
        partition: 0,
        offset: eventsNext - events.length + index,
        body: Buffer.from(body)
      }))
      this.recent.keep(rows)
    }
    for (const { attempt, receipt } of changes.receipts) {
      const final = { ...receipt, ids: [...receipt.ids], events_next: this.state.eventsNext }
      this.receipts.set(receipt.receipt_id, final)
      this.settle(attempt, { kind: "outcome", receipt: final, receiptOffset: 0 })
    }
    for (const { attempt, receipt_id, verdict, waited } of changes.verdicts) {
      this.settle(
        attempt,
        verdict === "mismatch"
          ? { kind: "mismatch" }
          : { kind: "repeat", receiptId: receipt_id, waited }
      )
    }
  }

  /** What the projection does before it stores an event that erases another one. */
  erase(body: string): void {
    const erasure = erasedTargetOf(Buffer.from(body))
    const tenantId = parse(body).tenant_id
    for (const { erasedAt, sequenceNumber } of erasure === undefined ? [] : [erasure]) {
      const at = this.bodies.findIndex((stored) => {
        const { sequence_number, tenant_id } = parse(stored)
        return tenant_id === tenantId && sequence_number === sequenceNumber
      })
      const event = parse(this.bodies[at]!)
      if (event.erased_at === undefined) this.bodies[at] = eraseEvent(event, erasedAt)
    }
  }

  settle(attempt: string, decision: Decision): void {
    const waiting = this.decisions.get(attempt)
    if (waiting !== undefined) Deferred.doneUnsafe(waiting, Effect.succeed(decision))
  }

  matching(
    tenantId: string,
    filter: EventFilter,
    order: "asc" | "desc",
    sort?: EventListQuery["sort"]
  ): Array<string> {
    const found = this.bodies.filter((body) => {
      const event = parse(body)
      return event.tenant_id === tenantId && matches(filter, event)
    })
    const timeOf = (body: string) => parse(body).timestamp
    if (sort === "timestamp") found.sort((a, b) => Number(timeOf(a) > timeOf(b)) * 2 - 1)
    return order === "asc" ? found : found.reverse()
  }
}

const commandLog = (world: World) =>
  CommandLog.of({
    submit: (command) =>
      Effect.suspend(() => {
        if (world.defect !== undefined) throw world.defect
        if (world.refuse !== undefined) return Effect.fail(world.refuse)
        world.commands.push(command)
        const isStuck = world.undecided || (world.probesStuck && command.kind === "probe")
        if (!isStuck) world.decide(command)
        return Effect.void
      })
  })

const receiptsOf = (world: World) =>
  Receipts.of({
    expect: (attempt) =>
      Effect.sync(() => {
        const deferred = Deferred.makeUnsafe<Decision>()
        world.decisions.set(attempt, deferred)
        return Deferred.await(deferred).pipe(
          Effect.ensuring(Effect.sync(() => world.decisions.delete(attempt)))
        )
      }),
    state: (tenantId, receiptId) =>
      Effect.suspend((): Effect.Effect<ReceiptState, StoreUnavailable> => {
        if (world.storeDown) return Effect.fail(unreachable("receipt"))
        const receipt = world.receipts.get(receiptId)
        return Effect.succeed(
          receipt === undefined || receipt.tenant_id !== tenantId || world.invisible
            ? { status: "pending" }
            : { status: receipt.status, receipt }
        )
      }),
    visible: () => (world.invisible ? Effect.never : Effect.void)
  })

const guarded = <A>(world: World, operation: string, answer: () => A) =>
  Effect.suspend(() =>
    world.storeDown ? Effect.fail(unreachable(operation)) : Effect.sync(answer)
  )

const page = (world: World, query: EventPageQuery) => {
  const { afterSequence = -1, beforeSequence = Infinity, filter, limit, offset, order } = query
  const all = world.matching(query.tenantId, filter, order, query.sort)
  const inCursor = all.filter((body) => {
    const { sequence_number } = parse(body)
    return sequence_number > afterSequence && sequence_number < beforeSequence
  })
  return { bodies: inCursor.slice(offset, offset + limit), total: all.length }
}

/** By going through every match. */
const keysetPages = (world: World, query: EventPageQuery): KeysetPages => {
  const { afterSequence, beforeSequence, filter, limit, order, tenantId } = query
  const isAscending = order === "asc"
  const [cursor, end] = isAscending
    ? [afterSequence, beforeSequence ?? Infinity]
    : [beforeSequence, afterSequence ?? 0]
  const sequences = world
    .matching(tenantId, filter, order)
    .map((body) => parse(body).sequence_number)
  const boundOf = (found: ReadonlyArray<number>): number | undefined => {
    const first = found.slice(-limit)[0]
    return first === undefined ? undefined : isAscending ? first - 1 : first + 1
  }
  const isBefore = (left: number, right: number) => (isAscending ? left < right : left > right)
  return {
    previous: boundOf(
      sequences.filter((one) => cursor !== undefined && (one === cursor || isBefore(one, cursor)))
    ),
    last: boundOf(sequences.filter((one) => isBefore(one, end)))
  }
}

/** Says what it was asked, and refuses what is no SELECT. */
const sqlOf = (world: World) =>
  Layer.mock(SqlStore, {
    answer: (question) => {
      if (world.storeDown) return Effect.fail(unreachable("sql"))
      const answer = JSON.stringify({ meta: [], data: [{ ...question }], rows: 1 })
      return question.sql.startsWith("SELECT")
        ? Effect.as(world.storeGate, { bytes: Buffer.from(answer), columns: [] })
        : Effect.fail(new SqlRefused({ message: "only SELECT can be asked" }))
    },
    events: ({ fields, filter, order, tenantId }) =>
      guarded(world, "events", () =>
        Buffer.from(
          JSON.stringify({ fields, rows: world.matching(tenantId, filter, order).length })
        )
      )
  })

const storeOf = (world: World) =>
  Layer.mock(EventStore, {
    keysetPages: (query) => guarded(world, "keysetPages", () => keysetPages(world, query)),
    page: (query) => guarded(world, "page", () => page(world, query)),
    scan: ({ filter, order, tenantId }) =>
      world.storeDown
        ? Stream.fail(unreachable("scan"))
        : Stream.fromIterable(world.matching(tenantId, filter, order)).pipe(
            Stream.grouped(2),
            Stream.mapEffect((bodies, at) =>
              at > 0 && world.scanBreaks
                ? Effect.fail(unreachable("scan"))
                : Effect.delay(
                    at > 0 ? Effect.as(world.storeGate, bodies) : Effect.succeed(bodies),
                    world.scanMs
                  )
            )
          ),
    byId: (tenantId, id, sequence) =>
      guarded(world, "byId", () => {
        const body = world.bodies.find((one) => {
          const event = parse(one)
          return (
            event.tenant_id === tenantId
            && event.id === id
            && (sequence === undefined || event.sequence_number === sequence)
          )
        })
        return body === undefined
          ? undefined
          : {
              body,
              sequenceNumber: parse(body).sequence_number,
              offset: world.bodies.indexOf(body)
            }
      }),
    stats: ({ filter, limit, tenantId }) =>
      world.statsTooLarge
        ? Effect.fail(new StatsTooLarge({ bucketsMax: BUCKETS_MAX }))
        : guarded(world, "stats", () => {
            if (world.stats !== undefined) return world.stats
            const total = world.matching(tenantId, filter, "asc").length
            const groups = [{ keys: ["document.read"], count: total }]
            return { groups: groups.slice(0, limit), other: 0, missing: 0, total }
          }),
    facets: ({ fields, filter, limit, tenantId }) =>
      guarded(world, "facets", () => {
        const total = world.matching(tenantId, filter, "asc").length
        const groups = [{ key: "document.read", count: total }].slice(0, limit)
        return { facets: fields.map((field) => ({ field, groups, values: 1, missing: 0 })), total }
      }),
    rows: (tenantId, from, to) =>
      Stream.fromIterable(world.matching(tenantId, { metadata: [] }, "asc")).pipe(
        Stream.map((body) => ({
          sequenceNumber: parse(body).sequence_number,
          version: 0,
          body,
          wrongColumns: []
        })),
        Stream.filter(({ sequenceNumber }) => sequenceNumber >= from && sequenceNumber <= to),
        Stream.grouped(10)
      )
  })

const feedOf = (world: World) =>
  LiveFeed.of({
    subscribe: ({ after, filter, tenantId }) =>
      Effect.suspend(
        (): Effect.Effect<Stream.Stream<Uint8Array>, ResumePointInvalid | TooManyStreams> => {
          if (world.streams.length >= world.streamsMax) {
            return Effect.fail(new TooManyStreams({ limit: world.streamsMax }))
          }
          const head = world.state.heads.get(tenantId)?.sequence_number ?? 0
          if (after !== undefined && after > head) {
            return Effect.fail(new ResumePointInvalid({ message: "beyond the head" }))
          }
          world.streams.push({ filter, after })
          return Effect.succeed(world.sse)
        }
      ),
    admit: () => Effect.void,
    readers: new Readers(),
    subscribers: Effect.sync(() => world.streams.length)
  })

/** The real administration over the registry of the world, and the keys that every test knows. */
const keysOf = (world: World) =>
  Layer.effect(
    Keys,
    Effect.gen(function* () {
      const keys = yield* Keys
      return Keys.of({
        ...keys,
        known: (keyId) => {
          const own = [...world.principals].find(([, principal]) => principal.keyId === keyId)
          if (own === undefined) return keys.known(keyId)
          return { principal: own[1], hash: sha256Hex(own[0]), expiresAt: undefined }
        },
        authenticate: (token) =>
          world.principals.get(token) === undefined
            ? keys.authenticate(token)
            : Effect.succeed(world.principals.get(token)!)
      })
    })
  ).pipe(
    Layer.provide(layerKeys({ adminToken: world.adminToken, bootstrapKeys: [] })),
    Layer.provide([actsOf(world), headsOf(world), usesOf(world)])
  )

/** Where the chains end, as the world's sequencer has it. */
const headsOf = (world: World) =>
  Layer.succeed(Heads, {
    head: (tenantId) => Effect.sync(() => world.state.heads.get(tenantId)),
    traceHead: (tenantId) => Effect.sync(() => world.state.traceHeads.get(tenantId)),
    written: () => Effect.succeed(Number.MAX_SAFE_INTEGER),
    own: () => Effect.succeed(everythingOwn),
    decided: (_chain, _partition, own) => Effect.succeed({ own, rest: [] }),
    losses: () => Effect.succeed(undefined),
    reached: ({ chain, tenantId }) =>
      Effect.sync(() =>
        (chain === "events" ? world.state.heads : world.state.traceHeads).get(tenantId)
      ),
    trees: Effect.sync(() => [...world.state.heads.keys()])
  })

/** Which keys were used; nothing is written. */
const usesOf = (world: World) =>
  Layer.succeed(KeyUses, { note: (keyId) => void world.used.push(keyId) })

const verifierOf = (world: World) => {
  const verify: Verifier["Service"]["verify"] = Effect.fnUntraced(function* (request) {
    const { verifyHeld, verifySeconds } = world
    world.verified.push(request)
    if (world.storeDown) return yield* unreachable("verify")
    if (verifyHeld !== undefined) yield* Deferred.await(verifyHeld)
    for (let second = 1; second <= verifySeconds; second++) {
      world.clock.forward(1_100)
      yield* request.onProgress?.({
        eventsChecked: second,
        upToSequence: second,
        hash: "f".repeat(64),
        of: verifySeconds,
        breaksTotal: 0
      }) ?? Effect.void
    }
    return {
      valid: world.breaks.length === 0,
      status: world.breaks.length === 0 ? ("valid" as const) : ("broken" as const),
      tenant_id: request.tenantId,
      scheme: "alk-chain-v1" as const,
      bounds: {
        from: request.from ?? "1970-01-01T00:00:00.000000Z",
        to: request.to ?? "2261-12-31T23:59:59.999999Z",
        from_sequence: request.fromSequence ?? null,
        to_sequence: request.toSequence ?? null
      },
      events_checked: world.bodies.length,
      events_in_bounds: world.bodies.length,
      first_sequence_number: null,
      last_sequence_number: null,
      head: null,
      erased_events: 0,
      assurance: "self_attested" as const,
      breaks: world.breaks,
      breaks_total: world.breaks.length,
      verified_at: "2026-01-01T00:00:00.000000Z",
      duration_ms: request.requireHead ? 1 : 0
    }
  })
  return Verifier.of({ verify, verifyTenant: verify })
}

/** The registry as the world's sequencer has it: nobody has to wait for it. */
const registryOf = (world: World) =>
  RegistryView.of({
    registry: () => world.state.registry,
    until: () => Effect.never,
    caughtUp: Effect.sync(() => {
      const partitions = world.state.registry.partitions()
      if (partitions !== undefined) world.placement.take({ kind: "partitions", partitions })
    })
  })

/** Acts that the world's sequencer decides, and the registry that they change. */
const actsOf = (world: World) =>
  layerSystemAuditLog(settings.secret).pipe(
    Layer.provideMerge(Layer.succeed(RegistryView, registryOf(world))),
    Layer.provide([
      Layer.succeed(CommandLog, commandLog(world)),
      Layer.succeed(Receipts, receiptsOf(world))
    ])
  )

/** The real share links, over the registry of the world. */
const shareLinksOf = (world: World) =>
  layerShareLinks.pipe(Layer.provide([keysOf(world), actsOf(world)]))

/** The real sessions, over the same. */
const sessionsOf = (world: World) =>
  layerSessions(settings.secret).pipe(Layer.provide([keysOf(world), actsOf(world), usesOf(world)]))

const quarantineOf = (world: World) =>
  QuarantineTopic.of({
    all: Effect.sync(() => ({ commands: world.quarantined, left: 0 })),
    find: (partition, commandOffset) =>
      Effect.sync(() => world.quarantined.find(({ id }) => id === `${partition}-${commandOffset}`))
  })

const progressOf = (world: World) =>
  Layer.succeed(ProjectionProgress, {
    of: () => ({ ...noProgress(0), rebuilding: world.rebuilding }),
    partition: (partition) => ({ ...noProgress(partition), rebuilding: world.rebuilding }),
    awaitOffset: () => Effect.void
  })

/** The number of its partitions is all that grows. */
const logOf = (world: World) =>
  Layer.mock(EventLog, {
    get partitions() {
      return world.placement.partitions
    },
    bootstrap: "127.0.0.1:9092",
    partitionOf: () => 0,
    ends: (positions) => Effect.succeed(positions.map(() => 0)),
    placement: Effect.sync(() => world.placement),
    counts: Effect.sync(() => new Map(partitionedTopics.map((topic) => [topic, world.counted]))),
    addPartitions: (to) =>
      Effect.sync(() => {
        world.counted = to
      })
  })

/** The real growth, over the registry of the world. */
const growthOf = (world: World) =>
  layerPartitionGrowth("0.1.0").pipe(
    Layer.provide([
      actsOf(world),
      logOf(world),
      progressOf(world),
      Layer.succeed(CommandLog, commandLog(world)),
      Layer.succeed(Receipts, receiptsOf(world))
    ])
  )

/** The real one, over the registry of the world. */
const retentionsOf = (world: World) =>
  layerRetentions("0.1.0").pipe(
    Layer.provide([actsOf(world), keysOf(world), Layer.succeed(RegistryView, registryOf(world))])
  )

/** Every service that the server asks for, made of the world. */
export const layerDoubles = (world: World, changed: Partial<Settings> = {}) =>
  layerProofs(world.proofs, settings.secret).pipe(
    Layer.provide(layerPrunedTrees),
    Layer.provideMerge(layerServices(world, changed))
  )

const layerServices = (world: World, changed: Partial<Settings>) =>
  Layer.mergeAll(
    Layer.succeed(ApiSettings, { ...settings, ...changed }),
    Layer.succeed(CommandLog, commandLog(world)),
    Layer.succeed(Receipts, receiptsOf(world)),
    storeOf(world),
    sqlOf(world),
    Layer.succeed(RecentEvents, world.recent),
    layerTraces(world.traces),
    Layer.mock(EventErasures, {}),
    Layer.succeed(WrittenEvents, {
      reader: Effect.succeed({
        at: (_: string, offset: number) =>
          Effect.sync(() => {
            const text = world.written.get(offset) ?? world.bodies[offset]!
            return text === "removed" ? text : parse(text)
          })
      })
    }),
    actsOf(world),
    Layer.succeed(QuarantineTopic, quarantineOf(world)),
    sessionsOf(world),
    shareLinksOf(world),
    Layer.mock(ExportAnswers, {}),
    Layer.mock(ExportJobs, {
      get: () => notFound("export job"),
      file: () => notFound("export job"),
      remove: () => notFound("export job")
    }),
    Layer.succeed(LiveFeed, feedOf(world)),
    keysOf(world),
    logOf(world),
    growthOf(world),
    retentionsOf(world),
    Layer.succeed(Verifier, verifierOf(world)),
    Layer.succeed(SignedCheckpoints, {
      newestAtOrBelow: (tenantId, size) => world.checkpoints.newestAtOrBelow(tenantId, size),
      published: (tree) => world.checkpoints.published(tree),
      open: (tenantId, note) => world.checkpoints.open(tenantId, note),
      inclusion: (tenantId, sequence, size, anew) =>
        world.checkpoints.inclusion(tenantId, sequence, size, anew)
    }),
    Layer.succeed(ChainEnds, {
      head: ({ chain, tenantId }) =>
        Effect.sync(() => {
          const { heads, traceHeads } = world.state
          return (chain === "events" ? heads : traceHeads).get(tenantId)
        }),
      checkpoint: (tree, isGenuine) =>
        Effect.sync(() =>
          world.proofs.stored
            .filter((record) => treeOfCheckpoint(record) === tree)
            .toSorted((left, right) => left.tree_size - right.tree_size)
            .findLast(isGenuine)
        ),
      start: () => Effect.succeed({ isCut: false, offset: 0 })
    }),
    headsOf(world),
    progressOf(world),
    Layer.succeed(ConsoleFiles, {
      bundle: Effect.suspend(() =>
        world.console === undefined
          ? Effect.fail(new ConsoleUnavailable({ message: "no bundle" }))
          : Effect.succeed(world.console)
      )
    }),
    Layer.succeed(Readiness, {
      check: Effect.suspend(() => {
        world.asked += 1
        if (world.stuck) return Effect.never
        return Effect.succeed({
          ready: world.ready,
          body: {
            status: world.ready ? "ready" : "not ready",
            kafka: { state: "ready", bootstrap: "127.0.0.1:9092" },
            clickhouse: { state: "ready" },
            roles: ["api"]
          }
        })
      })
    })
  )
