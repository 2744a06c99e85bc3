/**
 * Writes to traces through the log: submits prepared operations and waits until what they did can
 * be read. Every way in which that may end is a typed failure; what a client sees of it is not
 * decided here.
 */
import { Context, Effect, Layer, Schema } from "effect"
import type { Receipt } from "../../domain/records/Receipt.ts"
import {
  type TraceErrorCode,
  type TraceResult,
  traceErrorCodes
} from "../../domain/traces/TraceOperation.ts"
import { type Idempotency, Ingest, type IngestFailure, type IngestOutcome } from "./Ingest.ts"
import type { PreparedTraces } from "./PrepareTrace.ts"

/** The sequencer refused the operation; nothing was written. */
export class TraceRefused extends Schema.TaggedError<TraceRefused>()("TraceRefused", {
  code: Schema.Literals(traceErrorCodes),
  message: Schema.String
}) {}

/** Durable, but not visible in time: it may still happen. */
export class TraceUndecided extends Schema.TaggedError<TraceUndecided>()("TraceUndecided", {}) {}

/** The command as a whole could not be applied. */
export class TraceFailed extends Schema.TaggedError<TraceFailed>()("TraceFailed", {
  message: Schema.String
}) {}

/** The idempotency key was used before with another body. */
export class TraceMismatch extends Schema.TaggedError<TraceMismatch>()("TraceMismatch", {}) {}

export interface TraceWrite {
  readonly tenantId: string
  readonly items: PreparedTraces
  readonly idempotency: Idempotency | undefined
}

export type TraceWriteFailure = TraceFailed | TraceMismatch | TraceUndecided | IngestFailure

/** Written, with the decision of the sequencer or before it. */
export type BatchOutcome = Extract<IngestOutcome, { readonly kind: "written" | "visible" }>

export class TraceWrites extends Context.Service<
  TraceWrites,
  {
    /** One operation: what became of it, once that can be read. */
    single(write: TraceWrite): Effect.Effect<TraceResult, TraceRefused | TraceWriteFailure>
    /** Several: the final receipt, once everything in it can be read. */
    several(write: TraceWrite): Effect.Effect<Receipt, TraceWriteFailure>
    /** Several, without waiting or, with `visible`, for at most the time of a commit. */
    batch(
      write: TraceWrite,
      until: "written" | "visible"
    ): Effect.Effect<BatchOutcome, TraceWriteFailure>
  }
>()("alk/TraceWrites") {}

const isTraceErrorCode = (code: string): code is TraceErrorCode =>
  (traceErrorCodes as ReadonlyArray<string>).includes(code)

const make = Effect.gen(function* () {
  const ingest = yield* Ingest

  const batch: TraceWrites["Service"]["batch"] = Effect.fnUntraced(function* (write, until) {
    const outcome = yield* ingest.ingest({ ...write, until })
    switch (outcome.kind) {
      case "written":
      case "visible":
        return outcome
      case "failed":
        return yield* new TraceFailed({ message: outcome.receipt.error?.message ?? "unknown" })
      case "mismatch":
        return yield* new TraceMismatch()
      case "undecided":
        return yield* new TraceUndecided()
    }
  })

  const several: TraceWrites["Service"]["several"] = Effect.fnUntraced(function* (write) {
    const outcome = yield* batch(write, "visible")
    return outcome.kind === "visible" ? outcome.receipt : yield* new TraceUndecided()
  })

  const single: TraceWrites["Service"]["single"] = Effect.fnUntraced(function* (write) {
    const { errors, receipt_id, results } = yield* several(write)
    const [refused] = errors
    if (refused !== undefined) {
      const { code, message } = refused
      return isTraceErrorCode(code)
        ? yield* new TraceRefused({ code, message })
        : yield* Effect.die(new Error(`a sequencer refused with the unknown code ${code}`))
    }
    const [result] = results ?? []
    return result ?? (yield* Effect.die(new Error(`receipt ${receipt_id} has no result`)))
  })

  return TraceWrites.of({ batch, several, single })
})

export const layerTraceWrites: Layer.Layer<TraceWrites, never, Ingest> = Layer.effect(
  TraceWrites,
  make
)
