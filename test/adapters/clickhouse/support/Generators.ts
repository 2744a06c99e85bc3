/**
 * Generated events and filters that have a fair chance to meet: both draw from the same few texts,
 * keys and numbers, among them those on which two readings of JSON could part.
 */
import fc from "fast-check"
import type { EventFilter } from "../../../../src/domain/events/EventFilter.ts"
import { expressionOver } from "../../../domain/events/where/Expressions.ts"
import { type Sample, timeAt } from "./StoredBodies.ts"

const keys = [
  "a",
  "b",
  "c",
  "a.b",
  "b.c",
  "a.b.c",
  "",
  "__proto__",
  "length",
  '"',
  "é",
  "a[]",
  "a[].b"
]
const texts = [
  "",
  "a",
  "A",
  "b",
  "1",
  "-0",
  "0",
  "true",
  "false",
  "null",
  "[]",
  "{}",
  '"',
  "\\",
  "a/b",
  "a\nb",
  "\u0001",
  "\u2028",
  "Größe",
  "GRÖSSE",
  "ΟΔΟΣ",
  "οδος",
  "İ",
  "\u{1F600}",
  "日本",
  "1e+21",
  "0.1",
  "quarterly report",
  "user-17@example.com",
  "ab_cd%ef\\gh"
]
/** Parts of these, and texts that look like a part to a pattern. */
const parts = [
  "arterly rep",
  "user-17@",
  "7@EXAMPLE",
  "b_cd%e",
  "ab%gh",
  "b_c_",
  "ef\\gh",
  "report"
]
const numbers = [0, 1, -1, 0.1, 1e21, 1e20, 1e-7, 2 ** 63, -(2 ** 63), 123456.789]

const key = fc.constantFrom(...keys)
const text = fc
  .oneof(fc.constantFrom(...texts), fc.string({ unit: "grapheme", maxLength: 6 }))
  .map((value) => value.replaceAll("\0", ""))
/** Ids and types hold no control characters. */
const plain = text.map((value) => value.replaceAll(/[\u0000-\u001f]/g, "~"))
const number = fc
  .oneof(fc.constantFrom(...numbers), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .map((value) => (value === 0 ? 0 : value))

const { object } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    text,
    number,
    fc.boolean(),
    fc.constant(null),
    tie("object"),
    fc.array(tie("value"), { maxLength: 4 })
  ),
  object: fc.array(fc.tuple(key, tie("value")), { maxLength: 5 }).map((entries) => {
    const made = {}
    for (const [name, value] of entries) {
      const own = { enumerable: true, configurable: true, writable: true }
      Object.defineProperty(made, name, { value, ...own })
    }
    return made
  })
}))

const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })

const withoutUndefined = <A extends object>(record: A): A =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as A

const actorType = fc.constantFrom("human" as const, "agent" as const, "system" as const)
const outcome = fc.constantFrom("success" as const, "failure" as const, "error" as const)
const action = fc.constantFrom("document.read", "document.read.all", "Document.read", "user.login")

const sample: fc.Arbitrary<Sample> = fc
  .record({
    actor: fc.record({ id: plain, type: actorType, email: optional(text) }).map(withoutUndefined),
    action,
    resource: fc.record({ id: plain, type: plain, name: optional(text) }).map(withoutUndefined),
    outcome,
    metadata: optional(object)
  })
  .map((made) => withoutUndefined(made) as Sample)

/** The samples of about 200 events. */
export const anyEvents = fc.array(sample, { minLength: 180, maxLength: 220 })

const path = fc
  .array(fc.constantFrom("a", "b", "c", "", "__proto__", "length", '"', "é", "a[]", "b[]", "c[]"), {
    minLength: 1,
    maxLength: 5
  })
  .map((segments) => segments.join("."))

const value = fc.oneof(
  text,
  number.map((number) => String(number)),
  fc.constantFrom(...texts, ...parts)
)

/** A path of metadata. */
export const anyPath = path.filter((one) => one !== "")

/** Expressions of `where`; an empty path names nothing. */
export const anyWhere = expressionOver({
  text: fc.oneof(text, fc.constantFrom(...parts)),
  path: anyPath,
  number,
  time: fc.nat({ max: 220 }).map((index) => timeAt(index))
})

export const anyFilter: fc.Arbitrary<EventFilter> = fc
  .record({
    actorType: fc.option(actorType, { nil: undefined, freq: 6 }),
    actorId: fc.option(text, { nil: undefined, freq: 8 }),
    action: fc.option(action, { nil: undefined, freq: 8 }),
    actionPrefix: fc.option(fc.constantFrom("document.", "user."), { nil: undefined, freq: 8 }),
    outcome: fc.option(outcome, { nil: undefined, freq: 8 }),
    resourceType: fc.option(text, { nil: undefined, freq: 8 }),
    metadata: fc.array(fc.record({ path, value }), { maxLength: 2 }),
    q: fc.option(fc.oneof(text, fc.constantFrom(...parts)), { nil: undefined, freq: 2 })
  })
  .map((made) => withoutUndefined(made) as EventFilter)
