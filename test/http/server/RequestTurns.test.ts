/**
 * How many requests begin in one turn of the event loop, however many have arrived, and that those of
 * one client don't wait for all of another. Each takes as long as it says, so that what is counted does
 * not depend on the machine.
 */
import type { AddressInfo } from "node:net"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeNodeServer } from "../../../src/http/server/NodeServer.ts"
import { RequestTurns } from "../../../src/http/server/RequestTurns.ts"
import { RawConnection } from "../support/RawHttp.ts"

/** Milliseconds that a request takes. */
const BUSY_MS = 3
/** Of those that begin in one turn, 10 ms of it: at once, and of those that waited. */
const IN_ONE_TURN = 2 * 4

const busy = (): void => {
  const until = performance.now() + BUSY_MS
  while (performance.now() < until);
}

/** Counts what happens between two turns of the loop. */
class Turns {
  most = 0
  #now = 0
  #isOver = false

  constructor() {
    const turn = () => {
      this.#now = 0
      if (!this.#isOver) setImmediate(turn)
    }
    setImmediate(turn)
  }

  count(): void {
    this.#now += 1
    this.most = Math.max(this.most, this.#now)
  }

  stop(): void {
    this.#isOver = true
  }
}

let turns: Turns
beforeEach(() => {
  turns = new Turns()
})
afterEach(() => turns.stop())

describe("requests that arrive together", () => {
  it("begin a few in a turn, on one connection and on many", async () => {
    const server = makeNodeServer([], 0)
    server.on("request", (_, response) => {
      busy()
      turns.count()
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    for (const [connections, each] of [
      [1, 60],
      [60, 1],
      [10, 6]
    ] as const) {
      turns.most = 0
      const open = await Promise.all(
        Array.from({ length: connections }, () => RawConnection.open(port))
      )
      for (const one of open) one.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(each))
      for (const one of open) assert.strictEqual((await one.answers(each)).length, each)
      assert.isAtMost(turns.most, IN_ONE_TURN, `${connections} connections`)
      for (const one of open) one.socket.destroy()
    }
    await new Promise((resolve) => server.close(resolve))
  })

  it("take turns by client", async () => {
    const requests = new RequestTurns()
    const begun: Array<string> = []
    const take = (client: string) =>
      new Promise<void>((resolve) => {
        requests.take(client, () => {
          busy()
          turns.count()
          begun.push(client)
          resolve()
        })
      })
    const all = [...Array.from({ length: 50 }, () => take("many")), take("one"), take("other")]
    await Promise.all(all)
    assert.strictEqual(begun.length, 52)
    assert.isBelow(begun.indexOf("one"), IN_ONE_TURN)
    assert.isBelow(begun.indexOf("other"), IN_ONE_TURN)
    assert.isAtMost(turns.most, IN_ONE_TURN)
  })

  it("begin at once where there is time", () => {
    const requests = new RequestTurns()
    let begun = 0
    for (let at = 0; at < 3; at++) requests.take("a", () => begun++)
    assert.strictEqual(begun, 3)
  })
})
