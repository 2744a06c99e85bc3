/**
 * kafkajs with what alk replaces in it: a broker that takes connections and closes them, or says
 * nothing, is left for another one, and a member's heartbeat follows its group to another coordinator.
 */
import { once } from "node:events"
import { createRequire } from "node:module"
import { type AddressInfo, createServer, type Server, Socket } from "node:net"
import { afterAll, assert, describe, it } from "vitest"
import { makeCluster } from "../../../../src/adapters/kafka/protocol/KafkaClient.ts"
import {
  closingSilent,
  findingCoordinator,
  type GroupMember,
  lookingWhereSomeWait,
  refusedUnlessConnected
} from "../../../../src/adapters/kafka/protocol/Repairs.ts"

const errorNamed = (name: string) => Object.assign(new Error(name), { name })

const memberWith = (found: () => Promise<unknown>) =>
  ({
    groupId: "alk-sequencer",
    coordinator: "before",
    cluster: { findGroupCoordinator: found }
  }) satisfies GroupMember

/** What becomes of a heartbeat that fails so. */
const fails = async (failure: Error, found: () => Promise<unknown>) => {
  const member: GroupMember = memberWith(found)
  const heartbeat = findingCoordinator(() => Promise.reject(failure))
  const rejected = await heartbeat.call(member, { interval: 1_000 }).catch((error) => error)
  return { rejected, coordinator: member.coordinator }
}

describe("the queue of a connection", () => {
  it("is looked at again where a request waits, and not else", () => {
    let looks = 0
    const look = lookingWhereSomeWait(() => {
      looks += 1
    })
    look.call({ pending: [] })
    assert.strictEqual(looks, 0)
    look.call({ pending: ["a request"] })
    assert.strictEqual(looks, 1)
  })

  it("is at rest once kafkajs is repaired", () => {
    makeCluster({ brokers: ["127.0.0.1:1"], clientId: "test", log: () => undefined })
    const RequestQueue = createRequire(import.meta.url)("kafkajs/src/network/requestQueue")
    const queue = new RequestQueue({ isConnected: () => true, requestTimeout: 1, logger: {} })
    queue.scheduleCheckPendingRequests()
    assert.isNull(queue.throttleCheckTimeoutId)
  })
})

describe("a cluster", () => {
  const servers: Array<Server> = []
  afterAll(() => {
    for (const server of servers) server.close()
  })

  /** Takes connections and closes them, as a proxy does before a broker that is gone. */
  const closing = async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.on("error", () => undefined)
      // Once it has something to lose: closed before, kafkajs waits for nothing.
      socket.once("data", () => socket.end())
    })
    servers.push(server.listen(0, "127.0.0.1"))
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    return { address: `127.0.0.1:${port}`, connections: () => connections }
  }

  it("goes from a broker that closes its connections to the others", async () => {
    const [first, second] = [await closing(), await closing()]
    const brokers = [first.address, second.address]
    const cluster = makeCluster({ brokers, clientId: "test", log: () => undefined })
    const failure = await cluster.connect().catch((error) => error)
    assert.strictEqual(failure.name, "KafkaJSNumberOfRetriesExceeded")
    assert.isAbove(first.connections(), 0)
    assert.isAbove(second.connections(), 0)
  })
})

describe("a broker that takes a connection and says nothing", () => {
  it("counts as one that refuses it", async () => {
    const socket = new Socket()
    const broker = { connectionPool: { pool: [{ socket }, {}] } }
    const { KafkaJSConnectionError } = createRequire(import.meta.url)("kafkajs/src/errors")
    // As a connection of kafkajs ends what waits for an answer when its socket fails.
    const connect = refusedUnlessConnected(async () => {
      const [error] = await once(socket, "error").catch((error) => [error])
      throw new KafkaJSConnectionError(`Connection error: ${error.message}`, { broker: "b:9092" })
    }, 10)
    const failure = await connect.call(broker).catch((error) => error)
    assert.deepInclude(failure, {
      message: "Connection error: no answer in time",
      broker: "b:9092",
      code: "ECONNREFUSED"
    })
  })

  it("loses its connections when an answer does not come in time, and only then", async () => {
    for (const [name, isLost] of [
      ["KafkaJSRequestTimeoutError", true],
      ["KafkaJSProtocolError", false]
    ] as const) {
      const sockets = [new Socket(), new Socket()]
      for (const socket of sockets) socket.on("error", () => undefined)
      const connections = { pool: [...sockets.map((socket) => ({ socket })), {}] }
      const failure = errorNamed(name)
      const sent = closingSilent(() => Promise.reject(failure)).call(connections, {})
      assert.strictEqual(await sent.catch((error) => error), failure)
      assert.deepStrictEqual(
        sockets.map(({ destroyed }) => destroyed),
        [isLost, isLost]
      )
    }
  })
})

describe("a heartbeat that does not reach the coordinator", () => {
  for (const name of [
    "KafkaJSConnectionError",
    "KafkaJSConnectionClosedError",
    "KafkaJSRequestTimeoutError"
  ]) {
    it(`fails, and the next one goes to the one that is found: ${name}`, async () => {
      const failure = errorNamed(name)
      assert.deepStrictEqual(await fails(failure, async () => "another"), {
        rejected: failure,
        coordinator: "another"
      })
    })
  }

  it("goes on with the one of before while none is found", async () => {
    const failure = errorNamed("KafkaJSConnectionClosedError")
    const none = () => Promise.reject(new Error("no broker answers"))
    const found = await fails(failure, none)
    assert.deepStrictEqual(found, { rejected: failure, coordinator: "before" })
  })
})

describe("a heartbeat that the coordinator has answered", () => {
  it("asks for no other one, whatever the answer is", async () => {
    let asked = 0
    const find = async () => {
      asked += 1
      return "another"
    }
    const failure = errorNamed("KafkaJSProtocolError")
    assert.strictEqual((await fails(failure, find)).coordinator, "before")
    const member = memberWith(find)
    assert.strictEqual(
      await findingCoordinator(async () => "beaten").call(member, { interval: 1_000 }),
      "beaten"
    )
    assert.deepStrictEqual([asked, member.coordinator], [0, "before"])
  })
})
