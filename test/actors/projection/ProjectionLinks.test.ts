/** What the projection takes for the end of a chain when the store is ahead of what it reads. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import {
  type ChainLinks,
  learnLinks,
  makeLinks
} from "../../../src/actors/projection/ProjectionLinks.ts"
import { nothingRemoved } from "../../../src/actors/projection/RemovedChains.ts"
import { everythingOwn } from "../../../src/domain/records/OwnOffsets.ts"
import { EventLog, type Fetched, type LogRecord } from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"
import { Chain } from "../../verify/support/Chains.ts"

const recordsOf = (texts: ReadonlyArray<string>): ReadonlyArray<LogRecord> =>
  texts.map((text, offset) => ({
    offset,
    timestamp: 0,
    key: Buffer.from("acme"),
    value: Buffer.from(text),
    headers: {}
  }))

/** The end of the chain of acme that is learned when the store holds `stored` of these records. */
const learned = (records: ReadonlyArray<LogRecord>, from: number, stored: number) =>
  Effect.gen(function* () {
    const fetchedFrom = (offset: number): Fetched => ({
      topic: "events",
      partition: 0,
      offset,
      records: records.slice(offset),
      nextOffset: records.length,
      writtenEnd: records.length,
      stableEnd: records.length,
      logStart: 0
    })
    const links: ChainLinks = {
      events: makeLinks(),
      traces: makeLinks(),
      removed: nothingRemoved,
      own: () => everythingOwn
    }
    const reader = {
      fetch: (positions: ReadonlyArray<{ readonly offset: number }>) =>
        Effect.succeed(positions.map(({ offset }) => fetchedFrom(offset)))
    }
    yield* learnLinks(links, reader, [fetchedFrom(from)]).pipe(
      Effect.provide([
        Layer.mock(EventLog, {
          partitions: 1,
          bootstrap: "nowhere",
          partitionOf: () => 0,
          bounds: () => Effect.succeed({ start: 0, end: records.length })
        }),
        Layer.mock(EventStore, {
          lastEvents: () => {
            const body = records[stored - 1]?.value?.toString()
            return Effect.succeed(body === undefined ? [] : [{ tenantId: "acme", body }])
          }
        }),
        Layer.mock(TraceStore, {})
      ])
    )
    return links.events.get("acme")?.sequenceNumber
  })

describe("the end of a chain, if an insert of before came to its end late", () => {
  const records = recordsOf(new Chain("acme").extend(3).bodies)

  it.effect("is before the first record that is read", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* learned(records, 1, 3), 1)
    })
  )

  it.effect("is nothing before the first record of the chain", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* learned(records, 0, 3))
    })
  )

  it.effect("is that of the store before a first record that comes again", () =>
    Effect.gen(function* () {
      const again = [...records, { ...records[0]!, offset: 3 }]
      assert.strictEqual(yield* learned(again, 3, 3), 3)
    })
  )
})
