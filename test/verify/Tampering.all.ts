/**
 * Everything that somebody with access to the database could do to the rows of a chain, on the real
 * engine, and what verification says of it: the same by the store's recomputation and by the
 * program's own.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChainRecompute } from "../../src/ports/ChainRecompute.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import type { SignedCheckpoints } from "../../src/verify/SignedCheckpoints.ts"
import type { BreakReason, Verifier, VerifyReport } from "../../src/verify/Verifier.ts"
import { freshPrefix } from "../support/Log.ts"
import { tamper } from "../support/Store.ts"
import { Chain, createdAt, erasedForm, type Fields } from "./support/Chains.ts"
import { CheckpointWorld } from "./support/CheckpointWorld.ts"
import { LogWorld } from "./support/LogWorld.ts"
import {
  found,
  lasting,
  store,
  storeChain,
  verifierLayer,
  verify,
  verifyBothWays
} from "./support/StoredChains.ts"

const TENANT = "acme"
/** Some whole blocks and a part of one. */
const EVENTS = 2_500
/** In the middle of the second block. */
const AT = 1_500

const fields = (index: number): Fields => ({
  actor: { id: `user-${index}`, type: "human", email: `u${index}@example.com` },
  resource: { id: `doc-${index}`, type: "document", name: `Dökument ${index}` },
  metadata: { index, note: `nöte "${index}"`, nested: { hash: "x", outcome: "success" } }
})

const chainOf = (events = EVENTS, tenantId = TENANT) => new Chain(tenantId).extend(events, fields)

interface Bench {
  readonly table: string
  readonly chain: Chain
  readonly world: LogWorld
}

type Services = ChainRecompute | EventStore | SignedCheckpoints | Verifier

/** A stored chain of the test's own. */
const withChain = <A, E>(
  test: (bench: Bench) => Effect.Effect<A, E, Services>,
  checkpoints: (chain: Chain) => CheckpointWorld = () => new CheckpointWorld(),
  chain: Chain = chainOf()
) => {
  const database = freshPrefix()
  const world = new LogWorld()
  return Effect.gen(function* () {
    yield* storeChain(world, chain)
    return yield* test({ table: `${database}.events`, chain, world })
  }).pipe(
    Effect.provide(verifierLayer(database, world, checkpoints(chain).service), { local: true })
  )
}

/** Other rows in the place of those of some sequences. */
const replaceRows = Effect.fnUntraced(function* (
  table: string,
  bodies: ReadonlyMap<number, string>
) {
  const places = [...bodies.keys()].join(", ")
  yield* tamper(`ALTER TABLE ${table} DELETE WHERE sequence_number IN (${places})`)
  yield* store([...bodies.values()])
})

const replaceRow = (table: string, sequence: number, body: string) =>
  replaceRows(table, new Map([[sequence, body]]))

/** Both reports, after it is certain that they say the same. */
const broken = Effect.fnUntraced(function* (request: Partial<Parameters<typeof verify>[0]> = {}) {
  const [byStore, byProgram] = yield* verifyBothWays({ tenantId: TENANT, ...request })
  assert.deepStrictEqual(lasting(byStore), lasting(byProgram))
  assert.deepStrictEqual([byStore.valid, byStore.status], [false, "broken"])
  assert.strictEqual(byStore.breaks_total, byStore.breaks.length)
  return byStore
})

const valid = Effect.fnUntraced(function* (request: Partial<Parameters<typeof verify>[0]> = {}) {
  const [byStore, byProgram] = yield* verifyBothWays({ tenantId: TENANT, ...request })
  assert.deepStrictEqual(byStore.breaks, [])
  assert.deepStrictEqual(lasting(byStore), lasting(byProgram))
  assert.deepStrictEqual([byStore.valid, byStore.status], [true, "valid"])
  return byStore
})

/** One character that stands at the end of a text is another one. */
const changed = (body: string, text: string): string => {
  const at = body.indexOf(text)
  assert.isAbove(at, -1, `${text} in ${body}`)
  const last = at + text.length - 1
  return `${body.slice(0, last)}${body[last] === "7" ? "8" : "7"}${body.slice(last + 1)}`
}

/** A text at the end of which each field is changed, and what the change is called. */
const flips: ReadonlyArray<
  readonly [field: string, text: (event: Record<string, any>, n: number) => string, BreakReason]
> = [
  ["id", (_, n) => `"id":"event-${n}`, "content_mismatch"],
  ["timestamp", ({ timestamp }) => timestamp.slice(0, -1), "content_mismatch"],
  ["actor.id", (_, n) => `"user-${n - 1}`, "content_mismatch"],
  ["actor.type", () => '"type":"human', "content_mismatch"],
  ["actor.email", (_, n) => `"u${n - 1}@example.com`, "content_mismatch"],
  ["action", () => "document.read", "content_mismatch"],
  ["resource.id", (_, n) => `"doc-${n - 1}`, "content_mismatch"],
  ["resource.type", () => '"type":"document', "content_mismatch"],
  ["resource.name", () => "Dökument", "content_mismatch"],
  ["outcome", () => '"outcome":"success', "content_mismatch"],
  ["metadata", () => '"note":"nöte', "content_mismatch"],
  ["a key of metadata", () => '"note', "content_mismatch"],
  ["created_at", ({ created_at }) => `"created_at":"${created_at.slice(0, -1)}`, "hash_mismatch"],
  ["prev_hash", ({ prev_hash }) => `"prev_hash":"${prev_hash}`, "prev_hash_mismatch"],
  ["details_salt", ({ details_salt }) => details_salt, "content_mismatch"],
  ["details_hash", ({ details_hash }) => details_hash, "content_mismatch"],
  ["content_hash", ({ content_hash }) => content_hash, "content_mismatch"],
  ["hash", ({ hash }) => `"hash":"${hash}`, "hash_mismatch"]
]

const filterColumns: ReadonlyArray<readonly [column: string, value: string]> = [
  ["id", "'other'"],
  ["timestamp", "timestamp + 1"],
  ["created_at", "created_at + 1"],
  ["actor_id", "'other'"],
  ["actor_type", "'system'"],
  ["action", "'document.deleted'"],
  ["resource_id", "'other'"],
  ["resource_type", "'other'"],
  ["outcome", "'failure'"],
  ["metadata", "'{}'"],
  ["search", "'nothing'"]
]

describe("a changed row", () => {
  const placeOf = (index: number): number => 400 + 50 * index

  it.live("is found and named, whichever field it was", () =>
    withChain(({ chain, table }) =>
      Effect.gen(function* () {
        const bodies = flips.map(([, text], index) => {
          const n = placeOf(index)
          const body = chain.bodies[n - 1]!
          return [n, changed(body, text(JSON.parse(body), n))] as const
        })
        yield* replaceRows(table, new Map(bodies))
        const report = yield* broken()
        const breaks = found(report)
        for (const [index, [field, , reason]] of flips.entries()) {
          const n = placeOf(index)
          assert.deepInclude(breaks, [n, reason], `${field}: ${JSON.stringify(report.breaks)}`)
        }
        const near = breaks.filter(([at]) => at % 50 > 1)
        assert.deepStrictEqual(near, [])
        assert.strictEqual(report.events_checked, EVENTS)
      })
    )
  )

  it.live("is found and named, whichever filter column it was", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        yield* tamper(
          ...filterColumns.map(
            ([column, value], index) =>
              `ALTER TABLE ${table} UPDATE ${column} = ${value}`
              + ` WHERE sequence_number = ${placeOf(index)}`
          )
        )
        const breaks = found(yield* broken())
        for (const [index, [column]] of filterColumns.entries()) {
          const reason = column === "created_at" ? "hash_mismatch" : "content_mismatch"
          assert.deepInclude(breaks, [placeOf(index), reason], column)
        }
        assert.sameMembers(
          [...new Set(breaks.map(([at]) => at))],
          filterColumns.map((_, index) => placeOf(index))
        )
      })
    )
  )

  it.live("is found when it has other bytes for the same", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        const changes = [
          ["resource_name", "replaceOne(resource_name, 'ö', '\\\\u00f6')"],
          ["resource_name", "concat(' ', resource_name)"],
          [
            "metadata",
            `replaceRegexpOne(metadata, '("index":\\\\d+),("nested":[^}]*})', '\\\\2,\\\\1')`
          ],
          ["metadata", `replaceRegexpOne(metadata, '("index":\\\\d+)', '\\\\1.0')`],
          ["metadata", "concat(metadata, ' ')"],
          ["metadata", "'{}'"],
          ["metadata", "'not JSON'"]
        ] as const
        yield* tamper(
          ...changes.map(
            ([column, value], index) =>
              `ALTER TABLE ${table} UPDATE ${column} = ${value}`
              + ` WHERE sequence_number = ${placeOf(index)}`
          )
        )
        const breaks = found(yield* broken())
        for (const [index, change] of changes.entries())
          assert.deepInclude(breaks, [placeOf(index), "content_mismatch"], String(change))
      })
    )
  )
})

describe("a row whose bytes are no UTF-8", () => {
  const BROKEN = 7
  const unclear: Fields = {
    actor: { id: "bob\uFFFD", type: "human", email: "x\uFFFD@example.com" },
    resource: { id: "d\uFFFD", type: "document", name: "N\uFFFD" },
    metadata: { k: "v\uFFFD" }
  }

  it.live("is found, though each of them is shown as a character that it had", () =>
    withChain(
      ({ table }) =>
        Effect.gen(function* () {
          yield* valid()
          const columns = ["actor_id", "resource_id", "metadata", "actor_email", "search"]
          yield* tamper(
            ...columns.map(
              (column, index) =>
                `ALTER TABLE ${table} UPDATE ${column} = replaceAll(${column}, unhex('EFBFBD'),`
                + ` unhex('FF')) WHERE sequence_number = ${BROKEN + index}`
            )
          )
          assert.deepStrictEqual(
            found(yield* broken()),
            columns.map((_, index) => [BROKEN + index, "content_mismatch"])
          )
        }),
      undefined,
      new Chain(TENANT).extend(50, () => unclear)
    )
  )
})

describe("rows that come and go", () => {
  it.live("a second row for a sequence", () =>
    withChain(({ chain }) =>
      Effect.gen(function* () {
        const forged = new Chain(TENANT)
        forged.head = JSON.parse(chain.bodies[AT - 2]!)
        yield* store([forged.append({ ...fields(AT - 1), outcome: "failure" })])
        const report = yield* broken()
        assert.deepStrictEqual(found(report), [[AT, "duplicate_sequence"]])
        assert.strictEqual(report.events_checked, EVENTS + 1)
      })
    )
  )

  it.live("the same rows again are none while the projection says that it repeats", () =>
    withChain(({ chain, world }) =>
      Effect.gen(function* () {
        world.final = true
        yield* store(chain.bodies.slice(1_000, 1_400))
        assert.strictEqual((yield* valid()).events_checked, EVENTS)
      })
    )
  )

  it.live("copies of rows that the projection did not make", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        yield* tamper(
          `INSERT INTO ${table} SELECT * FROM ${table}`
            + ` WHERE sequence_number IN (${AT}, ${AT + 1})`
        )
        const report = yield* broken()
        assert.deepStrictEqual(found(report), [
          [AT, "duplicate_sequence"],
          [AT + 1, "duplicate_sequence"]
        ])
        assert.strictEqual(report.events_checked, EVENTS)
      })
    )
  )

  it.live("a row below the first one, whatever part is asked for", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        yield* tamper(
          `INSERT INTO ${table} SELECT * REPLACE (0 AS sequence_number)`
            + ` FROM (SELECT * FROM ${table} WHERE sequence_number = ${AT})`
        )
        assert.deepStrictEqual(found(yield* broken()), [[0, "duplicate_sequence"]])
        const part = yield* verify({ tenantId: TENANT, fromSequence: 5, toSequence: 9 })
        assert.deepStrictEqual(found(part), [[0, "duplicate_sequence"]])
      })
    )
  )

  it.live("one dropped", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        yield* tamper(`ALTER TABLE ${table} DELETE WHERE sequence_number = ${AT}`)
        const report = yield* broken()
        assert.deepStrictEqual(found(report), [[AT, "sequence_gap"]])
        assert.strictEqual(report.events_checked, EVENTS - 1)
      })
    )
  )

  it.live("a whole block dropped, and the first events", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        yield* tamper(`ALTER TABLE ${table} DELETE WHERE sequence_number BETWEEN 1000 AND 2100`)
        const middle = yield* broken()
        assert.deepStrictEqual(found(middle), [[1_000, "sequence_gap"]])
        assert.strictEqual(middle.breaks[0]!.expected, "sequences 1000 to 2100")
        yield* tamper(`ALTER TABLE ${table} DELETE WHERE sequence_number < 10`)
        assert.deepStrictEqual(found(yield* broken()), [
          [1, "sequence_gap"],
          [1_000, "sequence_gap"]
        ])
      })
    )
  )

  it.live("the tail dropped", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        yield* tamper(`ALTER TABLE ${table} DELETE WHERE sequence_number > 2000`)
        const report = yield* broken()
        assert.deepStrictEqual(found(report), [[2_001, "tail_missing"]])
        assert.strictEqual(report.last_sequence_number, 2_000)
        assert.strictEqual(report.head?.sequence_number, EVENTS)
        const bounded = yield* broken({ toSequence: 2_400 })
        assert.deepStrictEqual(found(bounded), [[2_001, "tail_missing"]])
        yield* valid({ requireHead: false })
        yield* valid({ toSequence: 2_000 })
      })
    )
  )

  it.live("everything dropped", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        yield* tamper(`TRUNCATE TABLE ${table}`)
        assert.deepStrictEqual(found(yield* broken()), [[1, "tail_missing"]])
      })
    )
  )

  it.live("two swapped", () =>
    withChain(({ chain, table }) =>
      Effect.gen(function* () {
        const moved = (from: number, to: number) =>
          chain.bodies[from - 1]!.replace(`"sequence_number":${from}`, `"sequence_number":${to}`)
        const swapped = new Map([
          [AT, moved(AT + 1, AT)],
          [AT + 1, moved(AT, AT + 1)]
        ])
        yield* replaceRows(table, swapped)
        const report = yield* broken()
        assert.strictEqual(report.breaks[0]!.sequence_number, AT)
        for (const at of [AT, AT + 1]) assert.deepInclude(found(report), [at, "hash_mismatch"])
      })
    )
  )

  it.live("one renumbered", () =>
    withChain(({ chain, table }) =>
      Effect.gen(function* () {
        yield* tamper(`ALTER TABLE ${table} DELETE WHERE sequence_number = ${AT}`)
        const body = chain.bodies[AT - 1]!
        yield* store([body.replace(`"sequence_number":${AT}`, '"sequence_number":1600')])
        const report = yield* broken()
        assert.deepInclude(found(report), [AT, "sequence_gap"])
        assert.deepInclude(found(report), [1_600, "duplicate_sequence"])
      })
    )
  )

  it.live("one inserted behind the head, and one before the first", () =>
    withChain(({ chain, world }) =>
      Effect.gen(function* () {
        const head = world.heads.get(TENANT)!
        chain.extend(3)
        yield* store(chain.bodies.slice(EVENTS))
        assert.deepStrictEqual(found(yield* broken()), [[EVENTS + 1, "hash_mismatch"]])
        const bounded = yield* broken({ toSequence: 9_999 })
        assert.deepStrictEqual(found(bounded), [[EVENTS + 1, "hash_mismatch"]])
        const part = yield* broken({ toSequence: EVENTS })
        assert.deepStrictEqual(found(part), [[EVENTS + 1, "hash_mismatch"]])
        // The log has it too by the time that the end is looked at: the chain has grown meanwhile.
        world.heads.set(TENANT, chain.head!)
        assert.strictEqual((yield* valid()).head?.sequence_number, EVENTS + 3)
        assert.notStrictEqual(head, chain.head)
      })
    )
  )

  it.live("of a tenant that the log does not know", () =>
    withChain(() =>
      Effect.gen(function* () {
        yield* store(chainOf(5, "nobody").bodies)
        const report = yield* verify({ tenantId: "nobody" })
        assert.deepStrictEqual(found(report), [[1, "hash_mismatch"]])
        const empty = yield* verify({ tenantId: "empty" })
        assert.deepStrictEqual([empty.valid, empty.status, empty.head], [true, "empty", null])
      })
    )
  )
})

/** The chain with everything from a sequence on made anew, as somebody who can hash would. */
const rewritten = (chain: Chain, from: number): Chain => {
  const other = new Chain(TENANT)
  other.bodies.push(...chain.bodies.slice(0, from - 1))
  other.head = JSON.parse(chain.bodies[from - 2]!)
  return other.extend(chain.bodies.length - from + 1, (index) => ({
    ...fields(from - 1 + index),
    outcome: index === 0 ? "failure" : "success"
  }))
}

const rewrite = Effect.fnUntraced(function* ({ chain, table }: Bench, from: number) {
  yield* tamper(`ALTER TABLE ${table} DELETE WHERE sequence_number >= ${from}`)
  const other = rewritten(chain, from)
  yield* store(other.bodies.slice(from - 1))
  return other
})

describe("a rewritten tail", () => {
  it.live("is found against the log's head", () =>
    withChain((bench) =>
      Effect.gen(function* () {
        yield* rewrite(bench, AT)
        assert.deepStrictEqual(found(yield* broken()), [[EVENTS, "hash_mismatch"]])
      })
    )
  )

  it.live("is found against an older checkpoint, when the log was rewritten with it", () =>
    withChain(
      (bench) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* valid()).assurance, "self_attested")
          const other = yield* rewrite(bench, AT)
          bench.world.heads.set(TENANT, other.head!)
          const report = yield* broken()
          assert.deepStrictEqual(found(report), [[2_000, "checkpoint_mismatch"]])
          assert.strictEqual(report.assurance, "self_attested")
          // What stood before the rewritten part is still as it was signed.
          assert.strictEqual((yield* valid({ toSequence: 1_100 })).assurance, "signed")
        }),
      (chain) => new CheckpointWorld().sign(chain, 1_100, 2_000)
    )
  )

  it.live("is found against a checkpoint that only the caller has", () =>
    withChain((bench) =>
      Effect.gen(function* () {
        const kept = new CheckpointWorld().sign(bench.chain, 700, 1_024, 1_499, 1_700).kept as never
        assert.deepStrictEqual(found(yield* valid({ checkpoints: kept })), [])
        const other = yield* rewrite(bench, AT)
        bench.world.heads.set(TENANT, other.head!)
        const report = yield* broken({ checkpoints: kept })
        assert.deepStrictEqual(found(report), [[1_700, "checkpoint_mismatch"]])
      })
    )
  )
})

describe("checkpoints", () => {
  it.live("cover a span up to their size, from its start or by its ends", () =>
    withChain(
      () =>
        Effect.gen(function* () {
          assert.strictEqual((yield* valid()).assurance, "signed")
          assert.strictEqual((yield* valid({ fromSequence: 1_200 })).assurance, "signed")
          const part = yield* valid({ fromSequence: 100, toSequence: 2_300 })
          assert.strictEqual(part.assurance, "signed")
          const one = yield* valid({ fromSequence: AT, toSequence: AT })
          assert.strictEqual(one.assurance, "signed")
        }),
      (chain) => new CheckpointWorld().sign(chain, 1_100, EVENTS)
    )
  )

  it.live("are named when nobody known has signed them, and an older one is taken", () =>
    withChain(
      () =>
        Effect.gen(function* () {
          const report = yield* broken()
          assert.deepStrictEqual(found(report), [[2_400, "checkpoint_mismatch"]])
          assert.strictEqual((yield* valid({ toSequence: 2_000 })).assurance, "signed")
        }),
      (chain) => new CheckpointWorld().sign(chain, 2_000).forge(2_400)
    )
  )

  it.live("of a longer chain than there is are named", () =>
    withChain((bench) =>
      Effect.gen(function* () {
        const longer = chainOf(EVENTS + 100)
        const kept = new CheckpointWorld().sign(longer, EVENTS + 50).kept as never
        const report = yield* broken({ checkpoints: kept })
        assert.deepStrictEqual(found(report), [[EVENTS + 50, "checkpoint_mismatch"]])
        assert.isDefined(bench)
      })
    )
  )

  it.live("accuse nobody where only what is kept of their tree is wrong", () => {
    const world = new CheckpointWorld()
    world.keptTreeWrong = true
    return withChain(
      () =>
        Effect.gen(function* () {
          const part = yield* valid({ fromSequence: 100, toSequence: 2_300 })
          assert.strictEqual(part.assurance, "signed")
        }),
      (chain) => world.sign(chain, EVENTS)
    )
  })

  it.live("catch a part that does not stand in the signed tree", () =>
    withChain(
      () =>
        Effect.gen(function* () {
          const report = yield* broken({ fromSequence: 1_200, toSequence: 2_400 })
          assert.deepStrictEqual(found(report), [[EVENTS, "checkpoint_mismatch"]])
        }),
      () => new CheckpointWorld().sign(rewritten(chainOf(), AT), EVENTS)
    )
  )
})

describe("erasure", () => {
  const chain = () => {
    const made = chainOf()
    const erased = [AT, AT + 1, 10].map((at) => [at, made.erase(at)] as const)
    return { made, erased }
  }

  it.live("is right where the chain says so, whether the store has merged it or not", () => {
    const { erased, made } = chain()
    return withChain(
      ({ table }) =>
        Effect.gen(function* () {
          // The erasures are in the chain, and the rows still show everything.
          assert.strictEqual((yield* valid()).erased_events, 0)
          yield* store(erased.map(([, body]) => body))
          const beside = yield* valid()
          assert.deepStrictEqual([beside.erased_events, beside.events_checked], [3, EVENTS + 3])
          yield* tamper(`OPTIMIZE TABLE ${table} FINAL`)
          const merged = yield* valid()
          assert.deepStrictEqual([merged.erased_events, merged.events_checked], [3, EVENTS + 3])
          const part = yield* valid({ fromSequence: 1_100, toSequence: 2_300 })
          assert.strictEqual(part.erased_events, 2)
        }),
      () => new CheckpointWorld(),
      made
    )
  })

  it.live("in place, as a mutation of the service does it, is right too", () => {
    const { erased, made } = chain()
    return withChain(
      () =>
        Effect.gen(function* () {
          const events = yield* EventStore
          yield* events.eraseDetails(
            TENANT,
            erased.map(([sequenceNumber, body]) => ({
              sequenceNumber,
              erasedAt: JSON.parse(body).erased_at
            }))
          )
          assert.strictEqual((yield* valid()).erased_events, 3)
        }),
      () => new CheckpointWorld(),
      made
    )
  })

  it.live("outside of the service is named", () =>
    withChain(({ chain, table }) =>
      Effect.gen(function* () {
        yield* tamper(`ALTER TABLE ${table} DELETE WHERE sequence_number = ${AT}`)
        yield* store([erasedForm(chain.bodies[AT - 1]!, createdAt(9_999))])
        const report = yield* broken()
        assert.deepStrictEqual(found(report), [[AT, "content_mismatch"]])
        assert.strictEqual(report.erased_events, 0)
      })
    )
  )

  it.live("counts only by an erasure that names this content and recomputes", () => {
    const erase = (
      over: (chain: Chain) => Fields,
      after: (body: string) => string = (body) => body
    ) => {
      const made = chainOf()
      const body = made.erase(AT, over(made))
      return withChain(
        ({ table }) =>
          Effect.gen(function* () {
            const rows = new Map([
              [AT, body],
              [EVENTS + 1, after(made.bodies.at(-1)!)]
            ])
            yield* replaceRows(table, rows)
            assert.deepInclude(found(yield* broken()), [AT, "content_mismatch"])
          }),
        () => new CheckpointWorld(),
        made
      )
    }
    const named = (made: Chain) => ({
      reason: "asked for",
      sequence_number: AT,
      content_hash: JSON.parse(made.bodies[AT - 1]!).content_hash
    })
    return Effect.gen(function* () {
      yield* erase((made) => ({ metadata: { ...named(made), content_hash: "0".repeat(64) } }))
      yield* erase((made) => ({ metadata: { ...named(made), sequence_number: AT + 1 } }))
      yield* erase(() => ({ resource: { id: "another", type: "audit_event" } }))
      yield* erase(() => ({ resource: { id: `event-${AT}`, type: "document" } }))
      yield* erase(() => ({ action: "document.erased" }))
      yield* erase(
        () => ({}),
        (body) => body.replace('"asked for"', '"asked fox"')
      )
    })
  })

  it.live("stands at its time, and stays", () => {
    const { erased, made } = chain()
    const [at, body] = erased[0]!
    return withChain(
      ({ table }) =>
        Effect.gen(function* () {
          yield* replaceRow(table, at, body)
          yield* valid()
          for (const other of ["erased_at + 1", "toDateTime64(0, 6, 'UTC')"]) {
            yield* tamper(
              `ALTER TABLE ${table} UPDATE erased_at = ${other} WHERE sequence_number = ${at}`
            )
            assert.deepInclude(found(yield* broken()), [at, "content_mismatch"], other)
          }
        }),
      () => new CheckpointWorld(),
      made
    )
  })
})

describe("bounds", () => {
  it.live("by time become the sequences that cover them, and are counted", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        const bounds = { from: createdAt(1_200_000_000), to: createdAt(1_400_000_000) }
        const report = yield* valid(bounds)
        assert.deepStrictEqual(
          [report.first_sequence_number, report.last_sequence_number, report.events_in_bounds],
          [1_200, 1_400, 201]
        )
        assert.deepStrictEqual(report.bounds, { ...bounds, from_sequence: null, to_sequence: null })
        const earlier = yield* valid({ from: createdAt(1_000_000), to: createdAt(2_000_000) })
        assert.deepStrictEqual([earlier.last_sequence_number, earlier.events_checked], [2, 2])
        const none = yield* verify({ tenantId: TENANT, from: "2200-01-01T00:00:00.000000Z" })
        assert.deepStrictEqual([none.status, none.events_checked], ["empty", 0])
        // A row whose time was changed may have been of any period.
        yield* tamper(
          `ALTER TABLE ${table} UPDATE timestamp = '1999-01-01 00:00:00'`
            + " WHERE sequence_number = 1400"
        )
        for (const asked of [bounds, { ...bounds, to: createdAt(1_300_000_000) }, {}]) {
          assert.deepStrictEqual(found(yield* broken(asked)), [[1_400, "content_mismatch"]])
        }
      })
    )
  )

  it.live("by sequence start with the link to the event before", () =>
    withChain(({ chain, table }) =>
      Effect.gen(function* () {
        const report = yield* valid({ fromSequence: 1_100, toSequence: 2_300 })
        assert.deepStrictEqual(
          [report.first_sequence_number, report.last_sequence_number, report.events_checked],
          [1_100, 2_300, 1_201]
        )
        const other = new Chain(TENANT).extend(1_099)
        yield* replaceRow(table, 1_099, other.bodies.at(-1)!)
        const broke = yield* broken({ fromSequence: 1_100, toSequence: 2_300 })
        assert.deepStrictEqual(found(broke), [[1_100, "prev_hash_mismatch"]])
        assert.strictEqual(broke.breaks[0]!.actual, JSON.parse(chain.bodies[1_099]!).prev_hash)
      })
    )
  )
})

describe("breaks", () => {
  it.live("are listed up to a hundred, the first ones, and counted all", () =>
    withChain(({ table }) =>
      Effect.gen(function* () {
        yield* tamper(
          `ALTER TABLE ${table} UPDATE outcome = 'failure' WHERE sequence_number % 10 = 0`
        )
        const [byStore, byProgram] = yield* verifyBothWays({ tenantId: TENANT })
        assert.deepStrictEqual(lasting(byStore), lasting(byProgram))
        assert.strictEqual(byStore.breaks_total, EVENTS / 10)
        assert.deepStrictEqual(
          byStore.breaks.map(({ sequence_number }) => sequence_number),
          Array.from({ length: 100 }, (_, index) => 10 * (index + 1))
        )
      })
    )
  )

  it.live("name the event, what was expected and what is there", () =>
    withChain(({ chain, table }) =>
      Effect.gen(function* () {
        const body = chain.bodies[AT - 1]!
        yield* replaceRow(table, AT, changed(body, '"details_salt":"0011'))
        const [first]: VerifyReport["breaks"] = (yield* broken()).breaks
        assert.strictEqual(first?.event_id, `event-${AT}`)
        assert.include(first?.expected, JSON.parse(body).details_hash)
        assert.notInclude(first?.actual, JSON.parse(body).details_hash)
      })
    )
  )
})
