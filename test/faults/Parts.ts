/**
 * The processes of one fault test: a store, a projection, some sequencers and APIs over the
 * machine's broker, with topics and keys of their own, and the ways to hurt them. Shares no code
 * with the program.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { inject } from "vitest"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freePort } from "../support/FreePort.ts"
import {
  ADMIN_TOKEN,
  freshFolder,
  type Started,
  start,
  TEST_SECRET,
  testKey
} from "../support/Program.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"

/** Of two partitions bob's is 0, ada's and cyd's is 1. */
export const TENANTS = ["ada", "bob", "cyd"] as const
export const keyOf = (tenant: string): string => testKey(`fault${tenant}`)
export const bootstrapKeys = TENANTS.map((tenant) => `${keyOf(tenant)}=${tenant}:read+write`).join(
  ","
)

/** Who can be asked and what can be read, whatever stands behind it. */
export interface Target {
  readonly urls: () => ReadonlyArray<string>
  readonly bootstrap: () => string
  readonly topicPrefix: string
}

export const clientOf = (target: Target, tenant: string, which = 0): Client => {
  const urls = target.urls()
  return new Client(urls[which % urls.length]!, keyOf(tenant))
}

export const until = async (
  what: string,
  holds: () => Promise<boolean> | boolean,
  patienceMs?: number
): Promise<void> => {
  await eventuallyAsync(what, holds, Boolean, patienceMs)
}

/** What the program does when it is not scheduled: nothing, while its connections stay open. */
export const pause = ({ pid }: { readonly pid: number }): void => void process.kill(pid, "SIGSTOP")
export const resume = ({ pid }: { readonly pid: number }): void => void process.kill(pid, "SIGCONT")

/** Memory that a process occupies, in KiB. */
export const residentKib = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1])

export type Role = "api" | "projection" | "sequencer"

const STOP_MS = 15_000

/** SIGTERM, and SIGKILL for whoever can't hear it any more. */
const end = async (one: Started): Promise<void> => {
  if (one.process.exitCode !== null || one.process.signalCode !== null) return
  resume(one)
  const stopped = await Promise.race([one.stop().then(() => true), sleep(STOP_MS, false)])
  if (!stopped) await one.kill()
}

/** With FAULT_LOGS, a folder: what every process said, for whoever looks for a cause. */
export const keepLogs = (name: string, processes: ReadonlyArray<Started>): void => {
  const folder = process.env["FAULT_LOGS"]
  if (folder === undefined) return
  for (const { output, pid } of processes) {
    writeFileSync(join(folder, `${name}-${pid}.log`), output())
  }
}

let count = 0

export class Parts implements Target {
  readonly topicPrefix = `fault${process.pid}x${count++}`
  readonly apis: Array<Started> = []
  readonly sequencers: Array<Started> = []
  readonly #folder = freshFolder("fault")
  readonly #signingKey = signingKeyIn(this.#folder)
  readonly #all: Array<Started> = []
  /** Where the other processes find the store again after it was away. */
  #storePort = 0
  store!: Started
  projection!: Started

  static async start(sequencers: number): Promise<Parts> {
    const parts = new Parts()
    parts.#storePort = await freePort()
    await parts.startStore()
    const [projection] = await Promise.all([
      parts.startRole("projection"),
      ...Array.from({ length: sequencers }, async () => {
        parts.sequencers.push(await parts.startRole("sequencer"))
      })
    ])
    parts.projection = projection
    parts.apis.push(...(await Promise.all([parts.startRole("api"), parts.startRole("api")])))
    return parts
  }

  urls = (): ReadonlyArray<string> => this.apis.map(({ url }) => url)
  bootstrap = (): string => inject("bootstrap")

  async startStore(): Promise<void> {
    this.store = await this.#start({
      ALK_ROLES: "store",
      ALK_DATA_DIR: this.#folder,
      ALK_STORE_PORT: String(this.#storePort),
      ALK_EMBEDDED_OPEN: "true"
    })
  }

  startRole(role: Role, environment: Readonly<Record<string, string>> = {}): Promise<Started> {
    return this.#start({
      ALK_ROLES: role,
      CLICKHOUSE_URL: `http://127.0.0.1:${this.#storePort}`,
      ...environment
    })
  }

  async #start(environment: Readonly<Record<string, string>>): Promise<Started> {
    const started = await start({
      ALK_SECRET: TEST_SECRET,
      ALK_TOPIC_PREFIX: this.topicPrefix,
      ALK_PARTITIONS: "2",
      ALK_REPLICATION: "1",
      ALK_ADMIN_TOKEN: ADMIN_TOKEN,
      ALK_SIGNING_KEY_FILE: this.#signingKey,
      ALK_BOOTSTRAP_KEYS: bootstrapKeys,
      KAFKA_BROKERS: this.bootstrap(),
      ...environment
    })
    this.#all.push(started)
    return started
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all.filter((one) => one !== this.store).map(end))
    await end(this.store)
    keepLogs(this.topicPrefix, this.#all)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** A test on parts of its own, which end with it. */
export const withParts =
  (sequencers: number, test: (parts: Parts) => Promise<void>) => async (): Promise<void> => {
    const parts = await Parts.start(sequencers)
    try {
      await test(parts)
    } finally {
      await parts.stop()
    }
  }
