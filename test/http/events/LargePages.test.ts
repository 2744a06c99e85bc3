/** Large events: pages of them are parts that add up, and lines of them come in pieces. */
import { Effect, Stream } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { eventLines, eventTable } from "../../../src/http/events/EventText.ts"
import { CSV_TYPE, NDJSON_TYPE } from "../../../src/http/messages/MediaTypes.ts"
import { READ_KEY, WRITE_KEY } from "../support/Doubles.ts"
import { item } from "../support/Events.ts"
import { TestApi } from "../support/TestApi.ts"

const EVENTS = 300
const MIB = 1_048_576

describe("large events", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
    const metadata = { a: { b: { c: "x".repeat(31_000) } } }
    for (let n = 0; n < EVENTS; n += 30) {
      const events = Array.from({ length: 30 }, (_, at) => item(n + at, { metadata }))
      const answer = await api.call("/v1/events/batch?sync=true", {
        key: WRITE_KEY,
        json: { events }
      })
      assert.strictEqual(answer.status, 200, answer.text.slice(0, 300))
    }
  })
  afterAll(() => api.stop())

  const nextOf = (link: unknown) => /<([^>]*)>; rel="next"/.exec(String(link))?.[1]
  const shown = "fields=sequence_number,metadata,metadata.a,metadata.a.b,metadata.a.b.c"

  it.each([
    ["by number", "order=asc", "events"],
    ["from the second page on", "order=asc&page_size=290&page=2", "events"],
    ["by time", "sort=timestamp", "events"],
    ["by sequence", "after_sequence=0&order=asc", "events"],
    ["downwards", "before_sequence=100000", "events"],
    ["of fields", `order=asc&${shown}`, "rows"],
    ["of fields by sequence", `order=asc&after_sequence=0&${shown}`, "rows"]
  ])("are shown in parts that add up: %s", async (_, query, name) => {
    const seen: Array<number> = []
    const size = query.includes("page_size") ? "" : "&page_size=1000"
    for (let next: string | undefined = `/v1/events?${query}${size}`; next !== undefined; ) {
      const { body, headers, text } = await api.call(next, { key: READ_KEY })
      assert.isBelow(text.length, 9 * MIB)
      assert.isNotEmpty(body[name])
      assert.isAtMost(body[name].length, body.page_size)
      assert.strictEqual(body.total, EVENTS)
      seen.push(...body[name].map((one: any) => one.sequence_number))
      next = nextOf(headers["link"])
    }
    const expected = Array.from({ length: EVENTS }, (_, n) => n + 1)
    const first = query.includes("page=2") ? 290 : 0
    const inOrder = seen.toSorted((left, right) => left - right)
    assert.deepStrictEqual(inOrder, expected.slice(first))
  })

  it.each([
    [NDJSON_TYPE, eventLines],
    [CSV_TYPE, (fields, chunks) => eventTable({ fields }, chunks)]
  ] satisfies ReadonlyArray<readonly [string, typeof eventLines]>)(
    "come in pieces as lines, however often a field is shown again: %s",
    async (_, write) => {
      const text = JSON.stringify({ metadata: { a: { b: "x".repeat(30_000) } }, tenant_id: "t" })
      const bodies = Array.from({ length: 200 }, () => text)
      const pieces = await Effect.runPromise(
        write(["metadata.a", "metadata.a.b"], Stream.succeed(bodies)).pipe(
          Stream.map(({ length }) => length),
          Stream.runCollect
        )
      )
      assert.isAbove(
        pieces.reduce((sum, length) => sum + length),
        200 * 60_000
      )
      assert.isBelow(Math.max(...pieces), 400_000)
    }
  )
})
