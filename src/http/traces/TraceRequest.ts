/**
 * From a request that writes to traces to prepared operations and a key: bodies in their three
 * forms (one operation, none, several), limits, idempotency.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import type { HttpServerRequest } from "effect/http"
import { isBatch, parseStrictBatch } from "../../domain/json/StrictBatch.ts"
import { parseInSteps, type StrictResult } from "../../domain/json/StrictJson.ts"
import { BATCH_ITEMS_MAX } from "../../domain/records/Command.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { fingerprintOf } from "../../services/ingest/Ingest.ts"
import {
  type OperationName,
  type PreparedTraces,
  prepareTraces,
  type Target
} from "../../services/ingest/PrepareTrace.ts"
import type { TraceWrite } from "../../services/ingest/TraceWrites.ts"
import { refuseUnknown } from "../contract/Bodies.ts"
import { type ApiError, refusable, refusedItem } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { inSlices } from "../messages/InSlices.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { idempotencyKey, unreadable } from "../messages/WriteRequest.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { Quota } from "../server/Quota.ts"

/** What every handler of a trace route is given. */
export interface TraceInput {
  readonly request: HttpServerRequest.HttpServerRequest
  readonly endpoint: { readonly path: string }
}

/** The same for a route that names an execution or a span. */
export interface TraceInputOf extends TraceInput {
  readonly params: { readonly id: string }
}

/** The operations of one request. */
export interface Operations {
  /** `one` refuses the request if its operation is wrong; `several` reports item by item. */
  readonly kind: "one" | "several"
  readonly items: ReadonlyArray<StrictResult>
}

/** Reads a body. */
export type OperationsOf = (bytes: Buffer) => Sliced<Operations>

const one = (item: StrictResult): Operations => {
  if ("problem" in item) throw unreadable(item.problem)
  return { kind: "one", items: [item] }
}

/** A body that is one operation. */
export function* oneOperation(bytes: Buffer): Sliced<Operations> {
  return one(yield* parseInSteps(bytes))
}

/** A body that may be missing. */
export function* optionalOperation(bytes: Buffer): Sliced<Operations> {
  return bytes.length === 0 ? one({ value: {} }) : yield* oneOperation(bytes)
}

/** `{"<member>": [...]}`, or the array alone. */
export function* severalOperations(bytes: Buffer, member: string): Sliced<Operations> {
  const batch = yield* parseStrictBatch(bytes, member, BATCH_ITEMS_MAX)
  if ("problem" in batch) throw unreadable(batch.problem)
  refuseUnknown(batch.beside, [member], "a batch")
  return { kind: "several", items: batch.items }
}

const EVENTS = "events"

/** One trace event, or several as a batch. */
export function* oneOrSeveralEvents(bytes: Buffer): Sliced<Operations> {
  const areSeveral = yield* isBatch(bytes, EVENTS)
  return yield* areSeveral ? severalOperations(bytes, EVENTS) : oneOperation(bytes)
}

/** The path as it was asked for, in one spelling: an idempotency key belongs to it. */
const pathOf = (template: string, id: string | undefined): string =>
  id === undefined ? template : template.replace(":id", encodeURIComponent(id))

/** A request that is ready for the pipeline. */
export interface ReadWrite extends TraceWrite {
  readonly kind: Operations["kind"]
  readonly items: PreparedTraces
}

/** Reads requests that write to traces. */
export class TraceRequests extends Context.Service<
  TraceRequests,
  {
    /**
     * `target` is what the path says; without one every operation says it by itself. `waits` is what
     * the client chose where it may.
     */
    read(
      input: TraceInput,
      target: Target,
      operationsOf: OperationsOf,
      waits?: boolean
    ): Effect.Effect<ReadWrite, ApiError, CurrentPrincipal>
  }
>()("alk/http/TraceRequests") {
  static readonly layer = Layer.effect(
    TraceRequests,
    Effect.gen(function* () {
      const { limits, secret } = yield* ApiSettings
      const quota = yield* Quota
      return TraceRequests.of({
        read: Effect.fnUntraced(function* ({ endpoint, request }, target, operationsOf, waits) {
          const { keyId, tenantId } = yield* CurrentPrincipal
          const path = pathOf(endpoint.path, target?.id)
          const key = yield* refusable(() => idempotencyKey(request, path))
          const { bytes } = yield* readBody(request, [JSON_TYPE], limits.bodyBytesMax)
          const { items: given, kind } = yield* inSlices(() => operationsOf(bytes))
          yield* quota.admit(tenantId, given.length)
          const options = {
            target,
            tenantId,
            keyId,
            secret: Redacted.value(secret),
            limits,
            idempotency: key
          }
          const items = yield* inSlices(() => prepareTraces(given, options))
          const [problem] = items.errors
          if (kind === "one" && problem !== undefined) return yield* refusedItem(problem.message)
          const idempotency = key && {
            key,
            fingerprint: fingerprintOf(tenantId, key, bytes, {
              forgetConflict: kind === "one",
              ...(waits === undefined ? {} : { waits })
            }),
            ...(waits === undefined ? {} : { waitingIsOptional: true as const })
          }
          return { kind, tenantId, items, idempotency }
        })
      })
    })
  )
}

/** What a path asks for: the operation and the id that it names. */
export const targetAt = (op: OperationName, id: string): Target => ({ op, id })
