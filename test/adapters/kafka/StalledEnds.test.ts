/** When it is said that a transaction of another program holds up the readers. */
import { assert, describe, it } from "vitest"
import { StalledEnds } from "../../../src/adapters/kafka/StalledEnds.ts"

const SECONDS = 1_000

/** What is said while a fetch finds these ends, each at so many seconds. */
const said = (
  looks: ReadonlyArray<readonly [at: number, stableEnd: number, writtenEnd: number]>
) => {
  const lines: Array<string> = []
  const stalled = new StalledEnds((line) => lines.push(line))
  for (const [at, stableEnd, writtenEnd] of looks) {
    const place = { topic: "events", partition: 3, offset: 0, logStart: 0 } as const
    stalled.look({ ...place, stableEnd, writtenEnd }, at * SECONDS)
  }
  return lines
}

describe("a last stable offset", () => {
  it("that stands still although records follow is said once", () => {
    const [line, ...others] = said([
      [0, 7, 9],
      [9, 7, 12],
      [11, 7, 12],
      [60, 7, 20]
    ])
    assert.include(line, "alk.events/3 stands at 7 although records follow up to 12, for 11 s")
    assert.isEmpty(others)
  })

  it("is said again where it stands still another time", () => {
    const looks = [
      [0, 7, 9],
      [11, 7, 9],
      [12, 20, 20],
      [13, 20, 21],
      [24, 20, 21]
    ] as const
    assert.lengthOf(said(looks), 2)
  })

  it("that moves on, or has nothing behind it, is nothing to be said", () => {
    const underLoad = Array.from({ length: 60 }, (_, at) => [at, at, at + 5] as const)
    assert.isEmpty(said(underLoad))
    assert.isEmpty(said([0, 30, 60].map((at) => [at, 7, 7] as const)))
  })
})
