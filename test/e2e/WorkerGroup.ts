/**
 * A program whose workers share its port and its partitions, seen from outside: what it logs, its
 * processes, and requests on connections of their own, of which any process may get any.
 */
import { rmSync } from "node:fs"
import { request } from "node:http"
import { createRequire } from "node:module"
import type { Json } from "../support/Client.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"

export const WORKERS = 2
export const PARTITIONS = 4
/** Of wrong keys in a minute: few, so that a test reaches it. */
export const FAILED_KEYS = 20

const murmur2 = createRequire(import.meta.url)(
  "kafkajs/src/producer/partitioners/default/murmur2"
) as (text: string) => number

/** A tenant of each partition, by partition. */
export const tenants: ReadonlyArray<string> = Array.from({ length: PARTITIONS }, (_, partition) => {
  for (let n = 0; ; n++) {
    const name = `tenant-${n}`
    if ((murmur2(name) & 0x7fff_ffff) % PARTITIONS === partition) return name
  }
})

/** Of a tenant for whatever needs none of a partition. */
export const key = testKey("workers")

export interface Answer {
  readonly status: number
  readonly text: string
}

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export const many = <A>(count: number, one: (n: number) => Promise<A>): Promise<ReadonlyArray<A>> =>
  Promise.all(Array.from({ length: count }, (_, n) => one(n)))

export class WorkerGroup {
  readonly #folder = freshFolder("workers")
  #running: Started | undefined

  get running(): Started {
    if (this.#running === undefined) throw new Error("it does not run")
    return this.#running
  }

  /** For the first time, or again on its folder. */
  async start(): Promise<void> {
    this.#running = await start({
      ALK_WORKERS: String(WORKERS),
      ALK_DATA_DIR: this.#folder,
      ALK_ADMIN_TOKEN: ADMIN_TOKEN,
      ALK_QUOTA_FAILED_KEYS: String(FAILED_KEYS),
      ALK_PARTITIONS: String(PARTITIONS),
      ALK_BOOTSTRAP_KEYS: [...tenants, "workers"]
        .map((name) => `${testKey(name)}=${name}:read+write`)
        .join(",")
    })
  }

  async end(): Promise<void> {
    await this.#running?.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** The log lines with a message, in the order in which they were written. */
  lines(message: string): ReadonlyArray<Json> {
    return this.running
      .output()
      .split("\n")
      .filter((line) => line.includes(`"${message}"`))
      .map((line) => JSON.parse(line) as Json)
  }

  /** The process of a worker that has listened last. */
  pidOf = (worker: number): number =>
    this.lines("a worker listens").findLast((line) => line["worker"] === worker)!["pid"]

  /** A request on a connection of its own: any process may get it. */
  request(path: string, bearer: string, body?: Json): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        `${this.running.url}${path}`,
        {
          agent: false,
          method: body === undefined ? "GET" : "POST",
          headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" }
        },
        (response) => {
          let text = ""
          response.on("data", (chunk: Buffer) => (text += chunk.toString()))
          response.on("error", reject)
          response.on("end", () => resolve({ status: response.statusCode!, text }))
        }
      )
      sent.on("error", reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}
