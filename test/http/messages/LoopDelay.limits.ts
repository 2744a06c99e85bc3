/**
 * How long a body, or an answer, may keep the event loop from everybody else. Measured is what one turn of the loop
 * takes of the processor, so that it doesn't matter what else the machine does meanwhile.
 */
import { once } from "node:events"
import { afterAll, assert, beforeAll, it } from "vitest"
import { READ_KEY, settings, WRITE_KEY } from "../support/Doubles.ts"
import { callOf, hostileBodies } from "../support/HostileBodies.ts"
import { type Call, TestApi } from "../support/TestApi.ts"

const BODY_BYTES = 16 * 1_048_576
/** Times what an empty request takes that a turn may take; that counts as a millisecond at least. */
const TIMES_MAX = 100
/** How often a body is sent that takes longer: what is compiled or collected by chance is not again. */
const TRIES = 4

let api: TestApi
beforeAll(async () => {
  const limits = { bodyBytesMax: BODY_BYTES, bodyBudgetBytes: 8 * BODY_BYTES }
  api = await TestApi.start({ limits: { ...settings.limits, ...limits } })
})
afterAll(() => api.stop())

const processorMs = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

/** The longest turn of the loop until the work is done. */
const longestTurn = async <A>(work: () => Promise<A>): Promise<readonly [number, A]> => {
  let longest = 0
  let before = processorMs()
  let isOver = false
  const turn = () => {
    const now = processorMs()
    longest = Math.max(longest, now - before)
    before = now
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const answer = await work()
  isOver = true
  turn()
  return [longest, answer]
}

/** The longest turn of the best try, and the status of the answer. */
const measured = async (ask: () => Promise<{ readonly status: number }>, enough: number) => {
  let best = Infinity
  let status = 0
  for (let left = TRIES; left > 0 && best > enough; left--) {
    const [ms, answer] = await longestTurn(ask)
    best = Math.min(best, ms)
    status = answer.status
  }
  return { ms: best, status }
}

const send = (path: string, call: Call, enough: number) =>
  measured(() => api.call(path, call), enough)

const emptyRequest = () => {
  const headers = { "content-type": "application/json" }
  return send("/v1/events/batch", { key: WRITE_KEY, raw: "", headers }, 0)
}

it("no body keeps the loop a hundred times as long as an empty one", async () => {
  const empty = await emptyRequest()
  const most = TIMES_MAX * Math.max(1, empty.ms)
  const long: Array<string> = []
  for (const [name, hostile] of Object.entries(hostileBodies(BODY_BYTES))) {
    const { ms, status } = await send(hostile.path, callOf(hostile), most)
    if (ms > most) long.push(`${name}: ${ms.toFixed(0)} ms`)
    assert.include([200, 201, 202, 400, 413], status, name)
  }
  assert.deepStrictEqual(long, [], `an empty request took ${empty.ms} ms`)
})

it("nor do statistics of as many intervals as there may be", async () => {
  const empty = await emptyRequest()
  const most = TIMES_MAX * Math.max(1, empty.ms)
  const start = "2026-11-21T10:00:00.000000Z"
  const buckets = Array.from({ length: 100_000 }, (_, n) => ({
    start,
    keys: ["\x01".repeat(100) + n],
    count: n
  }))
  api.world.stats = { groups: [], other: 0, buckets, missing: 0, total: 0 }
  const path = "/v1/events/stats?group_by=action&interval=minute"
  // The client is of this process, too: it does not look into the answer.
  const { ms, status } = await measured(async () => {
    const answer = await api.open(path, { key: READ_KEY })
    await once(answer.resume(), "end")
    return { status: answer.statusCode ?? 0 }
  }, most)
  assert.strictEqual(status, 200)
  assert.isAtMost(ms, most, `an empty request took ${empty.ms} ms`)
})
