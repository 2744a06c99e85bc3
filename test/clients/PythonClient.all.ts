/**
 * The Python client against the program: everything it does, once; and nothing lost or doubled when
 * the service or the client itself is killed.
 */
import { rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, inject, it } from "vitest"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, type Started, start, TEST_SECRET, testKey } from "../support/Program.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"
import { clientEnvironment, jsonOf, type Running, startProgram } from "./PythonPrograms.ts"

const TENANTS = ["tour", "restarts", "killed"]
/** Events that are logged while the service is killed, milliseconds between two of them. */
const COUNT = 1_000
const PAUSE_MS = 2

const folder = freshFolder("python-client")
const name = `pyclient_${process.pid}`
/** Where the client looks for the service while it is away. */
let port: number
let service: Started

const startService = (): Promise<Started> =>
  start({
    PORT: String(port),
    KAFKA_BROKERS: inject("bootstrap"),
    CLICKHOUSE_URL: inject("storeUrl"),
    CLICKHOUSE_DATABASE: name,
    ALK_TOPIC_PREFIX: name,
    ALK_PARTITIONS: "1",
    ALK_REPLICATION: "1",
    ALK_SECRET: TEST_SECRET,
    ALK_SIGNING_KEY_FILE: signingKey,
    ALK_BOOTSTRAP_KEYS: TENANTS.map((one) => `${testKey(one)}=${one}:read+write`).join(",")
  })

const signingKey = signingKeyIn(folder)
const environmentOf = (tenant: string): Record<string, string> =>
  clientEnvironment(`http://127.0.0.1:${port}`, testKey(tenant))

const countTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, n) => n)

/** The number in the last "flushed N" that was printed. */
const flushed = (printed: string): number =>
  Number([...printed.matchAll(/^flushed (\d+)\n/gm)].at(-1)?.[1] ?? 0)

const untilFlushed = async (writer: Running, count: number): Promise<void> => {
  await eventuallyAsync(
    `the writer has flushed ${count} events`,
    async () => {
      if (writer.process.exitCode !== null) throw new Error((await writer.ended).output)
      return flushed(writer.printed())
    },
    (events) => events >= count
  )
}

beforeAll(async () => {
  port = await freePort()
  service = await startService()
})

afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("the Python client", () => {
  it("logs, records, is refused, traces, reads and follows", async () => {
    const found = await jsonOf(startProgram("tour", [], environmentOf("tour")))
    assert.deepInclude(found, {
      first: 1,
      again: [1, true],
      valid: true,
      refused: ["invalid_action", "action"],
      refused_by_flush: ["invalid_action"]
    })
    assert.deepStrictEqual(found.asynchronous, {
      events: ["document.read", "document.read", "document.shared"],
      runs: [found.traced.failing, found.traced.run],
      tail: "document.shared"
    })
    const api = new Client(service.url, testKey("tour"))
    const { body: dag } = await api.call(
      `/api/v1/executions/${found.traced.run}/dag?edges=recorded`
    )
    assert.sameMembers(
      dag.nodes.map((node: any) => `${node.name} ${node.type} ${node.status}`),
      [
        "researcher AGENT COMPLETED",
        "plan PLANNING COMPLETED",
        "search TOOL_CALL COMPLETED",
        "write CUSTOM COMPLETED"
      ]
    )
    assert.strictEqual(dag.edges.filter((edge: any) => edge.type !== "parent").length, 1)
    const { body: failing } = await api.call(`/api/v1/executions/${found.traced.failing}`)
    assert.strictEqual(failing.status, "FAILED")
  })

  it("loses and doubles nothing while the service is killed and started again", async () => {
    const environment = environmentOf("restarts")
    const writer = startProgram("writer", [COUNT, 100, PAUSE_MS / 1_000], environment)
    const follower = startProgram("follower", [COUNT], environment)
    await untilFlushed(writer, 200)
    await sleep(Math.random() * 200)
    await service.kill()
    service = await startService()
    const { code, output } = await writer.ended
    assert.strictEqual(code, 0, output)
    const found = await jsonOf(startProgram("reader", [], environment))
    assert.deepStrictEqual(found, { numbers: countTo(COUNT), breaks: [], events: COUNT })
    // A stream that is followed over the same restart has each once and in order, too.
    assert.deepStrictEqual(await jsonOf(follower), { numbers: countTo(COUNT) })
  })

  it("loses nothing that flush has acknowledged when the client is killed", async () => {
    const environment = environmentOf("killed")
    const writer = startProgram("writer", [1_000_000, 20, 0.001], environment)
    await untilFlushed(writer, 200)
    writer.process.kill("SIGKILL")
    await writer.ended
    const acknowledged = flushed(writer.printed())
    const { breaks, numbers } = await jsonOf(startProgram("reader", [], environment))
    assert.deepStrictEqual(breaks, [])
    assert.isAtLeast(numbers.length, acknowledged)
    assert.deepStrictEqual(numbers, countTo(numbers.length))
  })
})
