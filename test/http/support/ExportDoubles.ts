/**
 * A test server with the real exports: the real pack over the chain of the world, a printer that
 * prints one line, and the acts that were put on record.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Clock, Effect, Exit, Layer, Logger, References, Scope, Stream } from "effect"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import { layerArchive } from "../../../src/adapters/archive/ArchiveZip.ts"
import { layerExportFolder } from "../../../src/adapters/exports/ExportFolderFiles.ts"
import { type CheckpointRecord, makeCheckpoint } from "../../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { emptyFilter } from "../../../src/domain/events/EventFilter.ts"
import {
  EvidenceSeal,
  type SealedTree,
  SealUnavailable
} from "../../../src/exports/EvidenceSeal.ts"
import { TraceExport } from "../../../src/exports/pack/TraceExport.ts"
import { AuditReports } from "../../../src/exports/report/AuditReports.ts"
import type { ReportInput } from "../../../src/exports/report/Report.ts"
import { layerExportAnswers } from "../../../src/http/exports/ExportAnswers.ts"
import { layerExportMaker } from "../../../src/http/exports/ExportMaker.ts"
import { layerExportSlots } from "../../../src/http/exports/ExportSlots.ts"
import { layerExportJobs } from "../../../src/http/exports/jobs/ExportJobs.ts"
import { layerServer } from "../../../src/http/Server.ts"
import { CurrentServerTimes, SERVER_TIMES } from "../../../src/http/server/ServerTimes.ts"
import { LogUnavailable } from "../../../src/ports/EventLog.ts"
import { EventStore, type StoreUnavailable } from "../../../src/ports/EventStore.ts"
import { PackVerifiers } from "../../../src/ports/PackVerifiers.ts"
import { PdfBusy, PdfUnavailable } from "../../../src/ports/PdfRenderer.ts"
import {
  type SystemAct,
  SystemAuditLog
} from "../../../src/services/administration/SystemAuditLog.ts"
import { CheckedEvents } from "../../../src/verify/CheckedEvents.ts"
import { CheckedFacts } from "../../../src/verify/CheckedFacts.ts"
import {
  HISTORY_FROM,
  HISTORY_TO,
  Verifier,
  type VerifyReport
} from "../../../src/verify/Verifier.ts"
import { nodeOf } from "../../exports/support/PackWorld.ts"
import { layerDoubles, type World } from "./Doubles.ts"
import { SIGNER } from "./ProofDoubles.ts"
import { type LogLine, loggerTo, TestApi } from "./TestApi.ts"

/** What may go wrong in an export, and what was made. */
export class ExportWorld {
  printer: "prints" | "missing" | "busy" = "prints"
  keyMissing = false
  recordBreaks = false
  /** Waits in front of each rendering. */
  gate: Effect.Effect<void> = Effect.void
  /** Lines of spans.ndjson. */
  spans: Stream.Stream<ReadonlyArray<string>, StoreUnavailable> = Stream.empty
  /** Head of the tenant's chain of trace facts. */
  traceHead: { readonly sequence_number: number; readonly hash: string } | undefined
  /** Keys beside the one that signs. */
  otherKeys: ReadonlyArray<string> = []
  sealed: SealedTree = { handOvers: [], signer: SIGNER.vkey }
  /** Fingerprint of the settings of reports. */
  reportSettings = "as they come"
  /** Text of the newest checkpoint. */
  checkpoint: string | undefined
  /** Of export jobs. */
  jobs = { keptMs: 3_600_000, bytesMax: 1_048_576 }
  freeBytesMin = 0
  readonly printed: Array<ReportInput> = []
  readonly acts: Array<SystemAct> = []
}

const printer = (state: ExportWorld) =>
  Layer.succeed(AuditReports, {
    get fingerprint() {
      return state.reportSettings
    },
    render: (input) =>
      Effect.gen(function* () {
        yield* state.gate
        if (state.printer === "missing") {
          return yield* new PdfUnavailable({ message: "install a Chromium" })
        }
        if (state.printer === "busy") {
          return yield* new PdfBusy({ waitingMax: 16, retryAfterSeconds: 5 })
        }
        state.printed.push(input)
        return Buffer.from(`%PDF-1.7 ${input.tenant.id} ${input.verification.events_in_bounds}`)
      })
  })

const hashesOf = (world: World, tenantId: string) => world.proofs.hashes.get(tenantId) ?? []

const seal = (world: World, state: ExportWorld) => {
  const noKey = Effect.fail(new SealUnavailable({ message: "this process has no signing key" }))
  return Layer.succeed(EvidenceSeal, {
    ready: Effect.suspend(() => (state.keyMissing ? noKey : Effect.void)),
    sign: (text) => Effect.sync(() => SIGNER.sign(text)),
    keys: Effect.sync(() => [SIGNER.vkey, ...state.otherKeys].map((vkey) => ({ vkey }))),
    signers: () => Effect.sync(() => state.sealed),
    latest: (tenantId) =>
      Effect.sync(() => {
        const frontier = Frontier.empty()
        for (const hash of hashesOf(world, tenantId)) frontier.append(hash)
        return frontier.size === 0
          ? undefined
          : makeCheckpoint(SIGNER, "alk", tenantId, frontier, "2026-01-01T00:00:00.000000Z")
      }),
    earlier: (_tenantId, beforeSize) =>
      Effect.sync(() => {
        const { checkpoint: note } = state
        const isAsked = note !== undefined && beforeSize === Number.MAX_SAFE_INTEGER
        return isAsked ? [{ note } as CheckpointRecord] : []
      }),
    nodes: (tenantId) =>
      Effect.sync(() => {
        const hashes = hashesOf(world, tenantId)
        return {
          node: (level, index) => nodeOf(hashes, level, index),
          eventHash: (index) => hashes[index]!
        }
      })
  })
}

/** An honest report: the world's chain is intact. */
const verifier = (world: World) => {
  const verify: Verifier["Service"]["verify"] = ({
    from,
    fromSequence,
    tenantId,
    to,
    toSequence
  }) =>
    Effect.sync((): VerifyReport => {
      const hashes = hashesOf(world, tenantId)
      const head = world.state.heads.get(tenantId)
      const first = Math.max(1, fromSequence ?? 1)
      const last = Math.min(toSequence ?? Infinity, hashes.length)
      const count = Math.max(0, last - first + 1)
      return {
        valid: world.breaks.length === 0,
        status: count === 0 ? "empty" : "valid",
        tenant_id: tenantId,
        scheme: "alk-chain-v1",
        bounds: {
          from: from ?? HISTORY_FROM,
          to: to ?? HISTORY_TO,
          from_sequence: fromSequence ?? null,
          to_sequence: toSequence ?? null
        },
        events_checked: count,
        events_in_bounds: count,
        first_sequence_number: count === 0 ? null : first,
        last_sequence_number: count === 0 ? null : last,
        head:
          head === undefined
            ? null
            : {
                sequence_number: head.sequence_number,
                hash: head.hash,
                created_at: head.created_at
              },
        erased_events: 0,
        assurance: "signed",
        breaks: [],
        breaks_total: 0,
        verified_at: "2026-01-01T00:00:00.000000Z",
        duration_ms: 3
      }
    })
  return Layer.succeed(Verifier, { verify, verifyTenant: verify })
}

/** What the store holds is what the chain says. */
const checkedEvents = Layer.effect(
  CheckedEvents,
  Effect.map(EventStore, (store): CheckedEvents["Service"] => ({
    of: (tenantId, { first, last }, deduplicate) => {
      const filter = { ...emptyFilter, fromSequence: first, toSequence: last }
      return store
        .scan({ tenantId, filter, order: "asc" }, deduplicate)
        .pipe(
          Stream.map((bodies) =>
            bodies.map((body) => ({ body, event: JSON.parse(body) as AuditEvent }))
          )
        )
    }
  }))
)

const acts = (state: ExportWorld) =>
  Layer.mock(SystemAuditLog, {
    log: (act) =>
      Effect.suspend(() => {
        if (state.recordBreaks) {
          return Effect.fail(new LogUnavailable({ operation: "log", cause: new Error("down") }))
        }
        state.acts.push(act)
        return Effect.void
      })
  })

/** A server with `exportsAtOnce` slots per tenant; a folder that is given stays. */
export const startExports = async (
  world: World,
  state: ExportWorld,
  exportsAtOnce?: number,
  stalledMs = 60_000,
  keptFolder?: string
): Promise<TestApi> => {
  const folder = keptFolder ?? mkdtempSync(join(tmpdir(), "alk-exports-"))
  const logs: Array<LogLine> = []
  const traceHeads = Layer.effect(
    Heads,
    Effect.map(Heads, (heads) => ({
      ...heads,
      traceHead: () => Effect.sync(() => state.traceHead && { ...state.traceHead, created_at: "" })
    }))
  )
  const doubles = traceHeads.pipe(
    Layer.provideMerge(Layer.merge(checkedEvents, Layer.mock(CheckedFacts, {}))),
    Layer.provideMerge(Layer.mergeAll(layerDoubles(world), verifier(world)))
  )
  const made = Layer.mergeAll(
    printer(state),
    seal(world, state),
    acts(state),
    layerArchive,
    // No test here runs them.
    Layer.succeed(PackVerifiers, {
      files: Effect.succeed({ program: "", checks: "" })
    }),
    layerExportSlots(exportsAtOnce),
    layerExportFolder({ path: folder, freeBytesMin: state.freeBytesMin }),
    Layer.succeed(TraceExport, {
      executions: () => Stream.empty,
      spans: () => Stream.suspend(() => state.spans),
      facts: () => Stream.empty,
      chain: () => Stream.empty
    })
  )
  const answers = Layer.merge(layerExportAnswers, layerExportJobs(state.jobs)).pipe(
    Layer.provide(layerExportMaker),
    Layer.provide(made),
    Layer.provide(doubles)
  )
  const scope = await Effect.runPromise(Scope.make())
  const cleared = Effect.sync(() => {
    if (keptFolder === undefined) rmSync(folder, { recursive: true, force: true })
  })
  await Effect.runPromise(Scope.addFinalizer(scope, cleared))
  const layer = layerServer.pipe(
    Layer.provide(Layer.mergeAll(doubles, answers)),
    Layer.provide(Layer.succeed(CurrentServerTimes, { ...SERVER_TIMES, stalledMs })),
    Layer.provide(Logger.layer([loggerTo(logs)])),
    Layer.provide(Layer.succeed(References.MinimumLogLevel, "Error")),
    Layer.provide(Layer.succeed(Clock.Clock, world.clock))
  )
  const built = await Effect.runPromise(Layer.buildWithScope(layer, scope)).catch((cause) => {
    void Effect.runPromise(Scope.close(scope, Exit.void))
    throw cause
  })
  return new TestApi(world, built, logs, scope)
}
