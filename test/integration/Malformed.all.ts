/**
 * Records on the internal topics that nobody can read: whoever may write to Kafka may write anything,
 * and the service starts, follows and goes on all the same, restarts included.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { malformedRecords } from "../../src/actors/log/Malformed.ts"
import { SYSTEM_TENANT } from "../../src/domain/Identifiers.ts"
import type { TopicKind } from "../../src/domain/records/Topics.ts"
import type { ApiKey } from "../../src/domain/registry/RegistryEntry.ts"
import { commandRecord } from "../support/Events.ts"
import { append, produceRaw, type RawRecord, readAll } from "../support/Log.ts"
import { TENANT, withView } from "./support/Evidence.ts"
import { apiKey, assertWorks, finalState, registryCommand, running } from "./support/Service.ts"

const counted = (topic: TopicKind) =>
  Metric.value(Metric.withAttributes(malformedRecords, { topic })).pipe(
    Effect.map(({ count }) => Number(count))
  )

const junk: ReadonlyArray<string | Buffer> = [
  "",
  "no JSON",
  "null",
  "[]",
  "17",
  '"text"',
  "{}",
  '{"id":{}}',
  '{"id":1e999,"hash":null,"partition":1e300,"events_next":-1}',
  `${"[".repeat(50_000)}`,
  Buffer.from([0x00, 0xff, 0xfe, 0x0a, 0x01])
]

const withKeys = (...keys: ReadonlyArray<string | null>): ReadonlyArray<RawRecord> =>
  keys.flatMap((key) => junk.map((value) => ({ key, value })))

const good = { partition: 0, receipts_next: 0, traces_next: 0, checkpoints_next: 0 }

/** What is written to each topic; none of it says anything. */
const malformed: ReadonlyArray<readonly [TopicKind, ReadonlyArray<RawRecord>]> = [
  [
    "registry",
    [
      ...withKeys("key/key_1", "tenant/acme", "link/lnk", "signing_key/00000000", "", null),
      { key: "key", value: "{}" },
      { key: null, value: null },
      { key: "key/key_other", value: JSON.stringify(apiKey("key_1")) },
      { key: "key/key_1", value: JSON.stringify({ ...apiKey("key_1"), hash: ["0"] }) }
    ]
  ],
  [
    "progress",
    [
      ...withKeys("0", null, "what"),
      ...[1e300, -1, 0.5, "7", null, [], 2 ** 53].map((events_next) => ({
        key: "0",
        value: JSON.stringify({ ...good, events_next })
      })),
      { key: "0", value: JSON.stringify({ ...good, events_next: 5, partition: 9 }) },
      { key: "0", value: JSON.stringify({ ...good, events_next: 5, rebuilding: "no" }) },
      { key: "0", value: '{"partition":0,"events_next":1e999}' }
    ]
  ],
  [
    "receipts",
    ["outcome", "verdict", "probe", ""].flatMap((kind) =>
      junk.flatMap((value) =>
        [null, TENANT].map((key) => ({
          key,
          value,
          headers: {
            "alk-kind": kind,
            "alk-attempt": "somebody's",
            "alk-receipt": key === null ? "r\u0001\n2" : "some-receipt",
            "alk-tenant": TENANT
          }
        }))
      )
    )
  ]
]

/** Kinds of newer versions, and records that take away what nobody has. */
const passedOver: ReadonlyArray<readonly [TopicKind, ReadonlyArray<RawRecord>]> = [
  [
    "registry",
    [
      { key: "passkey/1", value: "anything" },
      { key: "passkey/1", value: null },
      { key: "key/key_unknown", value: null }
    ]
  ],
  ["progress", [{ key: "0", value: null }]],
  ["receipts", [{ key: TENANT, value: null, headers: { "alk-kind": "outcome" } }]]
]

const writeAll = (
  name: string,
  records: ReadonlyArray<readonly [TopicKind, ReadonlyArray<RawRecord>]>
) => Effect.forEach(records, ([topic, raw]) => produceRaw(name, topic, raw), { discard: true })

describe("malformed records on the internal topics", () => {
  it.live("before, between and behind good ones stop nobody, at any start", () =>
    withView((name) =>
      Effect.gen(function* () {
        yield* writeAll(name, malformed)
        yield* writeAll(name, passedOver)
        const before = yield* Effect.forEach(malformed, ([topic]) => counted(topic))
        yield* Effect.gen(function* () {
          const service = yield* running
          yield* assertWorks(service, "key_1")
          yield* writeAll(name, malformed)
          yield* writeAll(name, passedOver)
          yield* assertWorks(service, "key_2")
        }).pipe(Effect.scoped)
        const after = yield* Effect.forEach(malformed, ([topic]) => counted(topic))
        for (const [index, [topic, records]] of malformed.entries()) {
          // Not every value of a receipt is read by somebody.
          const least = topic === "receipts" ? 1 : 2 * records.length
          assert.isAtLeast(after[index]! - before[index]!, least, topic)
        }
        yield* Effect.gen(function* () {
          const service = yield* running
          const known = service.view.registry()
          assert.deepStrictEqual([...known.keys.values()], [apiKey("key_1"), apiKey("key_2")])
          assert.deepStrictEqual([...known.tenants.keys()], [TENANT])
          yield* assertWorks(service, "key_3")
        }).pipe(Effect.scoped)
      })
    )
  )

  const stateRecords: ReadonlyArray<readonly [string, ReadonlyArray<RawRecord>]> = [
    ["a head", withKeys(`head/${TENANT}`)],
    ["what was applied", withKeys("applied")],
    ["the owner and the meta record", withKeys("owner", "meta")],
    ["a window", [...withKeys("dedup/1", "idem/x"), { key: "dedup/-1", value: Buffer.alloc(40) }]],
    ["an execution and a span", withKeys("x/acme/run", "s/acme/run/step", "x/", "s/acme/run")],
    ["a checkpoint and a head of traces", withKeys(`checkpoint/${TENANT}`, `trace-head/${TENANT}`)],
    ["no key at all", withKeys(null)]
  ]
  for (const [what, records] of stateRecords) {
    it.live(`that say to be ${what} on alk.state make it be built again from the topics`, () =>
      withView((name) =>
        Effect.gen(function* () {
          yield* Effect.scoped(Effect.flatMap(running, (service) => assertWorks(service, "key_1")))
          const before = yield* counted("state")
          yield* produceRaw(name, "state", records)
          yield* Effect.scoped(Effect.flatMap(running, (service) => assertWorks(service, "key_2")))
          assert.isAbove(yield* counted("state"), before)
          yield* Effect.scoped(Effect.flatMap(running, (service) => assertWorks(service, "key_3")))
          const sequences = (yield* readAll("events"))
            .filter(({ key }) => key?.toString() === TENANT)
            .map(
              ({ value }) =>
                (JSON.parse(value!.toString()) as { sequence_number: number }).sequence_number
            )
          assert.deepStrictEqual(sequences, [1, 2, 3])
        })
      )
    )
  }

  it.live("on alk.commands that would make some are quarantined, each with its receipt", () =>
    withView(() =>
      Effect.gen(function* () {
        const service = yield* running
        yield* assertWorks(service, "key_1")
        const wrong = { ...apiKey("key_2"), hash: 5 } as unknown as ApiKey
        const command = registryCommand({ op: "create_key", key: wrong })
        yield* append([commandRecord(command)])
        const state = yield* finalState(service, SYSTEM_TENANT, command.receiptId)
        assert.strictEqual(state.status, "failed")
        assert.strictEqual((yield* readAll("quarantine")).length, 1)
        yield* assertWorks(service, "key_3")
        assert.isFalse(service.view.registry().keys.has("key_2"))
      })
    )
  )
})
