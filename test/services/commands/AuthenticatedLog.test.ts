/** What the check of MACs does to records that are read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { NO_MAC, RecordMac } from "../../../src/domain/records/RecordMac.ts"
import { EventLog, type Fetched, type LogRecord } from "../../../src/ports/EventLog.ts"
import { authenticated } from "../../../src/services/commands/AuthenticatedLog.ts"

/** Like that of the reader of Kafka: its headers are made when they are asked for. */
class LazyRecord implements LogRecord {
  readonly offset = 7
  readonly timestamp = 1
  readonly key = Buffer.from("acme")
  readonly value = Buffer.from("forged")
  get headers() {
    return { "alk-format": Buffer.from("2") }
  }
}

describe("a record without a MAC", () => {
  it.effect("is refused, and keeps all that it has", () =>
    Effect.gen(function* () {
      const fetched: Fetched = {
        topic: "commands",
        partition: 0,
        records: [new LazyRecord()],
        nextOffset: 8,
        writtenEnd: 8,
        stableEnd: 8,
        logStart: 0,
        offset: 7
      }
      const log = EventLog.of({
        reader: Effect.succeed({ fetch: () => Effect.succeed([fetched]) })
      } as unknown as EventLog["Service"])
      const mac = new RecordMac("a-secret-that-is-long-enough-for-a-test")
      const checked = authenticated(log, { mac, prefix: "alk" })
      const reader = yield* checked.reader
      const [answer] = yield* reader.fetch([], { waitMs: 0, maxBytes: 1 })
      assert.deepStrictEqual(answer!.records, [
        {
          offset: 7,
          timestamp: 1,
          key: Buffer.from("acme"),
          value: Buffer.from("forged"),
          headers: { "alk-format": Buffer.from("2") },
          refused: NO_MAC
        }
      ])
    }).pipe(Effect.scoped)
  )
})
