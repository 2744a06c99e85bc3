/**
 * Packs of a chain without any service: the real pack over doubles of the store, the seal and the
 * traces. What a verification reports is told, not computed, so that a test can have it lie.
 */
import { createHash } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { Effect, Layer, Stream } from "effect"
import { layerArchive } from "../../../src/adapters/archive/ArchiveZip.ts"
import { layerPackVerifiers } from "../../../src/adapters/esbuild/PackVerifiersBundle.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  type Signer,
  signerOf
} from "../../../src/domain/chain/Checkpoint.ts"
import { endorse, handOver } from "../../../src/domain/chain/KeyLine.ts"
import { Frontier, leafHash, nodeHash } from "../../../src/domain/chain/MerkleTree.ts"
import type { PrunedPoint } from "../../../src/domain/chain/PrunedPoint.ts"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { type EventFilter, emptyFilter } from "../../../src/domain/events/EventFilter.ts"
import { parseFact } from "../../../src/domain/traces/FactText.ts"
import { foldFacts } from "../../../src/domain/traces/TraceView.ts"
import { EvidenceSeal } from "../../../src/exports/EvidenceSeal.ts"
import { boundsOf, conditionsBeside, type ExportScope } from "../../../src/exports/ExportScope.ts"
import { evidencePack } from "../../../src/exports/pack/EvidencePack.ts"
import { TraceExport } from "../../../src/exports/pack/TraceExport.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"
import { layerCheckedEvents } from "../../../src/verify/CheckedEvents.ts"
import { layerCheckedFacts } from "../../../src/verify/CheckedFacts.ts"
import { PrunedPoints } from "../../../src/verify/PrunedPoints.ts"
import type { VerifyReport } from "../../../src/verify/Verifier.ts"
import type { Placed } from "../../adapters/clickhouse/support/StoredFacts.ts"
import { matches } from "../../support/Matches.ts"
import { LogWorld, layerLog } from "../../verify/support/LogWorld.ts"
import type { TestChain } from "./Chains.ts"

export const SERVICE = "alk"
export const signer = signerOf(SERVICE, Buffer.alloc(32, 7))
/** Somebody else's key under the same name. */
export const otherSigner = signerOf(SERVICE, Buffer.alloc(32, 8))
export const GENERATED_AT = "2026-11-21T12:00:00.000000Z"

const CHUNK = 100

const parse = (body: string): AuditEvent => JSON.parse(body) as AuditEvent

export interface PackWishes {
  readonly eventsOnly?: boolean
  readonly filter?: Partial<EventFilter>
  readonly generatedAt?: string
  readonly pdf?: Uint8Array
  readonly report?: Partial<VerifyReport>
  /** Lines of the two files in place of what the facts say. */
  readonly executions?: ReadonlyArray<string>
  readonly spans?: ReadonlyArray<string>
  /** Facts of the executions in the pack, in place of all. */
  readonly facts?: ReadonlyArray<Placed>
  /** Sizes at which checkpoints of the trace chain were signed, besides the whole of it. */
  readonly traceCheckpoints?: ReadonlyArray<number>
  /** Sizes at which checkpoints were signed, besides the whole chain. */
  readonly checkpoints?: ReadonlyArray<number>
  readonly signer?: Signer
  readonly rotation?: Rotation
  /** Facts that were removed with the beginning of their chain. */
  readonly removedFacts?: number
  /** Events that retention has removed. */
  readonly removedEvents?: number
  /** Where the chains ended when the pack was begun, if they have grown since. */
  readonly heads?: { readonly events: number; readonly traces?: number }
}

/** A change of keys: the one before endorsed the signer of the pack and handed the trees over. */
export interface Rotation {
  readonly before: Signer
  /** Sizes of the trees that it handed over; without one it handed over none. */
  readonly events?: number
  readonly traces?: number
}

/** When keys are replaced. */
export const ROTATED_AT = "2026-11-20T00:00:00.000000Z"

/** The first leaves of a tree. */
const treeOf = (hashes: ReadonlyArray<string>, size: number): Frontier => {
  const frontier = Frontier.empty()
  for (const hash of hashes.slice(0, size)) frontier.append(hash)
  return frontier
}

/** The note with which `before` handed the first events of a chain over to `next`. */
export const handOverNote = (
  chain: TestChain,
  size: number,
  before: Signer,
  next: Signer
): string => {
  const tree = treeOf(
    chain.bodies.map((body) => parse(body).hash),
    size
  )
  return handOver(before, SERVICE, chain.tenantId, tree, ROTATED_AT, next.vkey).note
}

/** The checkpoint of the first `size` events of a chain. */
export const checkpointOf = (
  chain: TestChain,
  size = chain.length,
  by = signer
): CheckpointRecord => {
  const tree = treeOf(
    chain.bodies.map((body) => parse(body).hash),
    size
  )
  return makeCheckpoint(by, SERVICE, chain.tenantId, tree, GENERATED_AT)
}

/** The checkpoint of the first `size` facts. */
export const traceCheckpointOf = (
  facts: ReadonlyArray<Placed>,
  tenantId: string,
  size = facts.length,
  by = signer
): CheckpointRecord => {
  const tree = treeOf(
    facts.map(({ hash }) => hash),
    size
  )
  return makeCheckpoint(by, SERVICE, tenantId, tree, GENERATED_AT, "traces")
}

/** Hash of a complete subtree over the events with these hashes. */
export const nodeOf = (hashes: ReadonlyArray<string>, level: number, index: number): Buffer => {
  if (level === 0) return leafHash(hashes[index]!)
  const left = nodeOf(hashes, level - 1, 2 * index)
  return nodeHash(Buffer.from(left), nodeOf(hashes, level - 1, 2 * index + 1))
}

/** What an honest verification of the bounds says of an intact chain. */
export const honestReport = (chain: TestChain, filter: EventFilter): VerifyReport => {
  const bounds = boundsOf(filter)
  const { from_sequence, to_sequence } = bounds
  const events = chain.bodies.map(parse)
  const isByTime = filter.from !== undefined || filter.to !== undefined
  const inTime = events.filter(
    ({ timestamp }) => timestamp >= bounds.from && timestamp <= bounds.to
  )
  const first = Math.max(
    isByTime ? (inTime[0]?.sequence_number ?? Infinity) : 1,
    from_sequence ?? 1
  )
  const isOpen = filter.to === undefined && to_sequence === null
  const last = Math.min(
    isOpen || !isByTime ? events.length : (inTime.at(-1)?.sequence_number ?? 0),
    to_sequence ?? Infinity
  )
  const span = events.slice(first - 1, Math.max(last, first - 1))
  const head = events.at(-1)
  return {
    valid: true,
    status: span.length === 0 ? "empty" : "valid",
    tenant_id: chain.tenantId,
    scheme: "alk-chain-v1",
    bounds,
    events_checked: span.length,
    events_in_bounds: span.filter((event) => inTime.includes(event)).length,
    first_sequence_number: span.length === 0 ? null : first,
    last_sequence_number: span.length === 0 ? null : last,
    head:
      head === undefined
        ? null
        : { sequence_number: head.sequence_number, hash: head.hash, created_at: head.created_at },
    erased_events: span.filter(({ erased_at }) => erased_at !== undefined).length,
    assurance: "signed",
    breaks: [],
    breaks_total: 0,
    verified_at: GENERATED_AT,
    duration_ms: 0
  }
}

/** A store that holds one chain and counts what is being read from it. */
export class PackWorld {
  readonly chain: TestChain
  readonly facts: ReadonlyArray<Placed>
  /** Sequences that no condition finds in the store, but one on sequences. */
  readonly hidden = new Set<number>()
  /** What the store holds in place of these. */
  readonly changed = new Map<number, string>()
  /** Chunks that were read from the store and, at most, how many lay there unread by the pack. */
  scans = { begun: 0, ended: 0, chunks: 0 }

  /** Without facts of traces the tenant has none. */
  constructor(chain: TestChain, facts: ReadonlyArray<Placed> = []) {
    this.chain = chain
    this.facts = facts
  }

  /** What is said of a chain without its beginning. */
  pruned(size: number): Partial<VerifyReport> {
    const { note, root_hash } = checkpointOf(this.chain, size)
    const events = this.chain.bodies.slice(size).map(parse)
    const left = events.length
    return {
      erased_events: events.filter(({ erased_at }) => erased_at !== undefined).length,
      pruned: { up_to_sequence: size, root_hash, checkpoint: note, pruned_at: GENERATED_AT },
      first_sequence_number: size + 1,
      events_checked: left,
      events_in_bounds: left
    }
  }

  scope({
    eventsOnly = false,
    filter = {},
    generatedAt = GENERATED_AT,
    heads,
    removedEvents = 0,
    report = removedEvents === 0 ? {} : this.pruned(removedEvents)
  }: PackWishes): ExportScope {
    const whole: EventFilter = { metadata: [], ...filter }
    const chain = heads === undefined ? this.chain : this.chain.branch(heads.events)
    const head = this.facts[(heads?.traces ?? this.facts.length) - 1]
    const traceHead = head && { sequence_number: head.chainSequence, hash: head.hash }
    return {
      tenantId: this.chain.tenantId,
      filter: whole,
      bounds: boundsOf(whole),
      conditions: conditionsBeside(whole),
      verification: { ...honestReport(chain, whole), ...report, verified_at: generatedAt },
      surroundings: {
        traceHead: eventsOnly ? undefined : traceHead,
        keys: [{ vkey: signer.vkey }],
        signers: [],
        checkpoint: undefined,
        traceCheckpoint: undefined
      },
      generatedAt,
      eventsOnly
    }
  }

  get bodies(): ReadonlyArray<string> {
    return this.chain.bodies.map((body, at) => this.changed.get(at + 1) ?? body)
  }

  store({ removedEvents = 0 }: PackWishes) {
    return Layer.mock(EventStore, {
      rows: (_, first, last) =>
        Stream.suspend(() =>
          Stream.make(
            this.bodies.slice(first - 1, last).map((body, at) => ({
              sequenceNumber: first + at,
              version: 0,
              body,
              wrongColumns: []
            }))
          )
        ),
      scan: ({ filter, tenantId }) => {
        const { fromSequence: _from, toSequence: _to, ...content } = filter
        const isHiding = JSON.stringify(content) !== JSON.stringify(emptyFilter)
        const found = this.bodies.filter((body) => {
          const event = parse(body)
          const isHidden = isHiding && this.hidden.has(event.sequence_number)
          const isLeft = event.sequence_number > removedEvents && !isHidden
          return event.tenant_id === tenantId && matches(filter, event) && isLeft
        })
        const chunks = Array.from({ length: Math.ceil(found.length / CHUNK) }, (_, at) =>
          found.slice(at * CHUNK, (at + 1) * CHUNK)
        )
        return Stream.suspend(() => {
          this.scans.begun += 1
          return Stream.fromIterable(chunks)
        }).pipe(
          Stream.rechunk(1),
          Stream.tap(() => Effect.sync(() => void (this.scans.chunks += 1))),
          Stream.ensuring(Effect.sync(() => void (this.scans.ended += 1)))
        )
      }
    })
  }

  get factStore() {
    const between = (first: number, last: number) =>
      this.facts.filter(({ chainSequence }) => chainSequence >= first && chainSequence <= last)
    return Layer.mock(TraceStore, {
      facts: (_, id) =>
        Effect.succeed(
          this.facts.filter(({ executionId }) => executionId === id).map(({ body }) => body)
        ),
      chain: ({ first, last }) => Stream.make(between(first, last).map(({ body }) => body)),
      chainRows: (_, first, last) =>
        Stream.make(
          between(first, last).map(({ body, chainSequence: sequenceNumber }) => ({
            sequenceNumber,
            version: 0,
            body,
            wrongColumns: []
          }))
        )
    })
  }

  points({ removedFacts = 0 }: PackWishes) {
    const size = removedFacts
    const frontier = treeOf(
      this.facts.map(({ hash }) => hash),
      size
    )
    const end = { size, headHash: this.facts[size - 1]?.hash ?? "", frontier }
    return Layer.succeed(PrunedPoints, {
      of: () => Effect.succeed(size === 0 ? undefined : { point: {} as PrunedPoint, end })
    })
  }

  seal({ checkpoints = [], rotation, signer: by = signer, traceCheckpoints = [] }: PackWishes) {
    const { chain, facts } = this
    const signerAt = (handedOver: number | undefined, size: number) =>
      rotation !== undefined && size <= (handedOver ?? 0) ? rotation.before : by
    const hashesOf = (tree: string) =>
      tree.endsWith("/traces")
        ? facts.map(({ hash }) => hash)
        : chain.bodies.map((body) => parse(body).hash)
    const checkpoint = (tree: string, size?: number) =>
      tree.endsWith("/traces")
        ? traceCheckpointOf(
            facts,
            chain.tenantId,
            size,
            signerAt(rotation?.traces, size ?? Infinity)
          )
        : checkpointOf(chain, size, signerAt(rotation?.events, size ?? Infinity))
    const handOversOf = (tree: string) => {
      if (rotation === undefined) return []
      const { before, events, traces } = rotation
      const isOfTraces = tree.endsWith("/traces")
      const size = isOfTraces ? traces : events
      if (size === undefined) return []
      const own = treeOf(hashesOf(tree), size)
      const kind = isOfTraces ? "traces" : "events"
      const { note } = handOver(before, SERVICE, chain.tenantId, own, ROTATED_AT, by.vkey, kind)
      return [{ vkey: before.vkey, note }]
    }
    return Layer.succeed(EvidenceSeal, {
      ready: Effect.void,
      sign: (text) => Effect.sync(() => by.sign(text)),
      keys: Effect.succeed(
        rotation === undefined
          ? [{ vkey: by.vkey }]
          : [
              { vkey: rotation.before.vkey },
              { vkey: by.vkey, endorsement: endorse(rotation.before, by.vkey, ROTATED_AT) }
            ]
      ),
      signers: (tree) => Effect.sync(() => ({ handOvers: handOversOf(tree), signer: by.vkey })),
      latest: (tree) =>
        Effect.sync(() => (hashesOf(tree).length === 0 ? undefined : checkpoint(tree))),
      earlier: (tree, beforeSize, limit) =>
        Effect.sync(() =>
          [...(tree.endsWith("/traces") ? traceCheckpoints : checkpoints)]
            .filter((size) => size < beforeSize)
            .sort((left, right) => right - left)
            .slice(0, limit)
            .map((size) => checkpoint(tree, size))
        ),
      nodes: (tree) =>
        Effect.sync(() => {
          const hashes = hashesOf(tree)
          return {
            node: (level, index) => nodeOf(hashes, level, index),
            eventHash: (index) => hashes[index]!
          }
        })
    })
  }

  layer(wishes: PackWishes) {
    const chosen = wishes.facts ?? this.facts
    const views = [...Map.groupBy(chosen, ({ executionId }) => executionId).values()].map((facts) =>
      foldFacts(facts.map(({ body }) => parseFact(body)!))
    )
    const started = views.flatMap(({ execution }) => execution ?? [])
    const { executions = started.map((execution) => JSON.stringify(execution)) } = wishes
    const { spans = views.flatMap((view) => view.spans.map((span) => JSON.stringify(span))) } =
      wishes
    const between = ({ first, last }: { readonly first: number; readonly last: number }) =>
      this.facts.filter(({ chainSequence }) => chainSequence >= first && chainSequence <= last)
    const lines = (texts: ReadonlyArray<string>) =>
      texts.length === 0 ? Stream.empty : Stream.succeed(texts)
    const log = new LogWorld()
    if (this.chain.length > 0)
      log.heads.set(this.chain.tenantId, this.chain.event(this.chain.length))
    const factLog = new LogWorld()
    const head = this.facts.at(-1)
    if (head !== undefined) {
      const { chainSequence: sequence_number, hash } = head
      factLog.heads.set(this.chain.tenantId, { sequence_number, hash, created_at: GENERATED_AT })
    }
    const store = this.store(wishes)
    return Layer.mergeAll(
      store,
      layerCheckedEvents.pipe(Layer.provide([store, layerLog(log)])),
      layerCheckedFacts.pipe(
        Layer.provide([this.factStore, layerLog(factLog), this.points(wishes)])
      ),
      this.seal(wishes),
      layerArchive,
      layerPackVerifiers,
      Layer.succeed(TraceExport, {
        executions: () => lines(executions),
        spans: () => lines(spans),
        facts: () => lines(chosen.map(({ body }) => body)),
        chain: (range) => lines(between(range).map(({ body }) => body))
      })
    )
  }

  /** The bytes of a pack as a stream. */
  stream(wishes: PackWishes = {}) {
    const options = { serviceName: SERVICE, pdf: wishes.pdf, deduplicate: false }
    return Stream.unwrap(evidencePack(this.scope(wishes), options)).pipe(
      Stream.provide(this.layer(wishes))
    )
  }

  async pack(wishes: PackWishes = {}): Promise<Buffer> {
    return Buffer.concat(await Effect.runPromise(Stream.runCollect(this.stream(wishes))))
  }

  /** A pack as a file; returns its path. */
  async write(path: string, wishes: PackWishes = {}): Promise<string> {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, await this.pack(wishes))
    return path
  }
}

export const sha256 = (bytes: Buffer | string): string =>
  createHash("sha256").update(bytes).digest("hex")
