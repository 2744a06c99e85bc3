/** Rows of the view that were tampered with, one way after the other. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { VerifyReport } from "../../src/verify/Verifier.ts"
import { tamper } from "../support/Store.ts"
import { bodiesOf, project, sequence, verify, withView, write } from "./support/ProjectedView.ts"

/** What an intruder does to the table, and what verification must say of it. */
interface Tampering {
  readonly name: string
  readonly statements: (table: string) => ReadonlyArray<string>
  readonly expected: ReadonlyArray<readonly [number, VerifyReport["breaks"][number]["reason"]]>
}

const change = (table: string, column: string, value: string, sequence: number): string =>
  `ALTER TABLE ${table} UPDATE ${column} = ${value} WHERE sequence_number = ${sequence}`

/** A text in a column of the row. */
const texts: ReadonlyArray<readonly [text: string, column: string]> = [
  ["document.read", "action"],
  ["user-1", "actor_id"],
  ["doc-4", "resource_id"],
  ["Dökument 4", "resource_name"],
  ["success", "outcome"],
  ["nöte 4", "metadata"],
  ["human", "actor_type"],
  ["u4@", "actor_email"]
]

const tamperings: ReadonlyArray<Tampering> = [
  ...texts.map(
    ([text, column]): Tampering => ({
      name: `a changed ${text}`,
      statements: (table) => [
        change(table, column, `replaceOne(${column}, '${text}', '${text.slice(0, -1)}X')`, 5)
      ],
      expected: [[5, "content_mismatch"]]
    })
  ),
  {
    name: "a filter column changed alone",
    statements: (table) => [
      `ALTER TABLE ${table} UPDATE outcome = 'failure' WHERE sequence_number = 7`
    ],
    expected: [[7, "content_mismatch"]]
  },
  {
    name: "a row dropped",
    statements: (table) => [`ALTER TABLE ${table} DELETE WHERE sequence_number = 4`],
    expected: [[4, "sequence_gap"]]
  },
  {
    name: "the tail dropped",
    statements: (table) => [`ALTER TABLE ${table} DELETE WHERE sequence_number > 9`],
    expected: [[10, "tail_missing"]]
  },
  {
    name: "created_at changed",
    statements: (table) => [change(table, "created_at", "created_at - 1", 3)],
    expected: [[3, "hash_mismatch"]]
  },
  {
    name: "a member added that no hash covers",
    statements: (table) => [change(table, "actor_type", `'human","note":"x'`, 6)],
    expected: [[6, "content_mismatch"]]
  }
]

describe("verification of stored rows", () => {
  for (const { expected, name, statements } of tamperings) {
    it.live(`finds ${name}`, () =>
      withView((database) =>
        Effect.gen(function* () {
          yield* write("acme", 12)
          yield* sequence(12)
          yield* project("acme", 12)
          const before = yield* verify("acme")
          assert.isTrue(before.valid, JSON.stringify(before.breaks))
          yield* tamper(...statements(`${database}.events`))
          const report = yield* verify("acme")
          assert.strictEqual(report.status, "broken")
          const found = report.breaks.map(({ reason, sequence_number }) => [
            sequence_number,
            reason
          ])
          for (const one of expected) {
            assert.deepInclude(found, [...one], JSON.stringify(report.breaks))
          }
        })
      )
    )
  }
})

describe("a view that was changed or dropped as a whole", () => {
  it.live("drops and rebuilds a view that the topic denies", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* write("acme", 20)
        yield* sequence(20)
        yield* project("acme", 20)
        yield* tamper(
          `ALTER TABLE ${database}.events UPDATE outcome = 'failure' WHERE sequence_number = 20`
        )
        yield* write("acme", 5)
        const all = yield* sequence(25)
        assert.deepStrictEqual((yield* project("acme", 25)).bodies, bodiesOf(all))
      })
    )
  )

  it.live("rebuilds a view that was dropped whole", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* write("acme", 20)
        const records = yield* sequence(20)
        yield* project("acme", 20)
        yield* tamper(`TRUNCATE TABLE ${database}.events`)
        assert.deepStrictEqual((yield* project("acme", 20)).bodies, bodiesOf(records))
      })
    )
  )
})
