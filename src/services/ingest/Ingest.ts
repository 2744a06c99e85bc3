/**
 * From the items of a request to an outcome: prepares them, writes the command, and waits for as
 * much as the caller asked for. What an outcome looks like to a client is not decided here.
 */
import { hash } from "node:crypto"
import { Clock, Context, Effect, Layer, Option, Redacted } from "effect"
import { type Decision, Receipts } from "../../actors/follower/Receipts.ts"
import { derivedUuid, makeReceiptId, uuidv7 } from "../../domain/Identifiers.ts"
import type { NumberTexts, StrictOptions, StrictResult } from "../../domain/json/StrictJson.ts"
import {
  bodyFingerprint,
  type Command,
  type IdempotencyFingerprint,
  type ItemError,
  type ItemWarning
} from "../../domain/records/Command.ts"
import { type EventBatch, EventBatchBuilder } from "../../domain/records/EventBatch.ts"
import { type EventValues, holderOf } from "../../domain/records/EventValues.ts"
import type { Receipt } from "../../domain/records/Receipt.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { currentTime, formatMicros } from "../../domain/Timestamp.ts"
import type { TraceOperation } from "../../domain/traces/TraceOperation.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import { CommandLog, type CommandLogBusy, type CommandTooLarge } from "../commands/CommandLog.ts"
import { submitForDecision } from "../commands/NewCommand.ts"
import { valuesBudget } from "./LargeValues.ts"
import { type MetadataApart, type PrepareLimits, prepareInSteps, shownPath } from "./Prepare.ts"

/** Milliseconds that a request waits for its commit, or for the sequencer's decision, at most. */
export const COMMIT_TIMEOUT_MS = 10_000
/** Milliseconds between two looks at the receipt of an earlier attempt. */
const EARLIER_RECEIPT_INTERVAL_MS = 50
/** Hex digits of the hashes in an idempotency fingerprint: 16 bytes. */
const FINGERPRINT_LENGTH = 32

/** What an `Idempotency-Key` covers, and the key. */
export interface IdempotencyKey {
  readonly method: string
  readonly path: string
  readonly key: string
}

/** The option of an item by which a repeated request makes the same ids. */
export const keyOption = (key: IdempotencyKey | undefined): { readonly idempotencyKey?: string } =>
  key === undefined ? {} : { idempotencyKey: `${key.method} ${key.path} ${key.key}` }

/** The items of a request after validation, by their place in the request. */
export interface PreparedItems {
  readonly events: EventBatch
  readonly errors: ReadonlyArray<ItemError>
  readonly warnings: ReadonlyArray<ItemWarning>
  /** What has left the metadata of events. */
  readonly values?: ReadonlyArray<EventValues>
  /** Operations on traces, instead of events. */
  readonly traces?: ReadonlyArray<TraceOperation>
}

/** What the items of one request have in common. */
export interface PrepareItemsOptions {
  readonly mode: "single" | "batch"
  readonly tenantId: string
  readonly secret: string
  readonly limits: PrepareLimits
  readonly idempotency: IdempotencyKey | undefined
  /** Actions may have any printable name. */
  readonly anyAction?: boolean
  /** Numbers in metadata that no double holds are kept as texts. */
  readonly numbersAsText?: boolean
}

/** How the items of a request are read. */
export const readingOf = ({ numbersAsText }: PrepareItemsOptions): StrictOptions =>
  numbersAsText === true ? { textsBelow: "metadata" } : {}

const KEPT_AS_TEXT = "kept as text: no double holds the number"

/** What the answer says of numbers that were kept as texts. */
const textWarnings = (index: number, { count, paths }: NumberTexts): ReadonlyArray<ItemWarning> => {
  const named = paths.map((field) => ({ index, field: shownPath(field), message: KEPT_AS_TEXT }))
  const more = count - paths.length
  const message = `${KEPT_AS_TEXT}, as with ${more} more in this item`
  return more === 0 ? named : [...named, { index, field: "metadata", message }]
}

const KEPT_APART =
  "kept apart: GET /api/v1/payloads/{sha256} has what the reference in its place names"

/** What the answer says of members of metadata that are stored apart. */
const apartWarnings = (index: number, { fields }: MetadataApart): ReadonlyArray<ItemWarning> =>
  fields.map((field) => ({ index, field, message: KEPT_APART }))

/**
 * Validate items in order, one a step. Never fails: what is wrong with an item is an error of that item.
 */
export const prepareItems = (
  items: ReadonlyArray<StrictResult>,
  options: PrepareItemsOptions
): Sliced<PreparedItems> => prepareEach(items.entries(), options, currentTime())

/** The same for some items of a request, each with its index. */
export function* prepareEach(
  items: Iterable<readonly [number, StrictResult]>,
  { anyAction = false, idempotency, limits, mode, secret, tenantId }: PrepareItemsOptions,
  acceptedAt: string
): Sliced<PreparedItems> {
  const events = new EventBatchBuilder()
  const errors: Array<ItemError> = []
  const warnings: Array<ItemWarning> = []
  const values: Array<EventValues> = []
  const options = {
    mode,
    tenantId,
    acceptedAt,
    secret,
    limits,
    anyAction,
    room: valuesBudget(),
    ...keyOption(idempotency)
  }
  for (const [index, item] of items) {
    yield
    if ("problem" in item) {
      errors.push({ index, code: item.problem.code, message: item.problem.message })
      continue
    }
    const prepared = yield* prepareInSteps(item.value, { ...options, index })
    if ("error" in prepared) {
      errors.push({ index, code: prepared.error.code, message: prepared.error.message })
      continue
    }
    const { apart, ok } = prepared
    events.add(ok)
    if (apart !== undefined) {
      const { payloads } = apart
      values.push({ index, executionId: holderOf(ok.contentHash), spanId: ok.id, payloads })
      warnings.push(...apartWarnings(index, apart))
    }
    for (const field of prepared.warnings) warnings.push({ index, field })
    if (item.texts !== undefined) warnings.push(...textWarnings(index, item.texts))
  }
  const prepared = { events: events.build(), errors, warnings }
  return values.length === 0 ? prepared : { ...prepared, values }
}

/** The fingerprint by which the sequencer recognises a repeated request. */
export const fingerprintOf = (
  tenantId: string,
  { key, method, path }: IdempotencyKey,
  body: Buffer,
  options: { readonly forgetConflict: boolean; readonly waits?: boolean }
): IdempotencyFingerprint => ({
  key: hash("sha256", `alk-idempotency\n${tenantId}\n${method}\n${path}\n${key}`, "hex").slice(
    0,
    FINGERPRINT_LENGTH
  ),
  body: bodyFingerprint(
    hash("sha256", body, "hex").slice(0, FINGERPRINT_LENGTH),
    options.waits === true
  ),
  forgetConflict: options.forgetConflict
})

/** An `Idempotency-Key` with what it covers and how a repeat is answered. */
export interface Idempotency {
  readonly key: IdempotencyKey
  readonly fingerprint: IdempotencyFingerprint
  /** The client chooses whether to wait: a repeat is answered as the first request was. */
  readonly waitingIsOptional?: true
  /** Id of the receipt that the fingerprint has already, of a request that was sent before. */
  readonly receiptId?: string
}

/** Validated items, and how long to wait for them. */
export interface IngestRequest {
  readonly tenantId: string
  readonly items: PreparedItems
  readonly idempotency: Idempotency | undefined
  /** `written`: until the log has it. `visible`: until every list shows it. */
  readonly until: "written" | "visible"
}

/** What came of a request. */
export type IngestOutcome =
  /** Durable; the receipt will say more. Also what a wait for too long ends with. */
  | { readonly kind: "written"; readonly receiptId: string }
  | {
      readonly kind: "visible"
      readonly receipt: Receipt
      /** True if an earlier request of the same key has done it. */
      readonly isRepeat: boolean
    }
  /** The command as a whole could not be applied. */
  | { readonly kind: "failed"; readonly receipt: Receipt }
  /** The key was used before with another body. */
  | { readonly kind: "mismatch" }
  /** Durable, but whether the key was used before was not decided in time. */
  | { readonly kind: "undecided" }

/** Nothing is known to be decided; a write may have happened. */
export type IngestFailure = CommandLogBusy | CommandTooLarge | LogUnavailable | StoreUnavailable

/** From validated items to an outcome. */
export class Ingest extends Context.Service<
  Ingest,
  {
    ingest(request: IngestRequest): Effect.Effect<IngestOutcome, IngestFailure>
  }
>()("alk/Ingest") {}

interface ReceiptName {
  readonly receiptId: string
  readonly receivedAt: string
}

const MILLISECOND_DIGITS = 12

/** When the service made the UUIDv7 in a receipt id, or undefined for a derived receipt id. */
export const receivedAtOf = (receiptId: string): string | undefined => {
  const uuid = receiptId.slice("rcp_".length)
  return uuid[MILLISECOND_DIGITS] === "7"
    ? formatMicros(Number.parseInt(uuid.slice(0, MILLISECOND_DIGITS), 16) * 1_000)
    : undefined
}

/** None if the deadline, in milliseconds of the clock, comes first. */
const until = <A, E>(deadline: number, effect: Effect.Effect<A, E>) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.timeoutOption(effect, Math.max(0, deadline - now))
  )

const nameReceipt = (
  secret: string,
  tenantId: string,
  { key, receiptId: known }: Partial<Pick<Idempotency, "key" | "receiptId">>
): ReceiptName => {
  if (known !== undefined) return { receiptId: known, receivedAt: currentTime() }
  const uuid =
    key === undefined
      ? uuidv7()
      : derivedUuid("alk-receipt", tenantId, key.method, key.path, key.key)
  const receiptId = makeReceiptId(secret, tenantId, uuid)
  return { receiptId, receivedAt: receivedAtOf(receiptId) ?? currentTime() }
}

const make = Effect.fnUntraced(function* (secret: string) {
  const commands = yield* CommandLog
  const receipts = yield* Receipts

  /** The final receipt of an earlier attempt, as soon as there is one. */
  const earlier = (tenantId: string, receiptId: string) =>
    Effect.gen(function* () {
      for (;;) {
        const state = yield* receipts.state(tenantId, receiptId)
        if (state.status !== "pending") return state.receipt
        yield* Effect.sleep(EARLIER_RECEIPT_INTERVAL_MS)
      }
    })

  /** Wait for what a decision promises, until the deadline. */
  const awaitOutcome = Effect.fnUntraced(function* (
    request: IngestRequest,
    receiptId: string,
    decision: Decision,
    deadline: number
  ): Effect.fn.Return<IngestOutcome, IngestFailure> {
    if (decision.kind === "mismatch") return { kind: "mismatch" }
    if (decision.kind === "outcome" && decision.receipt.status === "failed") {
      return { kind: "failed", receipt: decision.receipt }
    }
    const waits = request.until === "visible"
    const isFirstMode = decision.kind === "repeat" && request.idempotency?.waitingIsOptional
    if (!(isFirstMode ? (decision.waited ?? waits) : waits)) return { kind: "written", receiptId }
    const final: Effect.Effect<Receipt, IngestFailure> =
      decision.kind === "repeat"
        ? earlier(request.tenantId, decision.receiptId)
        : Effect.as(receipts.visible(decision.receipt), decision.receipt)
    const receipt = yield* until(deadline, final)
    if (Option.isNone(receipt)) return { kind: "written", receiptId }
    return receipt.value.status === "failed"
      ? { kind: "failed", receipt: receipt.value }
      : { kind: "visible", receipt: receipt.value, isRepeat: decision.kind === "repeat" }
  })

  const ingest = Effect.fn("Ingest.ingest")(function* (
    request: IngestRequest
  ): Effect.fn.Return<IngestOutcome, IngestFailure> {
    const { idempotency, items, tenantId } = request
    const { receiptId, receivedAt } = nameReceipt(secret, tenantId, idempotency ?? {})
    const deadline = (yield* Clock.currentTimeMillis) + COMMIT_TIMEOUT_MS
    const command: Command = {
      kind: items.traces === undefined ? "ingest" : "trace",
      tenantId,
      receiptId,
      attempt: crypto.randomUUID(),
      receivedAt,
      events: items.events,
      errors: items.errors,
      warnings: items.warnings,
      ...(request.until === "visible" ? { waits: true } : {}),
      ...(items.traces === undefined ? {} : { traces: items.traces }),
      ...(items.values === undefined ? {} : { values: items.values }),
      ...(idempotency === undefined ? {} : { idempotency: idempotency.fingerprint })
    }
    if (request.until === "written" && idempotency === undefined) {
      yield* commands.submit(command)
      return { kind: "written", receiptId }
    }
    const decided = yield* submitForDecision(commands, receipts, command)
    const decision = yield* until(deadline, decided)
    if (Option.isSome(decision)) {
      return yield* awaitOutcome(request, receiptId, decision.value, deadline)
    }
    return idempotency === undefined ? { kind: "written", receiptId } : { kind: "undecided" }
  })

  return Ingest.of({ ingest })
})

/** `secret` is `ALK_SECRET`: it makes receipt ids recognisable to every process. */
export const layerIngest = (
  secret: Redacted.Redacted
): Layer.Layer<Ingest, never, CommandLog | Receipts> =>
  Layer.effect(Ingest, make(Redacted.value(secret)))
