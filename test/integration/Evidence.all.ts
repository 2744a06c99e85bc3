/**
 * Erasures and rewritten chains on a real broker and store: what is erased stays erased whatever
 * ends in between, the chain holds all the while, and who kept a checkpoint finds out.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { GENESIS_HASH } from "../../src/domain/chain/Chains.ts"
import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import { eraseEvent } from "../../src/domain/events/HashChain.ts"
import { ChainRecompute } from "../../src/ports/ChainRecompute.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import type { EventLog } from "../../src/ports/EventLog.ts"
import { type EventRow, EventStore, StoreUnavailable } from "../../src/ports/EventStore.ts"
import { isForged, SignedCheckpoints } from "../../src/verify/SignedCheckpoints.ts"
import { eventually } from "../support/Eventually.ts"
import { append } from "../support/Log.ts"
import { type Stores, setAsideIn, tamper } from "../support/Store.ts"
import {
  erasureOf,
  events,
  layerVerification,
  listed,
  project,
  projecting,
  rewritten,
  sequence,
  sequencing,
  signed,
  submit,
  TENANT,
  topicBodies,
  topicCheckpoints,
  verify,
  wantCheckpoint,
  withView
} from "./support/Evidence.ts"

/** What the store has to hold: the topic's bytes, without the details of these sequences. */
const expected = (bodies: ReadonlyArray<string>): ReadonlyArray<string> => {
  const erasedAt = new Map<unknown, string>()
  for (const body of bodies) {
    const { action, created_at, metadata } = JSON.parse(body) as AuditEvent
    const sequence = metadata?.["sequence_number"]
    if (action === "alk.event.erased" && !erasedAt.has(sequence)) erasedAt.set(sequence, created_at)
  }
  return bodies.map((body) => {
    const event = JSON.parse(body) as AuditEvent
    const time = erasedAt.get(event.sequence_number)
    return time === undefined ? body : eraseEvent(event, time)
  })
}

/** The list is what it has to be, and the chain holds with so many events erased. */
const assertErased = Effect.fnUntraced(function* (count: number) {
  assert.deepStrictEqual((yield* listed).bodies, expected(yield* topicBodies))
  const report = yield* verify()
  assert.deepStrictEqual([report.status, report.erased_events, report.breaks], ["valid", count, []])
})

/** Ten events in topic and store, of which these are to be erased next. */
const tenEvents = (...sequences: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const all = yield* sequence(10, events(10))
    yield* project()
    yield* sequence(10 + sequences.length, ...sequences.map((at) => erasureOf(all[at - 1]!)))
  })

/** The store, with something before each insert of events. */
const watched = Effect.fnUntraced(function* (
  before: (rows: ReadonlyArray<EventRow>) => Effect.Effect<void, StoreUnavailable>
) {
  const store = yield* EventStore
  return EventStore.of({
    ...store,
    insertEvents: (rows) => Effect.andThen(before(rows), store.insertEvents(rows))
  })
})

const isErasure = ({ body }: EventRow): boolean => body.includes('"action":"alk.event.erased"')

const detailsGone = (sequence: number) =>
  eventually(`the details of event ${sequence} are gone`, listed, ({ bodies }) =>
    bodies[sequence - 1]!.includes('"erased_at"')
  )

describe("an erasure", () => {
  it.live("takes the details out of the view; the chain holds, and a rebuilt view has none", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* tenEvents(3, 7, 3)
        yield* project()
        yield* assertErased(2)
        yield* tamper(`TRUNCATE TABLE ${database}.events`)
        yield* project()
        yield* assertErased(2)
      })
    )
  )

  it.live("of events that are projected together with it, and of many at once", () =>
    withView(() =>
      Effect.gen(function* () {
        const all = yield* sequence(220, events(220))
        const erased = all.slice(0, 200)
        yield* sequence(420, ...erased.map(erasureOf))
        yield* project()
        yield* assertErased(200)
      })
    )
  )

  for (const [name, target] of [
    ["an event in the middle", 4],
    ["the last event", 10]
  ] as const) {
    it.live(`of ${name} survives an end between erasing and storing that it was`, () =>
      withView((database) =>
        Effect.gen(function* () {
          yield* tenEvents(target)
          const ended = new StoreUnavailable({ operation: "insert", cause: new Error("ended") })
          const ending = yield* watched((rows) =>
            rows.some(isErasure) ? Effect.fail(ended) : Effect.void
          )
          yield* projecting.pipe(
            Effect.provideService(EventStore, ending),
            Effect.andThen(detailsGone(target)),
            Effect.scoped
          )
          assert.strictEqual((yield* listed).total, 10)
          const going = yield* watched(() => Effect.void)
          yield* project().pipe(Effect.provideService(EventStore, going))
          yield* assertErased(1)
          // What is left of an erased row is no sign of a view that the topic denies.
          assert.deepStrictEqual(yield* setAsideIn(database), [])
        })
      )
    )
  }

  it.live("is no break to whoever verifies in the moment between", () =>
    withView(() =>
      Effect.gen(function* () {
        const all = yield* sequence(10, events(10))
        yield* project()
        const isAsked = yield* Deferred.make<void>()
        const store = yield* EventStore
        const recompute = yield* ChainRecompute
        const context = yield* Effect.context<EventLog | Stores>()
        const holding = yield* watched((rows) =>
          rows.some(isErasure) ? Deferred.await(isAsked) : Effect.void
        )
        yield* Effect.gen(function* () {
          yield* projecting.pipe(Effect.provideService(EventStore, holding))
          // The verifier has caught up with the log, and only then the event is erased.
          const erasing = sequence(11, erasureOf(all[3]!)).pipe(
            Effect.andThen(detailsGone(4)),
            Effect.provideContext(context),
            Effect.orDie
          )
          const reading = EventStore.of({
            ...store,
            rows: (tenantId, first, last) =>
              Stream.unwrap(Effect.as(erasing, store.rows(tenantId, first, last)))
          })
          const asking = ChainRecompute.of({
            ...recompute,
            erasures: (tenantId, sequences) =>
              Effect.tap(recompute.erasures(tenantId, sequences), () =>
                Deferred.succeed(isAsked, undefined)
              )
          })
          const report = yield* verify({ toSequence: 10 }).pipe(
            Effect.provideService(EventStore, reading),
            Effect.provideService(ChainRecompute, asking)
          )
          assert.deepStrictEqual([report.breaks, report.erased_events], [[], 1])
        }).pipe(Effect.scoped)
      })
    )
  )

  it.live("that nobody has chained is a break, whatever it looks like", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* tenEvents(4)
        yield* project()
        yield* tamper(
          `ALTER TABLE ${database}.events UPDATE erased_at = '2026-11-22 08:00:00', metadata = '',
          actor_email = '', resource_name = '', details_salt = toFixedString('', 16), search = lowerUTF8(arrayStringConcat([action, actor_id, '',
          resource_id, resource_type, ''], '\\0')) WHERE sequence_number = 2`
        )
        const report = yield* verify()
        assert.strictEqual(report.status, "broken")
        for (const { reason, sequence_number } of report.breaks) {
          assert.deepStrictEqual([sequence_number, reason], [2, "content_mismatch"])
        }
      })
    )
  )
})

/** What `POST /v1/verify {checkpoint}` does with a note that opens. */
const verifyNote = Effect.fnUntraced(function* (note: string) {
  const opened = yield* SignedCheckpoints.use((signed) => signed.open(TENANT, note)).pipe(
    Effect.provide(layerVerification)
  )
  assert(!("unreadable" in opened) && !isForged(opened), JSON.stringify(opened))
  const { treeSize } = opened
  return yield* verify({ toSequence: treeSize, requireHead: false, checkpoints: [opened] })
})

const reasonsOf = ({ breaks }: { readonly breaks: ReadonlyArray<{ readonly reason: string }> }) => [
  ...new Set(breaks.map(({ reason }) => reason))
]

/** A chain of twenty events with checkpoints of 12 and 20, in topic and store. */
const twentyEvents = Effect.fnUntraced(function* () {
  yield* sequence(12, events(12))
  for (const [size, commands] of [
    [12, []],
    [20, [events(8), wantCheckpoint()]]
  ] as const) {
    yield* submit(...commands)
    yield* sequencing(signed(size))
  }
  const bodies = (yield* project()).bodies
  const notes = new Map((yield* topicCheckpoints).map((made) => [made.tree_size, made.note]))
  return { bodies, older: notes.get(12)!, newest: notes.get(20)! }
})

describe("a tail that was rewritten with a freshly computed chain", () => {
  it.live("in the store is found by the log's head and by every checkpoint behind it", () =>
    withView((database) =>
      Effect.gen(function* () {
        const { bodies, newest, older } = yield* twentyEvents()
        for (const note of [older, newest]) {
          const report = yield* verifyNote(note)
          assert.deepStrictEqual([report.status, report.assurance], ["valid", "signed"])
        }
        const chain = rewritten(bodies, 14, 20)
        yield* tamper(`ALTER TABLE ${database}.events DELETE WHERE sequence_number > 14`)
        const store = yield* EventStore
        const rows = chain.bodies
          .slice(14)
          .map((body, index) => ({ partition: 0, offset: 14 + index, body: Buffer.from(body) }))
        yield* store.insertEvents(rows)
        const report = yield* verify()
        assert.strictEqual(report.status, "broken")
        assert.include(reasonsOf(report), "hash_mismatch")
        assert.include(reasonsOf(yield* verifyNote(newest)), "checkpoint_mismatch")
        // What was signed of it before is still what it was.
        assert.strictEqual((yield* verifyNote(older)).status, "valid")
      })
    )
  )

  it.live("in the topic too is found by whoever kept an older checkpoint", () =>
    Effect.gen(function* () {
      const { bodies, newest, older } = yield* withView(() => twentyEvents())
      // The same service after somebody has replaced everything that it keeps, but for its key.
      yield* withView(() =>
        Effect.gen(function* () {
          const chain = rewritten(bodies, 10, 20)
          yield* append(
            chain.bodies.map((value) => ({ topic: "events", partition: 0, key: TENANT, value }))
          )
          yield* submit(wantCheckpoint())
          yield* sequencing(signed(20))
          assert.deepStrictEqual((yield* project()).bodies, chain.bodies)
          const alone = yield* verify()
          assert.deepStrictEqual([alone.status, alone.assurance], ["valid", "signed"])
          for (const [note, size] of [
            [older, 12],
            [newest, 20]
          ] as const) {
            const report = yield* verifyNote(note)
            assert.strictEqual(report.status, "broken")
            assert.deepStrictEqual(
              report.breaks.map(({ reason, sequence_number }) => [sequence_number, reason]),
              [[size, "checkpoint_mismatch"]]
            )
          }
        })
      )
    })
  )

  it.live("whose checkpoints were replaced in the store is found without any kept one", () =>
    withView((database) =>
      Effect.gen(function* () {
        const { bodies } = yield* twentyEvents()
        const store = yield* CheckpointStore
        const [newest] = yield* store.list(TENANT, { limit: 1 })
        yield* tamper(`TRUNCATE TABLE ${database}.checkpoints`)
        const note = newest!.note.replace("\n20\n", "\n19\n")
        const body = Buffer.from(JSON.stringify({ ...newest!, tree_size: 19, note }))
        yield* store.insert([{ partition: 0, offset: 1, tenantId: TENANT, treeSize: 19, body }])
        const report = yield* verify()
        assert.deepStrictEqual(
          report.breaks.map(({ reason, sequence_number }) => [sequence_number, reason]),
          [[19, "checkpoint_mismatch"]]
        )
        assert.strictEqual((JSON.parse(bodies[0]!) as AuditEvent).prev_hash, GENESIS_HASH)
      })
    )
  )
})
