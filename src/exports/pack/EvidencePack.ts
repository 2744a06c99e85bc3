/**
 * The evidence pack: everything that an auditor needs to check a part of the log without the
 * service, as one ZIP. Files are made while they are read and hashed on their way, so memory does
 * not grow with them; the manifest, which needs all hashes, comes last.
 */
import { createHash } from "node:crypto"
import { Effect, Schema, Stream } from "effect"
import { linkOf } from "../../domain/chain/ChainLink.ts"
import { type Chain, linkLine, treeNameOf } from "../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../domain/chain/Checkpoint.ts"
import { ERASURE_ACTION } from "../../domain/events/Erasure.ts"
import { emptyFilter } from "../../domain/events/EventFilter.ts"
import { inSlices } from "../../domain/InSlices.ts"
import { recordReader } from "../../domain/json/RecordDecoder.ts"
import { holdersIn } from "../../domain/records/EventValues.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../domain/Timestamp.ts"
import { Archive, type ArchiveEntry, type ArchiveFailed } from "../../ports/Archive.ts"
import type { SequenceRange } from "../../ports/ChainRecompute.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import { EventStore, type StoreUnavailable } from "../../ports/EventStore.ts"
import { PackVerifiers, type VerifierFiles } from "../../ports/PackVerifiers.ts"
import { CheckedEvents } from "../../verify/CheckedEvents.ts"
import { CheckedFacts } from "../../verify/CheckedFacts.ts"
import { EvidenceSeal, type SealedTree, type SealUnavailable } from "../EvidenceSeal.ts"
import { type ExportScope, eventsOf } from "../ExportScope.ts"
import { selectedEvents, verifiedRange } from "../SelectedEvents.ts"
import { packAssets } from "./PackAssets.ts"
import { PackedExecutions } from "./PackedExecutions.ts"
import type { PackCounts, PackFile } from "./PackRecords.ts"
import {
  jwksText,
  manifestText,
  type PackContents,
  packedVerification,
  readmeText,
  signedText,
  sumsText
} from "./PackText.ts"
import { inclusionProofs, noEdges, type TreeEdges, treeEdges } from "./PackTree.ts"
import { TraceExport, type TraceScope } from "./TraceExport.ts"

/** Further checkpoints of a pack: they show where a rewriting began. */
export const EARLIER_CHECKPOINTS_MAX = 32

/** Why a pack breaks off. */
export type PackFailure = ArchiveFailed | LogUnavailable | SealUnavailable | StoreUnavailable

export interface PackOptions {
  readonly serviceName: string
  /** Left out of the pack if undefined. */
  readonly pdf: Uint8Array | undefined
  /** Of the reads, see EventStore. */
  readonly deduplicate: boolean
}

type Lines = Stream.Stream<ReadonlyArray<string>, LogUnavailable | StoreUnavailable>
type Bytes<E = PackFailure> = Stream.Stream<Uint8Array, E>

const bytesOf = (text: string): Bytes<never> => Stream.sync(() => Buffer.from(text))

/** A line of links; bytes that end like no event or fact have none, and leave a gap. */
const lineOfLink = (body: string, chain: Chain): ReadonlyArray<string> => {
  const link = linkOf(Buffer.from(body), chain)
  return link === undefined ? [] : [linkLine(link)]
}

/** The members of an erasure event that place it; the verifiers check the event itself. */
const Erasure = Schema.Struct({
  sequence_number: Schema.Number,
  metadata: Schema.Struct({ sequence_number: Schema.Number })
})
type Erasure = typeof Erasure.Type

const readErasure = recordReader(Erasure)

/** The members of an event without its details that place it. */
const Erased = Schema.Struct({ sequence_number: Schema.Number, erased_at: Schema.String })
const readErased = recordReader(Erased)
/** Few events are erased, so most need not be read. */
const mayBeErased = (body: string): boolean => body.includes('"erased_at"')

/** The erasure that a stored event is, if what it erased is in the range. */
const erasureWithin = ({ first, last }: SequenceRange, body: string): Erasure | undefined => {
  const event = readErasure(body)
  const target = event?.metadata.sequence_number
  return target !== undefined && target >= first && target <= last ? event : undefined
}

/** What a checkpoint says of the size of its tree. */
const sizeOfNote = (note: string): number => Number(note.split("\n", 2)[1])

/** The files of one pack, and their sizes, hashes and counts once they have been read. */
class Contents implements PackContents {
  readonly files: Array<PackFile> = []
  readonly counts = {
    events: 0,
    links: 0,
    erasures: 0,
    executions: 0,
    spans: 0,
    facts: 0,
    trace_links: 0
  }
  traces: SequenceRange | undefined
  readonly covered = { events: 0, traces: 0 }
  readonly executions = new PackedExecutions()
  /** Sequences of the events in the pack whose details are erased; filled while they are read. */
  readonly erased = new Set<number>()
  /** The executions that hold values of events in the pack; filled while they are read. */
  readonly holders = new Set<string>()
  treeSigner: string | undefined

  /** Facts on their way into the pack, and where they are in their chain. */
  placed(facts: Lines): Lines {
    return Stream.tap(facts, (bodies) => inSlices(() => this.#place(bodies)))
  }

  /** One in a step. */
  *#place(bodies: ReadonlyArray<string>): Sliced<void> {
    const sequenceOf = (body: string | undefined) =>
      body === undefined ? undefined : linkOf(Buffer.from(body), "traces")?.sequenceNumber
    for (const body of bodies) {
      yield
      this.executions.packed(body)
    }
    const first = this.traces?.first ?? sequenceOf(bodies[0])
    const last = sequenceOf(bodies.at(-1))
    if (first !== undefined && last !== undefined) this.traces = { first, last }
  }

  /** A file that is hashed and measured while it is read. */
  file<E>(name: string, content: Bytes<E>, isProgram = false): ArchiveEntry<E> {
    const recorded = Stream.suspend(() => {
      const hash = createHash("sha256")
      let bytes = 0
      return content.pipe(
        Stream.tap((chunk) =>
          Effect.sync(() => {
            hash.update(chunk)
            bytes += chunk.length
          })
        ),
        Stream.onEnd(
          Effect.sync(() => void this.files.push({ name, bytes, sha256: hash.digest("hex") }))
        )
      )
    })
    return { name, isProgram, content: recorded }
  }

  /** The file of a checkpoint of a chain. */
  checkpoint(name: string, chain: Chain, note: string): ArchiveEntry<never> {
    this.covered[chain] = Math.max(this.covered[chain], sizeOfNote(note))
    return this.file(name, bytesOf(note))
  }

  /** A file of one text per line. */
  lines(name: string, lines: Lines, counted?: keyof PackCounts): ArchiveEntry<PackFailure> {
    const bytes = lines.pipe(
      Stream.filter((chunk) => chunk.length > 0),
      Stream.map((chunk) => {
        if (counted !== undefined) this.counts[counted] += chunk.length
        return Buffer.from(`${chunk.join("\n")}\n`)
      })
    )
    return this.file<PackFailure>(name, bytes, false)
  }

  known(name: string): PackFile {
    return this.files.find((file) => file.name === name)!
  }
}

const checkpointName = ({ chain, tree_size }: CheckpointRecord): string =>
  chain === "traces" ? `checkpoints/traces-${tree_size}.txt` : `checkpoints/${tree_size}.txt`

interface Parts {
  readonly scope: ExportScope
  readonly options: PackOptions
  readonly contents: Contents
  readonly store: EventStore["Service"]
  readonly checked: CheckedEvents["Service"]
  readonly checkedFacts: CheckedFacts["Service"]
  readonly seal: EvidenceSeal["Service"]
  readonly traces: TraceExport["Service"]
  readonly verifiers: VerifierFiles
  /** The newest one when the pack was begun. */
  readonly checkpoint: CheckpointRecord | undefined
}

const scanOf = ({ options, scope, store }: Parts, filter: ReturnType<typeof eventsOf>): Lines =>
  store.scan({ tenantId: scope.tenantId, filter, order: "asc" }, options.deduplicate)

/** Erasures of the range's events: from the range itself and from everything after it. */
const erasuresOf = (parts: Parts, range: SequenceRange, fromSequence: number): Lines => {
  const { contents, scope } = parts
  const isOf = (body: string): boolean => {
    const target = erasureWithin(range, body)?.metadata.sequence_number
    return target !== undefined && (!scope.eventsOnly || contents.erased.has(target))
  }
  return scanOf(parts, { ...emptyFilter, action: ERASURE_ACTION, fromSequence }).pipe(
    Stream.map((bodies) => bodies.filter(isOf))
  )
}

/** The events of the pack. */
const packEvents = (parts: Parts): Lines => {
  const { checked, contents, options, scope, store } = parts
  const noted = (body: string): void => {
    const erased = readErased(body)
    if (erased !== undefined) contents.erased.add(erased.sequence_number)
  }
  return selectedEvents({
    tenantId: scope.tenantId,
    filter: eventsOf(scope),
    verification: scope.verification,
    deduplicate: options.deduplicate
  }).pipe(
    Stream.tap((bodies) =>
      inSlices(function* () {
        for (const body of bodies) {
          yield
          if (mayBeErased(body)) noted(body)
          for (const holder of holdersIn([body])) contents.holders.add(holder)
        }
      })
    ),
    Stream.provideService(EventStore, store),
    Stream.provideService(CheckedEvents, checked)
  )
}

const entriesOfLog = (parts: Parts): ReadonlyArray<ArchiveEntry<PackFailure>> => {
  const { contents, scope, traces } = parts
  const range = verifiedRange(scope.verification)
  const { from, to } = scope.bounds
  const last = scope.surroundings.traceHead?.sequence_number ?? 0
  const traceScope = { tenantId: scope.tenantId, from, to, last }
  const isWhole = from === HISTORY_FROM && to === HISTORY_TO
  if (isWhole && last > 0) contents.traces = { first: 1, last }
  const executions = scope.eventsOnly ? Stream.empty : traces.executions(traceScope)
  const spans = scope.eventsOnly ? Stream.empty : traces.spans(traceScope)
  const facts =
    last === 0
      ? Stream.empty
      : Stream.suspend(() => traces.facts(traceScope, [...contents.holders]))
  const within = range && { ...emptyFilter, fromSequence: range.first, toSequence: range.last }
  const links: Lines =
    within === undefined
      ? Stream.empty
      : scanOf(parts, within).pipe(
          Stream.map((bodies) => bodies.flatMap((body) => lineOfLink(body, "events")))
        )
  return [
    contents.lines(
      "events.ndjson",
      range === undefined ? Stream.empty : packEvents(parts),
      "events"
    ),
    contents.lines("links.ndjson", links, "links"),
    contents.lines(
      "erasures.ndjson",
      range === undefined ? Stream.empty : erasuresOf(parts, range, range.first + 1),
      "erasures"
    ),
    contents.lines("executions.ndjson", executions, "executions"),
    contents.lines("spans.ndjson", spans, "spans"),
    contents.lines("facts.ndjson", isWhole ? facts : contents.placed(facts), "facts"),
    contents.lines(
      "trace-links.ndjson",
      Stream.suspend(() => traceLinks(parts)).pipe(
        Stream.concat(
          isWhole ? Stream.empty : Stream.fromEffectDrain(heldExecutions(parts, traceScope))
        )
      ),
      "trace_links"
    )
  ]
}

/**
 * The executions of the pack against all facts of the tenant, where that chain was found to hold: an
 * execution of the period may have some before it, between others and after it.
 */
const heldExecutions = (parts: Parts, traceScope: Required<TraceScope>) =>
  Effect.suspend(() => {
    const { checkedFacts, contents, scope } = parts
    const isBroken = scope.verification.traces?.status === "broken"
    return scope.eventsOnly || isBroken || traceScope.last === 0
      ? Effect.void
      : contents.executions.hold(checkedFacts, traceScope)
  })

/** The links from the first to the last fact of the pack. */
const traceLinks = ({ contents, scope: { tenantId }, traces }: Parts): Lines =>
  contents.traces === undefined
    ? Stream.empty
    : traces
        .chain({ tenantId, ...contents.traces })
        .pipe(Stream.map((bodies) => bodies.flatMap((body) => lineOfLink(body, "traces"))))

/** Proofs that the erasures after the range are in the tree that was signed. */
const proofLines = (parts: Parts, range: SequenceRange, size: number): Lines =>
  erasuresOf(parts, range, range.last + 1).pipe(
    Stream.mapEffect((bodies) => {
      const sequences = bodies
        .map((body) => erasureWithin(range, body)!.sequence_number)
        .filter((sequence) => sequence <= size)
      return inclusionProofs(parts.scope.tenantId, sequences, size)
    }),
    Stream.map((proofs) => proofs.map((proof) => JSON.stringify(proof))),
    Stream.provideService(EvidenceSeal, parts.seal)
  )

/** Checkpoints of a tree, the edges that tie a range of links to them, and the size they end at. */
const treeOf = Effect.fnUntraced(function* (
  seal: EvidenceSeal["Service"],
  tree: string,
  range: SequenceRange,
  latest: CheckpointRecord | undefined
) {
  const covering = latest !== undefined && latest.tree_size >= range.last
  const earlier = yield* seal.earlier(
    tree,
    covering ? Math.min(range.last + 1, latest.tree_size) : range.last + 1,
    EARLIER_CHECKPOINTS_MAX
  )
  const within = earlier.filter(({ tree_size }) => tree_size >= range.first)
  const size = covering ? latest.tree_size : range.last
  const edges = yield* treeEdges(tree, { ...range, size }).pipe(
    Effect.provideService(EvidenceSeal, seal)
  )
  return { notes: [...within.reverse(), ...(covering ? [latest] : [])], edges, covering, size }
})

const noTree = { notes: [], edges: noEdges, covering: false, size: 0 }

const edgesText = (edges: TreeEdges): string => `${JSON.stringify(edges, null, 2)}\n`

/**
 * Checkpoints, edges and proofs. The newest checkpoint is asked for once more, after the events:
 * one that was erased meanwhile is excused by an erasure that only a newer checkpoint covers.
 */
const entriesOfTree = Effect.fnUntraced(function* (parts: Parts) {
  const { checkpoint, contents, scope, seal } = parts
  const { tenantId } = scope
  const range = verifiedRange(scope.verification)
  const latest = (tree: string, known: CheckpointRecord | undefined) =>
    seal.latest(tree).pipe(Effect.orElseSucceed(() => known))
  const { covering, edges, notes, size } =
    range === undefined
      ? noTree
      : yield* treeOf(seal, tenantId, range, yield* latest(tenantId, checkpoint))
  const traceTree = treeNameOf(tenantId, "traces")
  const traces =
    contents.traces === undefined
      ? noTree
      : yield* treeOf(seal, traceTree, contents.traces, yield* latest(traceTree, undefined))
  const entries: ReadonlyArray<ArchiveEntry<PackFailure>> = [
    ...[...notes, ...traces.notes].map((one) =>
      contents.checkpoint(checkpointName(one), one.chain ?? "events", one.note)
    ),
    contents.file("checkpoints/tree.json", bytesOf(edgesText(edges))),
    contents.file("checkpoints/traces-tree.json", bytesOf(edgesText(traces.edges))),
    contents.lines(
      "checkpoints/erasure-proofs.ndjson",
      covering && range !== undefined ? proofLines(parts, range, size) : Stream.empty
    )
  ]
  return entries
})

/**
 * The line of keys: the keys, their endorsements, and the checkpoints with which they have handed
 * the trees over. Read after the other checkpoints, so that it covers every key that signed one of
 * them.
 */
const entriesOfKeys = Effect.fnUntraced(function* ({ contents, scope: { tenantId }, seal }: Parts) {
  const events = yield* seal.signers(tenantId)
  const traces = yield* seal.signers(treeNameOf(tenantId, "traces"))
  const keys = yield* seal.keys
  contents.treeSigner = events.signer
  const vkeys = keys.map(({ vkey }) => vkey)
  const handedOver = (chain: Chain, { handOvers }: SealedTree) =>
    handOvers.map(({ note, vkey }) => {
      const prefix = chain === "traces" ? "traces-" : ""
      const name = `checkpoints/${prefix}hand-over-${vkeys.indexOf(vkey) + 1}.txt`
      return contents.checkpoint(name, chain, note)
    })
  const entries: ReadonlyArray<ArchiveEntry<PackFailure>> = [
    ...handedOver("events", events),
    ...handedOver("traces", traces),
    contents.file("keys/jwks.json", bytesOf(jwksText(vkeys))),
    contents.file("keys/vkeys.txt", bytesOf(vkeys.map((vkey) => `${vkey}\n`).join(""))),
    ...keys.flatMap(({ endorsement }, index) =>
      endorsement === undefined
        ? []
        : [contents.file(`keys/endorsement-${index + 1}.txt`, bytesOf(endorsement))]
    )
  ]
  return entries
})

/**
 * Keys, schemas, verifiers; the texts that say where the pack ends, which its checkpoints decide;
 * then what the hashes of everything before are needed for.
 */
const entriesOfClosing = Effect.fnUntraced(function* (parts: Parts) {
  const { contents, options, scope, seal, verifiers } = parts
  const { pdf, serviceName } = options
  const later = (text: () => string) => Stream.suspend(() => bytesOf(text()))
  const signature = Stream.unwrap(
    Effect.suspend(() => {
      const text = signedText(serviceName, scope.tenantId, contents.known("manifest.json"))
      return seal.sign(text).pipe(Effect.map((lines) => bytesOf(`${text}\n${lines}`)))
    })
  )
  const entries: ReadonlyArray<ArchiveEntry<PackFailure>> = [
    ...(yield* entriesOfKeys(parts)),
    ...packAssets(verifiers).map(({ content, isProgram, name }) =>
      contents.file(name, Stream.succeed(content), isProgram)
    ),
    contents.file(
      "README.txt",
      later(() => readmeText(scope, contents, pdf !== undefined))
    ),
    contents.file(
      "verification.json",
      later(() => packedVerification(scope, contents))
    ),
    contents.file(
      "manifest.json",
      later(() => manifestText(scope, serviceName, contents))
    ),
    contents.file("manifest.sig", signature),
    { name: "sha256sums.txt", isProgram: false, content: later(() => sumsText(contents.files)) }
  ]
  return entries
})

const entriesOf = (parts: Parts): Stream.Stream<ArchiveEntry<PackFailure>, PackFailure> => {
  const { contents, options } = parts
  const { pdf } = options
  const opening: ReadonlyArray<ArchiveEntry<PackFailure>> =
    pdf === undefined ? [] : [contents.file("evidence.pdf", Stream.succeed(pdf))]
  return Stream.fromIterable([...opening, ...entriesOfLog(parts)]).pipe(
    Stream.concat(Stream.fromIterableEffect(entriesOfTree(parts))),
    Stream.concat(Stream.fromIterableEffect(entriesOfClosing(parts))),
    // One at a time: an entry is made when the one before it has been written.
    Stream.rechunk(1)
  )
}

/**
 * The ZIP of a scope as a stream of bytes. It is made as it is read: a reader that stops, stops the
 * work. What a pack can't do without is asked for before its first byte.
 */
export const evidencePack = Effect.fn("EvidencePack.make")(function* (
  scope: ExportScope,
  options: PackOptions
) {
  const archive = yield* Archive
  const store = yield* EventStore
  const checked = yield* CheckedEvents
  const checkedFacts = yield* CheckedFacts
  const seal = yield* EvidenceSeal
  const traces = yield* TraceExport
  const verifiers = yield* (yield* PackVerifiers).files
  yield* seal.ready
  const checkpoint =
    verifiedRange(scope.verification) === undefined ? undefined : yield* seal.latest(scope.tenantId)
  const contents = new Contents()
  const services = { store, checked, checkedFacts, seal, traces, verifiers }
  const parts: Parts = { scope, options, contents, checkpoint, ...services }
  const bytes: Bytes = archive.zip(entriesOf(parts))
  return bytes
})
