/** Conditions that clicks add to a typed expression and take away: the service reads them as meant. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  chosenValues,
  restOf,
  toggleValue,
  whereFields,
  whereValue,
  withCondition,
  wordBefore
} from "../../src/console/state/Where.ts"
import { whereNames } from "../../src/domain/events/EventFields.ts"
import { METADATA_PREFIX } from "../../src/domain/events/MetadataPath.ts"
import { TestChain } from "../exports/support/Chains.ts"
import { matches } from "../support/Matches.ts"

const chain = new TestChain("acme", 1)

const isWhere = (where: string, event: Parameters<typeof matches>[1]): boolean =>
  matches({ metadata: [], where }, event)

const eventWith = (action: string, actor: string, outcome = "success") => {
  const event = chain.event(1)
  return { ...event, action, actor: { ...event.actor, id: actor }, outcome } as typeof event
}

/** What an event can hold: some text, without U+0000 and halves of pairs. */
const texts = fc
  .string({ minLength: 1, unit: "binary" })
  .filter((text) => text.isWellFormed() && !text.includes("\0"))

describe("a value in an expression", () => {
  it("is that value for the service, whatever it holds", () => {
    fc.assert(
      fc.property(texts, texts, (value, other) => {
        const where = `action:${whereValue(value)}`
        assert.isTrue(isWhere(where, eventWith(value, "a")))
        assert.strictEqual(isWhere(where, eventWith(other, "a")), other === value)
      })
    )
  })
})

const expressions = [
  "",
  "outcome:success",
  "outcome:success actor:ann*",
  "outcome:failure OR outcome:success",
  'NOT actor:"Bob Lee"',
  "(outcome:failure OR actor:ann) timestamp>=2020-01-01",
  "action:nothing,else OR actor:ann",
  "-action:login.*"
]

describe("a click on a value", () => {
  it("narrows what is found to it, and a second one takes that back", () => {
    const cases = fc.tuple(
      fc.constantFrom(...expressions),
      texts,
      fc.constantFrom("ann", "Bob Lee")
    )
    fc.assert(
      fc.property(cases, ([where, value, actor]) => {
        const narrowed = toggleValue(where, "action", value)
        const [wanted, other] = [eventWith(value, actor), eventWith(`${value}!`, actor)]
        const holds = where === "" || isWhere(where, wanted)
        assert.strictEqual(isWhere(narrowed, wanted), holds)
        assert.isFalse(isWhere(narrowed, other))
        const wide = toggleValue(narrowed, "action", value)
        if (!where.includes(" OR ")) assert.strictEqual(wide, where)
        assert.strictEqual(wide === "" || isWhere(wide, wanted), holds)
      })
    )
  })

  it("adds to the values of its field, and takes one of them out", () => {
    const both = toggleValue("action:a outcome:failure", "action", "b c")
    assert.strictEqual(both, 'action:a,"b c" outcome:failure')
    assert.deepStrictEqual([...chosenValues(both, "action")], ["a", "b c"])
    assert.strictEqual(toggleValue(both, "action", "a"), 'action:"b c" outcome:failure')
  })

  it("leaves no operator behind that joins nothing", () => {
    assert.strictEqual(toggleValue("action:a AND outcome:error", "action", "a"), "outcome:error")
    assert.strictEqual(toggleValue("outcome:error AND action:a", "action", "a"), "outcome:error")
  })

  it("does not take a prefix, or what is excluded, for a value", () => {
    assert.isEmpty(chosenValues("action:a*", "action"))
    assert.isEmpty(chosenValues("NOT action:a", "action"))
    assert.isEmpty(chosenValues("action:a OR outcome:error", "action"))
    assert.deepStrictEqual([...chosenValues('action:"a*"', "action")], ["a*"])
  })

  it("holds for all alternatives of an expression", () => {
    assert.strictEqual(withCondition("a OR b", "outcome:error"), "(a OR b) outcome:error")
    assert.strictEqual(withCondition(' "a OR b" ', "c:d"), '"a OR b" c:d')
  })
})

describe("the word before the cursor", () => {
  it("begins behind spaces, brackets and a minus", () => {
    assert.deepStrictEqual(wordBefore("a -(outc", 8), { word: "outc", start: 4 })
    assert.deepStrictEqual(wordBefore('action:"a b', 11), { word: 'action:"a b', start: 0 })
    assert.deepStrictEqual(wordBefore("a b", 1), { word: "a", start: 0 })
  })
})

describe("an expression without its last word", () => {
  it("is what is left beside it, without what negates it", () => {
    for (const [text, rest] of [
      ["action:do", ""],
      ["outcome:failure action:do", "outcome:failure"],
      ["outcome:failure -action:do", "outcome:failure"],
      ["outcome:failure NOT action:do", "outcome:failure"],
      ["KNOT action:do", "KNOT"],
      ['metadata.a:"-b" action:do', 'metadata.a:"-b"']
    ] as const) {
      const { start } = wordBefore(text, text.length)
      assert.strictEqual(restOf(text, start, text.length), rest)
    }
  })
})

describe("the fields that are completed", () => {
  it("are those that the service has", () => {
    assert.sameMembers([...whereFields], [...whereNames, METADATA_PREFIX])
  })
})
