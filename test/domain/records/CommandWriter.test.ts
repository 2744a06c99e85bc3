/** Numbers of commands: what a writer writes is applied once, a copy never. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  CommandWriter,
  copyRefusal,
  isForgotten,
  readWriterPosition,
  WRITER_KEPT_MICROS
} from "../../../src/domain/records/CommandWriter.ts"

const HOUR = 3_600_000_000
const START = 1_763_800_000_000_000

/** Applies commands in order, as a sequencer does; says which were taken for copies. */
const applying = (headers: ReadonlyArray<string>, now: number) => {
  const last = new Map<string, number>()
  return headers.filter((header) => {
    const position = readWriterPosition(header)!
    const refusal = copyRefusal(
      position,
      now,
      { last: last.get(position.writer), copiesUpTo: 0 },
      now
    )
    if (refusal === undefined) last.set(position.writer, position.number)
    return refusal !== undefined
  })
}

/** Hours after which two writers write, in the order of the log. */
const writings = fc.array(fc.record({ by: fc.nat(1), hours: fc.nat(30) }), { maxLength: 30 })

const written = (all: ReadonlyArray<{ readonly by: number; readonly hours: number }>) => {
  const writers = [new CommandWriter(), new CommandWriter()]
  let now = START
  const headers = all.map(({ by, hours }) => {
    now += hours * HOUR
    return writers[by]!.next(now)
  })
  return { headers, now }
}

describe("a command", () => {
  it("is applied once, and each copy of it refused, wherever it comes", () => {
    fc.assert(
      fc.property(writings, fc.infiniteStream(fc.nat()), (all, places) => {
        const { headers, now } = written(all)
        assert.deepStrictEqual(applying(headers, now), [])
        const withCopies = [...headers]
        for (const header of headers) {
          const first = withCopies.indexOf(header)
          const at = first + 1 + ((places.next().value as number) % (withCopies.length - first))
          withCopies.splice(at, 0, header)
        }
        assert.sameMembers(applying(withCopies, now), headers)
      })
    )
  })

  it("of a writer that was let go of is refused, and of none that may still write", () => {
    const { writer } = readWriterPosition(new CommandWriter().next(START))!
    const latest = START + 24 * HOUR + 14 * 24 * HOUR
    const unknown = { last: undefined, copiesUpTo: 0 }
    assert.isUndefined(copyRefusal({ writer, number: 1 }, latest, unknown, latest))
    const late = START + WRITER_KEPT_MICROS + 1
    assert.isTrue(isForgotten(writer, late))
    assert.isDefined(copyRefusal({ writer, number: 1 }, late, unknown, late))
  })

  it("is refused if it was received while it is not known what was applied", () => {
    const position = readWriterPosition(new CommandWriter().next(START))!
    for (const last of [undefined, 0]) {
      const known = { last, copiesUpTo: START + HOUR }
      assert.match(
        copyRefusal(position, START + HOUR, known, START + HOUR) ?? "",
        /it may be a copy/
      )
      assert.isUndefined(copyRefusal(position, START + HOUR + 1, known, START + HOUR))
    }
  })

  it("has a position of one form only", () => {
    assert.deepStrictEqual(readWriterPosition("17-0a0b0c0d/3"), {
      writer: "17-0a0b0c0d",
      number: 3
    })
    for (const wrong of [
      "",
      "17-0a0b0c0d",
      "17-0a0b0c0d/0",
      "17-0a0b0c0d/03",
      "x/1",
      "1/2/3",
      "17-0a0b0c0d/1e3",
      "17-0A0B0C0D/1",
      "17-0a0b0c0d/9007199254740993"
    ]) {
      assert.isUndefined(readWriterPosition(wrong), wrong)
    }
  })
})
