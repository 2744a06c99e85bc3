/**
 * What a sequencer and others write to one topic, in any order, through its changelog to a reader:
 * each record comes once, in order, and it is known which ones are the sequencer's, however the ends
 * of transactions are spread over the topics and whenever sequencers start anew.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { DecidedRecords } from "../../../src/actors/projection/DecidedRecords.ts"
import { advanceEnds, endsAfter, progressRecords } from "../../../src/actors/sequencer/Changelog.ts"
import {
  appliedRecord,
  emptyState,
  windowEnds
} from "../../../src/actors/sequencer/SequencerState.ts"
import type { StateRecord } from "../../../src/domain/records/StateRecords.ts"
import type { Fetched, LogRecord } from "../../../src/ports/EventLog.ts"

/** A topic of which a reader sees what is before `visible`. */
class Topic {
  readonly records: Array<LogRecord> = []
  end = 0
  visible = 0

  append(key: string, value: StateRecord["value"]): void {
    this.records.push({
      offset: this.end++,
      timestamp: 0,
      key: Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
      headers: {}
    })
  }

  /** Everything that is written is decided. */
  settle(isTransaction: boolean): void {
    if (isTransaction) this.end += 1
    this.visible = this.end
  }

  /** At most so many records. */
  fetch(topic: "events" | "state", offset: number, max: number): Fetched {
    const { end: writtenEnd, visible: stableEnd } = this
    const isRead = ({ offset: at }: LogRecord) => at >= offset && at < stableEnd
    const found = this.records.filter(isRead)
    const records = found.slice(0, max)
    const nextOffset = found.length > max ? records.at(-1)!.offset + 1 : Math.max(offset, stableEnd)
    return { topic, partition: 0, offset, records, nextOffset, writtenEnd, stableEnd, logStart: 0 }
  }
}

const fetches = fc.nat({ max: 4 })
const step = fc.record({
  before: fc.nat({ max: 2 }),
  restarts: fc.boolean(),
  after: fc.nat({ max: 2 }),
  own: fc.nat({ max: 3 }),
  /** How often is fetched once these are written, what is written is decided in one, and in both. */
  fetched: fc.tuple(fetches, fetches, fetches, fetches)
})

describe("records of a topic that others write to as well", () => {
  it("come in order, and are known as a sequencer's or not", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.integer({ min: 1, max: 5 }),
        (steps, max) => {
          const [events, changelog] = [new Topic(), new Topic()]
          const state = emptyState(0, 1, { dedup: 1, idempotency: 1 })
          const writeState = (records: ReadonlyArray<StateRecord>) => {
            for (const { key, value } of records) changelog.append(key, value)
          }
          writeState([appliedRecord(state, windowEnds(state))])
          changelog.settle(true)
          const decided = new DecidedRecords(0)
          const seen: Array<readonly [offset: number, writer: string, isOwn: boolean]> = []
          let next = 0
          const fetch = (times: number) => {
            for (let time = 0; time < times; time++) {
              const read = decided.isFull("events") ? [] : [events.fetch("events", next, max)]
              next = read[0]?.nextOffset ?? next
              for (const { records } of decided.take([
                ...read,
                changelog.fetch("state", decided.next, max)
              ])) {
                for (const { key, offset } of records) {
                  seen.push([offset, String(key), decided.own.isOwn("events", offset)])
                }
              }
            }
          }
          const forge = (count: number) => {
            for (let one = 0; one < count; one++) events.append("other", "forged")
            events.settle(false)
          }
          for (const { after, before, fetched, own, restarts } of steps) {
            forge(before)
            fetch(fetched[0])
            if (restarts) {
              const isOwnEnd = events.records.every(
                ({ key, offset }) => String(key) === "own" || offset < state.eventsNext
              )
              state.expected.events = isOwnEnd ? events.end : state.eventsNext
            }
            forge(after)
            if (own === 0) continue
            const ends = endsAfter(state, { events: own, traces: 0 }, { events: events.end })
            for (let one = 0; one < own; one++) events.append("own", "event")
            writeState(
              progressRecords({ ...state, ...ends, strays: state.strays }, windowEnds(state), ends)
            )
            fetch(fetched[1])
            events.settle(true)
            fetch(fetched[2])
            changelog.settle(true)
            fetch(fetched[3])
            advanceEnds(state, ends)
          }
          // What is still held needs two answers, what could not be fetched meanwhile two more.
          fetch(8 + events.end + changelog.end)
          assert.deepStrictEqual(
            seen,
            events.records.map(({ key, offset }) => {
              const writer = String(key)
              return [offset, writer, writer === "own"] as const
            })
          )
        }
      ),
      { numRuns: 300 }
    )
  })

  it("all count where the changelog says nothing", () => {
    const events = new Topic()
    events.append("other", "event")
    events.settle(false)
    const decided = new DecidedRecords(0)
    assert.strictEqual(decided.take([events.fetch("events", 0, 9)])[0]?.records.length, 1)
    assert.isTrue(decided.own.isOwn("events", 0))
  })
})
