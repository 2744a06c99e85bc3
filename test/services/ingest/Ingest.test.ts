/**
 * What comes of a request, by how long it is waited for and what the sequencer says: the outcomes,
 * their time limits, and that nothing is left waiting.
 */

import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import {
  type Decision,
  type ReceiptState,
  Receipts
} from "../../../src/actors/follower/Receipts.ts"
import { verifyReceiptId } from "../../../src/domain/Identifiers.ts"
import { type Command, hasWaited, isSameBody } from "../../../src/domain/records/Command.ts"
import { EMPTY_BATCH, eventsOf, idsOf } from "../../../src/domain/records/EventBatch.ts"
import type { Receipt } from "../../../src/domain/records/Receipt.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { CommandLog, CommandLogBusy } from "../../../src/services/commands/CommandLog.ts"
import {
  COMMIT_TIMEOUT_MS,
  fingerprintOf,
  Ingest,
  type IngestRequest,
  layerIngest,
  prepareItems,
  receivedAtOf
} from "../../../src/services/ingest/Ingest.ts"
import { defaultPrepareLimits } from "../../../src/services/ingest/Prepare.ts"
import { eventually } from "../../support/Eventually.ts"

const SECRET = "a secret of the tests, 32 characters long"
const BODY = Buffer.from("the body")
const KEY = { method: "POST", path: "/v1/events", key: "key-1" }

/** Log and receipts that do nothing by themselves; the test plays the sequencer. */
class Stage {
  readonly commands: Array<Command> = []
  readonly expected = new Map<string, Deferred.Deferred<Decision>>()
  readonly visible = Deferred.makeUnsafe<void>()
  state: ReceiptState = { status: "pending" }
  asked = 0
  refusal: CommandLogBusy | undefined
  /** Attempts registered before their command was written. */
  early = 0

  readonly layer = layerIngest(Redacted.make(SECRET)).pipe(
    Layer.provide(
      Layer.mergeAll(
        Layer.succeed(CommandLog, {
          submit: (command) =>
            Effect.suspend(() => {
              if (this.expected.has(command.attempt)) this.early += 1
              this.commands.push(command)
              return this.refusal === undefined ? Effect.void : Effect.fail(this.refusal)
            })
        }),
        Layer.succeed(Receipts, {
          expect: (attempt) =>
            Effect.sync(() => {
              const decision = Deferred.makeUnsafe<Decision>()
              this.expected.set(attempt, decision)
              return Deferred.await(decision).pipe(
                Effect.ensuring(Effect.sync(() => this.expected.delete(attempt)))
              )
            }),
          state: () =>
            Effect.sync(() => {
              this.asked += 1
              return this.state
            }),
          visible: () => Deferred.await(this.visible)
        })
      )
    )
  )

  decide(decision: Decision): Effect.Effect<void> {
    return Effect.suspend(() => {
      const [waiting] = this.expected.values()
      return Effect.asVoid(Deferred.succeed(waiting!, decision))
    })
  }

  receipt(more: Partial<Receipt> = {}): Receipt {
    const { receiptId, receivedAt, tenantId } = this.commands[0]!
    return {
      receipt_id: receiptId,
      tenant_id: tenantId,
      status: "committed",
      accepted: 1,
      rejected: 0,
      ids: ["a"],
      errors: [],
      received_at: receivedAt,
      command_offset: 0,
      events_next: 1,
      ...more
    }
  }
}

const request = (more: Partial<IngestRequest> = {}): IngestRequest => ({
  tenantId: "acme",
  items: { events: EMPTY_BATCH, errors: [], warnings: [] },
  until: "written",
  idempotency: undefined,
  ...more
})

const idempotency = {
  key: KEY,
  fingerprint: fingerprintOf("acme", KEY, BODY, { forgetConflict: false })
}

/** Start a request and let it run until it waits for something. */
const start = Effect.fnUntraced(function* (stage: Stage, more: Partial<IngestRequest>) {
  const { ingest } = yield* Ingest
  const before = stage.commands.length
  const fiber = yield* Effect.forkChild(ingest(request(more)))
  yield* Effect.yieldNow
  yield* eventually(
    "the command is written",
    Effect.sync(() => stage.commands),
    ({ length }) => length > before
  )
  yield* Effect.yieldNow
  return fiber
})

const onStage = (run: (stage: Stage) => Effect.Effect<void, unknown, Ingest>) => () => {
  const stage = new Stage()
  return run(stage).pipe(Effect.provide(stage.layer))
}

describe("Ingest", () => {
  it.effect(
    "is done when the log has the command, if nobody waits for more",
    onStage((stage) =>
      Effect.gen(function* () {
        const outcome = yield* Fiber.join(yield* start(stage, {}))
        const [command] = stage.commands
        assert.deepStrictEqual(outcome, { kind: "written", receiptId: command!.receiptId })
        assert.isTrue(verifyReceiptId(SECRET, "acme", command!.receiptId))
        assert.isFalse(verifyReceiptId(SECRET, "globex", command!.receiptId))
        assert.strictEqual(receivedAtOf(command!.receiptId), command!.receivedAt)
        assert.strictEqual(stage.expected.size, 0)
      })
    )
  )

  it.effect(
    "waits until the events are visible, having registered before it wrote",
    onStage((stage) =>
      Effect.gen(function* () {
        const fiber = yield* start(stage, { until: "visible" })
        assert.strictEqual(stage.early, 1)
        const receipt = stage.receipt()
        yield* stage.decide({ kind: "outcome", receipt, receiptOffset: 0 })
        yield* Effect.yieldNow
        assert.isUndefined(fiber.pollUnsafe())
        yield* Deferred.succeed(stage.visible, undefined)
        assert.deepStrictEqual(yield* Fiber.join(fiber), {
          kind: "visible",
          receipt,
          isRepeat: false
        })
      })
    )
  )

  it.effect(
    "says written if nobody decides, or nothing becomes visible, in 10 s",
    onStage((stage) =>
      Effect.gen(function* () {
        const undecided = yield* start(stage, { until: "visible" })
        yield* TestClock.adjust(COMMIT_TIMEOUT_MS - 1)
        assert.isUndefined(undecided.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.strictEqual((yield* Fiber.join(undecided)).kind, "written")
        assert.strictEqual(stage.expected.size, 0)

        const invisible = yield* start(stage, { until: "visible" })
        yield* TestClock.adjust(COMMIT_TIMEOUT_MS / 2)
        yield* stage.decide({ kind: "outcome", receipt: stage.receipt(), receiptOffset: 0 })
        yield* TestClock.adjust(COMMIT_TIMEOUT_MS / 2)
        assert.strictEqual((yield* Fiber.join(invisible)).kind, "written")
      })
    )
  )

  it.effect(
    "says failed for a command that could not be applied",
    onStage((stage) =>
      Effect.gen(function* () {
        const fiber = yield* start(stage, { until: "visible" })
        const error = { code: "unreadable_command", message: "quarantined" }
        const receipt = stage.receipt({ status: "failed", error })
        yield* stage.decide({ kind: "outcome", receipt, receiptOffset: 0 })
        assert.deepStrictEqual(yield* Fiber.join(fiber), { kind: "failed", receipt })
      })
    )
  )

  it.effect(
    "with a key waits for the sequencer's word, and says undecided without it",
    onStage((stage) =>
      Effect.gen(function* () {
        const decided = yield* start(stage, { idempotency })
        assert.isUndefined(decided.pollUnsafe())
        yield* stage.decide({ kind: "outcome", receipt: stage.receipt(), receiptOffset: 0 })
        const { receiptId } = stage.commands[0]!
        assert.deepStrictEqual(yield* Fiber.join(decided), { kind: "written", receiptId })

        const undecided = yield* start(stage, { idempotency })
        yield* TestClock.adjust(COMMIT_TIMEOUT_MS)
        assert.deepStrictEqual(yield* Fiber.join(undecided), { kind: "undecided" })

        const mismatch = yield* start(stage, { idempotency })
        yield* stage.decide({ kind: "mismatch" })
        assert.deepStrictEqual(yield* Fiber.join(mismatch), { kind: "mismatch" })
        const ids = new Set(stage.commands.map((command) => command.receiptId))
        assert.strictEqual(ids.size, 1)
        assert.strictEqual(new Set(stage.commands.map(({ attempt }) => attempt)).size, 3)
      })
    )
  )

  it.effect(
    "gives a repeat the receipt of the first attempt, as soon as it is final",
    onStage((stage) =>
      Effect.gen(function* () {
        const later = yield* start(stage, { idempotency })
        const { receiptId } = stage.commands[0]!
        yield* stage.decide({ kind: "repeat", receiptId, waited: undefined })
        assert.deepStrictEqual(yield* Fiber.join(later), { kind: "written", receiptId })
        assert.strictEqual(stage.asked, 0)

        const now = yield* start(stage, { idempotency, until: "visible" })
        yield* stage.decide({ kind: "repeat", receiptId, waited: true })
        yield* TestClock.adjust(1_000)
        assert.isUndefined(now.pollUnsafe())
        const receipt = stage.receipt()
        stage.state = { status: "committed", receipt }
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(yield* Fiber.join(now), {
          kind: "visible",
          receipt,
          isRepeat: true
        })
      })
    )
  )

  it.effect(
    "leaves no one waiting for a command that was not written",
    onStage((stage) =>
      Effect.gen(function* () {
        stage.refusal = new CommandLogBusy({ message: "full", maybeWritten: false })
        const { ingest } = yield* Ingest
        const failure = yield* Effect.flip(ingest(request({ until: "visible" })))
        assert.strictEqual(failure._tag, "CommandLogBusy")
        assert.strictEqual(stage.expected.size, 0)
      })
    )
  )
})

describe("prepareItems", () => {
  const value = {
    actor: { id: "a", type: "human" },
    action: "a.b",
    resource: { id: "r", type: "t" },
    outcome: "success",
    colour: "red"
  }
  const options = {
    mode: "batch" as const,
    tenantId: "acme",
    secret: SECRET,
    limits: defaultPrepareLimits,
    idempotency: undefined
  }

  it("keeps the places of the request in events, errors and warnings", () => {
    const problem = { code: "invalid_json" as const, path: "", message: "no JSON" }
    const items = finish(prepareItems([{ value }, { problem }, { value: {} }, { value }], options))
    assert.deepStrictEqual(
      eventsOf(items.events).map(({ index }) => index),
      [0, 3]
    )
    assert.deepStrictEqual(
      items.errors.map(({ code, index }) => [index, code]),
      [
        [1, "invalid_json"],
        [2, "missing_field"]
      ]
    )
    assert.deepStrictEqual(items.warnings, [
      { index: 0, field: "colour" },
      { index: 3, field: "colour" }
    ])
  })

  it("derives ids from tenant, route, key and place, and from nothing else", () => {
    const ids = (more: object) =>
      idsOf(
        finish(prepareItems([{ value }, { value }], { ...options, idempotency: KEY, ...more }))
          .events
      )
    const first = ids({})
    assert.deepStrictEqual(ids({}), first)
    assert.strictEqual(new Set(first).size, 2)
    for (const other of [
      { tenantId: "globex" },
      { idempotency: { ...KEY, path: "/v1/events/batch" } },
      { idempotency: { ...KEY, key: "key-2" } }
    ]) {
      assert.notIncludeMembers([...ids(other)], [...first])
    }
  })

  it("marks a request by key and body apart", () => {
    const fingerprint = fingerprintOf("acme", KEY, BODY, { forgetConflict: true })
    assert.match(fingerprint.key, /^[0-9a-f]{32}$/)
    assert.match(fingerprint.body, /^[0-9a-f]{32}$/)
    const otherBody = fingerprintOf("acme", KEY, Buffer.from("other"), { forgetConflict: true })
    assert.deepStrictEqual(
      [otherBody.key, otherBody.body === fingerprint.body],
      [fingerprint.key, false]
    )
    assert.notStrictEqual(
      fingerprintOf("globex", KEY, BODY, { forgetConflict: true }).key,
      fingerprint.key
    )
    assert.isTrue(fingerprint.forgetConflict)
    const waiting = fingerprintOf("acme", KEY, BODY, { forgetConflict: true, waits: true })
    assert.isTrue(isSameBody(fingerprint.body, waiting.body))
    assert.deepStrictEqual([hasWaited(fingerprint.body), hasWaited(waiting.body)], [false, true])
    assert.isFalse(isSameBody(fingerprint.body, otherBody.body))
  })
})
