/** Expressions as the parser makes them, of fields, values and texts that events in tests have. */
import fc from "fast-check"
import { actorTypes, outcomes } from "../../../../src/domain/events/AuditEvent.ts"
import type { WhereField } from "../../../../src/domain/events/EventFields.ts"
import type {
  Comparison,
  Condition,
  Expression,
  Question
} from "../../../../src/domain/events/where/Expression.ts"
import { canonicalize } from "../../../../src/domain/json/CanonicalJson.ts"

const signs: ReadonlyArray<Comparison> = [">", ">=", "<", "<="]
const sign = fc.constantFrom(...signs)

const text = fc.oneof(
  fc.constantFrom(
    "a",
    "user_1",
    "user_2",
    "document.read",
    'say "no"',
    "a,b",
    "x*",
    "ü",
    "\\",
    "-1"
  ),
  fc.string({ maxLength: 8 }).filter((one) => !one.includes("\0"))
)

const path = fc.constantFrom("n", "ip", "nested.list", "with.dot", "a b", "x:y", 'q"', "*")

const number = fc.oneof(
  fc.integer({ min: -3, max: 40 }),
  fc.double({ noNaN: true, noDefaultInfinity: true })
)

const time = fc.constantFrom(
  "2026-11-21T10:00:00.000000Z",
  "2026-11-21T10:00:00.000007Z",
  "2026-11-20T23:59:59.999999Z"
)

/** What the events have that are asked for. */
interface Material {
  readonly text: fc.Arbitrary<string>
  readonly path: fc.Arbitrary<string>
  readonly number: fc.Arbitrary<number>
  readonly time: fc.Arbitrary<string>
}

const textFields: ReadonlyArray<WhereField> = [
  "id",
  "actor_id",
  "actor_email",
  "action",
  "resource_id",
  "resource_type",
  "resource_name",
  "hash",
  "prev_hash",
  "content_hash"
]

const ofChoice = fc.oneof(
  fc.constantFrom(...outcomes).map((is): Condition => ({ field: "outcome", is })),
  fc.constantFrom(...actorTypes).map((is): Condition => ({ field: "actor_type", is }))
)

const ofSequence = fc
  .tuple(sign, fc.nat({ max: 240 }), fc.boolean())
  .map(([one, place, isExact]): Condition => {
    const value = String(place)
    return isExact
      ? { field: "sequence_number", is: value }
      : { field: "sequence_number", sign: one, value }
  })

/** Of a condition on a text or a value in metadata. */
const questionOf = (kind: number, value: string): Question =>
  kind === 0 ? { exists: true } : kind === 1 ? { startsWith: value } : { is: value }

const conditionOf = (material: Material): fc.Arbitrary<Expression> => {
  const ofText = fc
    .tuple(fc.constantFrom(...textFields), material.text, fc.nat({ max: 4 }))
    .map(([field, value, kind]): Condition => ({ field, ...questionOf(kind, value) }))
  const ofTime = fc
    .tuple(
      fc.constantFrom("timestamp" as const, "created_at" as const),
      sign,
      material.time,
      fc.boolean()
    )
    .map(
      ([field, one, value, isExact]): Condition =>
        isExact ? { field, is: value } : { field, sign: one, value }
    )
  const plain = material.number.map((value) => canonicalize(value === 0 ? 0 : value))
  const ofMetadata = fc
    .tuple(material.path, fc.oneof(material.text, plain), fc.nat({ max: 4 }))
    .map(([metadata, value, kind]): Condition => ({ metadata, ...questionOf(kind, value) }))
  const ofNumber = fc
    .tuple(material.path, sign, plain)
    .map(([metadata, one, value]): Condition => ({ metadata, sign: one, value }))
  const search = material.text
    .filter((one) => one !== "" && [...one].length <= 256)
    .map((one) => ({ search: one }))
  return fc.oneof(ofText, ofChoice, ofSequence, ofTime, ofMetadata, ofNumber, search)
}

/** Joins of two and more, as the parser makes them. */
export const expressionOver = (material: Material): fc.Arbitrary<Expression> =>
  fc.letrec<{ any: Expression }>((tie) => {
    const parts = fc.array(tie("any"), { minLength: 2, maxLength: 3 })
    return {
      any: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        conditionOf(material),
        parts.map((and) => ({ and })),
        parts.map((or) => ({ or })),
        tie("any").map((not) => ({ not }))
      )
    }
  }).any

export const anyExpression = expressionOver({ text, path, number, time })
