/**
 * Records that another producer has appended to the internal topics, on a real broker: the service
 * goes on, says so, and answers as before. And the start of authentication in topics of an older
 * version.
 */

import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import { Kafka, type KafkaMessage, logLevel } from "kafkajs"
import { inject } from "vitest"
import { malformedRecords } from "../../src/actors/log/Malformed.ts"
import type { Command } from "../../src/domain/records/Command.ts"
import { EARLIER_MARKER_KEY, MARKER_KEY } from "../../src/domain/records/Quarantine.ts"
import { MAC_HEADER } from "../../src/domain/records/RecordHeaders.ts"
import { FORMAT_HEADER, type TopicKind } from "../../src/domain/records/Topics.ts"
import { EventLog, type LogRecord } from "../../src/ports/EventLog.ts"
import { CommandLog, layerCommandLog } from "../../src/services/commands/CommandLog.ts"
import { asService, markerOf } from "../support/Authenticated.ts"
import { commandRecord, ingestCommand } from "../support/Events.ts"
import { eventually, eventuallyAsync } from "../support/Eventually.ts"
import {
  append,
  leaveTransaction,
  loseTopic,
  produceRaw,
  type RawRecord,
  readAll,
  readAtLeast
} from "../support/Log.ts"
import { storedProgress } from "../support/StoredProgress.ts"
import { sequencing, TENANT, topicEvents, withView } from "./support/Evidence.ts"
import { apiKey, assertWorks, registryCommand, running, type Service } from "./support/Service.ts"

const counted = (topic: TopicKind) =>
  Metric.value(Metric.withAttributes(malformedRecords, { topic })).pipe(
    Effect.map(({ count }) => Number(count))
  )

const rawOf = (command: Command): RawRecord => {
  const { headers, key, value } = commandRecord(command)
  return { key, value, headers: headers as Record<string, string> }
}

/** The same command, which says that another program has written it. */
const inFormat = (command: Command, format: string): RawRecord => {
  const { headers, key, value } = rawOf(command)
  return { key, value, headers: { ...headers, [FORMAT_HEADER]: format } }
}

const ownSequences = Effect.map(topicEvents, (events) =>
  events.filter(({ tenant_id }) => tenant_id === TENANT).map((event) => event.sequence_number)
)

const T = "2026-11-21T00:00:00.000000Z"
const head = JSON.stringify({
  sequence_number: 1,
  hash: "ab".repeat(32),
  created_at: T,
  tree: null
})
const far = JSON.stringify({ partition: 0, events_next: 1e6, receipts_next: 1e6 })

/** Well-formed records as somebody without the secret writes them, by topic. */
const forged: ReadonlyArray<readonly [TopicKind, ReadonlyArray<RawRecord>]> = [
  [
    "registry",
    [
      { key: "key/key_evil", value: JSON.stringify(apiKey("key_evil")) },
      { key: "key/key_1", value: null },
      {
        key: "signing_key/00000000",
        value: JSON.stringify({
          key_id: "00000000",
          vkey: "alk+00000000+AAAA",
          public_key: "AAAA",
          added_at: T
        })
      }
    ]
  ],
  [
    "state",
    [
      { key: `head/${TENANT}`, value: head },
      { key: "head/evil", value: head },
      { key: "applied", value: JSON.stringify(storedProgress()) }
    ]
  ],
  [
    "progress",
    [
      { key: "0", value: far },
      { key: "0", value: far, headers: { [MAC_HEADER]: "0" } }
    ]
  ]
]

describe("records of another producer", () => {
  it.live("on every internal topic change nothing, at no start", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const service = yield* running
              yield* assertWorks(service, "key_1")
              const before = yield* Effect.forEach(forged, ([topic]) => counted(topic))
              const events = yield* ownSequences
              for (const [topic, records] of forged) yield* produceRaw(prefix, topic, records)
              const evil = ingestCommand(TENANT, 3)
              const evilKey = registryCommand({ op: "create_key", key: apiKey("key_bad") })
              yield* produceRaw(prefix, "commands", [
                rawOf(evil),
                rawOf(evilKey),
                inFormat(evil, "99"),
                inFormat(evil, "Infinity")
              ])
              yield* assertWorks(service, "key_2")
              assert.deepStrictEqual(yield* ownSequences, [...events, events.length + 1])
              assert.deepStrictEqual(
                (yield* readAll("quarantine"))
                  .slice(1)
                  .map(({ headers }) => [
                    String(headers["alk-reason"]),
                    headers[FORMAT_HEADER]?.toString()
                  ]),
                ["1", "1", "99", undefined].map((format) => [
                  "it has no MAC of this service",
                  format
                ])
              )
              const known = service.view.registry()
              assert.sameMembers([...known.keys.keys()], ["key_1", "key_2"])
              assert.strictEqual(known.signingKeys.size, 0)
              // A forged command has no receipt either.
              const answered = (yield* readAll("receipts")).map(({ headers }) =>
                String(headers["alk-receipt"])
              )
              assert.notInclude(answered, evil.receiptId)
              for (const [index, [topic, records]] of forged.entries()) {
                assert.isAtLeast((yield* counted(topic)) - before[index]!, records.length, topic)
              }
            })
          )
          for (const key of ["key_3", "key_4"]) {
            yield* Effect.scoped(
              Effect.gen(function* () {
                const service = yield* running
                yield* assertWorks(service, key)
                assert.isFalse(service.view.registry().keys.has("key_evil"))
                assert.isTrue(service.view.registry().keys.has("key_1"))
              })
            )
          }
          assert.deepStrictEqual(yield* ownSequences, [1, 2, 3, 4])
        })
      )
    )
  )

  it.live("can't move a genuine record to another topic, partition or key", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          yield* append([commandRecord(ingestCommand(TENANT, 1))])
          const [genuine] = yield* readAll("commands")
          assert.isUndefined(genuine!.refused)
          const headers = Object.fromEntries(
            Object.entries(genuine!.headers).map(([name, value]) => [name, value.toString()])
          )
          const { key, value } = genuine!
          yield* produceRaw(prefix, "commands", [
            { key: "other", value, headers },
            { key, value: Buffer.concat([value!, Buffer.from(" ")]), headers },
            { key, value, headers: { ...headers, "alk-tenant": "other" } }
          ])
          yield* produceRaw(prefix, "registry", [{ key, value, headers }])
          const refusals = [
            ...(yield* readAll("commands")).slice(1),
            ...(yield* readAll("registry"))
          ]
          assert.deepStrictEqual(
            refusals.map(({ refused }) => refused),
            Array.from({ length: 4 }, () => "its MAC is not that of this service")
          )
        })
      )
    )
  )
})

/** Every record of a partition, those of aborted transactions too. */
const readUncommitted = (prefix: string, topic: TopicKind, count: number) =>
  Effect.promise(async () => {
    const consumer = new Kafka({
      brokers: [inject("bootstrap")],
      logLevel: logLevel.NOTHING
    }).consumer({ groupId: `${prefix}-uncommitted`, readUncommitted: true })
    const found: Array<KafkaMessage> = []
    await consumer.connect()
    await consumer.subscribe({ topic: `${prefix}.${topic}`, fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ message }) => {
        found.push(message)
      }
    })
    const all = async () => found
    await eventuallyAsync(`${count} records`, all, ({ length }) => length >= count)
    await consumer.disconnect()
    return found
  })

describe("records that are signed for their place", () => {
  it.live("are written again behind what another program has written, and count there alone", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          const log = yield* EventLog
          const writer = yield* log.writer("sequencer-0")
          const commit = (value: string) =>
            writer.commit([], () => [{ topic: "state", partition: 0, key: "applied", value }])
          yield* commit("one")
          yield* produceRaw(prefix, "state", [{ key: "owner", value: "junk" }])
          yield* commit("two")
          yield* commit("three")
          const said = (records: ReadonlyArray<LogRecord>) =>
            records.map(({ refused, value }) => [String(value), refused])
          const before = said(yield* readAll("state"))
          assert.deepStrictEqual(before, [
            ["one", undefined],
            ["junk", "it has no MAC of this service"],
            ["two", undefined],
            ["three", undefined]
          ])
          // With the one that was aborted because its place was taken.
          const written = yield* readUncommitted(prefix, "state", 5)
          assert.deepStrictEqual(
            written.map(({ value }) => String(value)),
            ["one", "junk", "two", "two", "three"]
          )
          const copies = written.flatMap(({ headers, key, value }) => {
            const mac = headers?.[MAC_HEADER]?.toString()
            return mac === undefined ? [] : [{ key, value, headers: { [MAC_HEADER]: mac } }]
          })
          yield* produceRaw(prefix, "state", copies)
          assert.deepStrictEqual(said((yield* readAll("state")).slice(before.length)), [
            ...["one", "two", "two", "three"].map((value) => [
              value,
              "its MAC is not that of this service"
            ])
          ])
        })
      )
    )
  )
})

/** Written as the service writes them. */
const submitted = (...commands: ReadonlyArray<Command>) =>
  Effect.forEach(commands, (command) => CommandLog.use((log) => log.submit(command))).pipe(
    Effect.provide(Layer.fresh(layerCommandLog))
  )

/** Appends the records of `alk.commands` as they are once more. */
const copyCommands = (prefix: string, records: ReadonlyArray<LogRecord>) =>
  produceRaw(
    prefix,
    "commands",
    records.map(({ headers, key, value }) => ({
      key,
      value,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, text]) => [name, text.toString()])
      )
    }))
  )

describe("copies of genuine commands", () => {
  it.live("are not applied: at once, after a restart, after a rebuild", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          yield* submitted(ingestCommand(TENANT, 2), ingestCommand(TENANT, 1))
          const genuine = yield* readAll("commands")
          const sequencesAfter = (quarantined: number) =>
            Effect.andThen(sequencing(readAtLeast("quarantine", quarantined)), ownSequences)
          const eventsAre = (count: number) =>
            sequencing(
              eventually(`${count} events`, ownSequences, ({ length }) => length === count)
            )
          yield* eventsAre(3)
          yield* copyCommands(prefix, genuine)
          assert.deepStrictEqual(yield* sequencesAfter(3), [1, 2, 3])
          yield* loseTopic(prefix, "state")
          yield* copyCommands(prefix, genuine)
          assert.deepStrictEqual(yield* sequencesAfter(5), [1, 2, 3])
          const reasons = (yield* readAll("quarantine"))
            .slice(1)
            .map(({ headers }) => String(headers["alk-reason"]))
          assert.deepStrictEqual(
            [...new Set(reasons)],
            ["it is a copy: the command was applied before"]
          )
          // Their receipts are those of the first.
          const receipts = (yield* readAll("receipts")).map(({ headers }) => headers["alk-receipt"])
          assert.strictEqual(receipts.length, 2)
          yield* submitted(ingestCommand(TENANT, 1))
          yield* eventsAre(4)
        })
      )
    )
  )
})

describe("copies of genuine registry records", () => {
  it.live("make no revoked key valid again, at no start", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          const isRevoked = (service: Service) =>
            service.view.registry().keys.get("key_1")?.revoked_at !== undefined
          yield* Effect.scoped(
            Effect.gen(function* () {
              const service = yield* running
              yield* assertWorks(service, "key_1")
              const revoke = {
                op: "revoke_key",
                tenant_id: TENANT,
                key_id: "key_1",
                revoked_at: T
              } as const
              yield* append([commandRecord(registryCommand(revoke))])
              yield* eventually(
                "the key is revoked",
                Effect.sync(() => service.view.registry().keys.get("key_1")),
                () => isRevoked(service)
              )
              const [made] = (yield* readAll("registry")).filter(
                ({ key }) => key?.toString() === "key/key_1"
              )
              const { headers, key, value } = made!
              yield* produceRaw(prefix, "registry", [
                { key, value, headers: { [MAC_HEADER]: headers[MAC_HEADER]!.toString() } }
              ])
              yield* assertWorks(service, "key_2")
              assert.isTrue(isRevoked(service))
            })
          )
          yield* Effect.scoped(
            Effect.gen(function* () {
              const service = yield* running
              yield* assertWorks(service, "key_3")
              assert.isTrue(isRevoked(service))
            })
          )
        })
      )
    )
  )
})

describe("the marker of an installation", () => {
  it.live("is written once, whoever starts", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        const all = yield* Effect.all(
          Array.from({ length: 3 }, () => markerOf({ prefix })),
          { concurrency: "unbounded" }
        )
        for (const other of all) assert.deepStrictEqual(other, all[0]!)
        const markers = (yield* readAll("quarantine")).filter(
          ({ key }) => key?.toString() === MARKER_KEY
        )
        assert.strictEqual(markers.length, 1)
        // Another program's changes nothing.
        yield* produceRaw(prefix, "quarantine", [{ key: MARKER_KEY, value: null }])
        assert.deepStrictEqual(yield* markerOf({ prefix }), all[0]!)
      })
    )
  )

  it.live("is written although a process that was fenced has left the end of its transaction", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        yield* leaveTransaction(prefix, "quarantine", ["never committed"], "abort")
        assert.strictEqual((yield* markerOf({ prefix })).format, 3)
      })
    )
  )

  it.live("is that of the faster of two that start", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const faster = asService({ prefix }, append([commandRecord(ingestCommand(TENANT, 1))]))
        let isFirst = true
        // The slower one has looked for a marker, in vain, when the faster one starts and writes.
        const ends: typeof log.ends = (positions) =>
          Effect.gen(function* () {
            const found = yield* log.ends(positions)
            if (isFirst) {
              isFirst = false
              yield* faster.pipe(Effect.provideService(EventLog, log), Effect.scoped, Effect.orDie)
            }
            return found
          })
        const slower = yield* markerOf({ prefix }).pipe(
          Effect.provideService(EventLog, { ...log, ends })
        )
        assert.deepStrictEqual(yield* markerOf({ prefix }), slower)
      })
    )
  )

  it.live("is missed where it is gone, and where other versions have written", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        yield* asService({ prefix }, append([commandRecord(ingestCommand(TENANT, 1))]))
        yield* loseTopic(prefix, "quarantine", "delete")
        const gone = String(yield* Effect.flip(markerOf({ prefix })))
        assert.include(gone, `${prefix}.commands: there are records, but the marker`)
        yield* produceRaw(prefix, "quarantine", [{ key: EARLIER_MARKER_KEY, value: "{}" }])
        const earlier = String(yield* Effect.flip(markerOf({ prefix })))
        assert.include(earlier, "before the first release")
      })
    )
  )

  /** With `bounds` of quarantine that have no marker yet, as while a commit becomes visible. */
  const refusedUnderAnotherSecret = (isLate: boolean) =>
    withView((prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* markerOf({ prefix })
        let looks = 0
        const bounds: typeof log.bounds = (topic, partition) =>
          Effect.map(log.bounds(topic, partition), (found) =>
            isLate && topic === "quarantine" && looks++ === 0
              ? { ...found, end: found.start }
              : found
          )
        const other = yield* Effect.flip(
          markerOf({ prefix, secret: "another secret" }).pipe(
            Effect.provideService(EventLog, { ...log, bounds })
          )
        )
        assert.include(String(other), "another ALK_SECRET")
        assert.strictEqual(looks, isLate ? 2 : 0)
      })
    )

  it.live("of another secret is refused", () => refusedUnderAnotherSecret(false))

  it.live("of another secret is refused, though it is seen late", () =>
    refusedUnderAnotherSecret(true)
  )
})
