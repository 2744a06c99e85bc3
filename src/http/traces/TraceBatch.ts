/**
 * Serves the batch of operations on traces: what an SDK sends. Asynchronous unless asked to wait,
 * as ingest is.
 */
import { Effect } from "effect"
import { TraceWrites } from "../../services/ingest/TraceWrites.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { refusable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { acceptedAt, wantsSync } from "../messages/WriteRequest.ts"
import { ingestAnswered } from "../server/Metrics.ts"
import { batchVisible, batchWritten } from "./TraceAnswer.ts"
import type { createTraces } from "./TraceContract.ts"
import { severalOperations, type TraceInput, TraceRequests } from "./TraceRequest.ts"

const MEMBER = "operations"

/** The handler of the batch. */
export const makeTraceBatchHandlers = Effect.gen(function* () {
  const { publicUrl } = yield* ApiSettings
  const accepted = acceptedAt(publicUrl)
  const requests = yield* TraceRequests
  const writes = yield* TraceWrites

  return {
    createTraces: Effect.fnUntraced(function* (
      input: TraceInput & Pick<RequestOf<typeof createTraces>, "query">
    ) {
      const sync = yield* refusable(() => wantsSync(input))
      const operations = yield* requests.read(
        input,
        undefined,
        (bytes) => severalOperations(bytes, MEMBER),
        sync
      )
      const { items } = operations
      const until = sync ? "visible" : "written"
      const startedAt = performance.now()
      const outcome = yield* writes.batch(operations, until)
      yield* ingestAnswered({
        accepted: items.traces.length,
        rejected: items.errors,
        until,
        seconds: (performance.now() - startedAt) / 1_000
      })
      return outcome.kind === "written"
        ? batchWritten(items, outcome.receiptId, accepted(outcome.receiptId))
        : batchVisible(outcome.receipt)
    })
  }
})
