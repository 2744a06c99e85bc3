/**
 * alk as it runs on more than one machine: three brokers with three copies of every partition, two
 * processes of each role, a store. What a client sees is what the oracle of the fault tests judges.
 */
import { rmSync } from "node:fs"
import { bootstrapKeys, keepLogs, type Target } from "../faults/Parts.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, TEST_SECRET } from "../support/Program.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"
import { Brokers } from "./Brokers.ts"

export const PARTITIONS = 2

const STOP_MS = 20_000

export class Cluster implements Target {
  readonly topicPrefix = "alk"
  readonly brokers: Brokers
  readonly apis: Array<Started> = []
  readonly #folder = freshFolder("cluster-store")
  readonly #signingKey = signingKeyIn(this.#folder)
  readonly #all: Array<Started> = []

  private constructor(brokers: Brokers) {
    this.brokers = brokers
  }

  static async start(): Promise<Cluster> {
    const cluster = new Cluster(await Brokers.start())
    try {
      const { store } = await cluster.#start({
        ALK_ROLES: "store",
        ALK_DATA_DIR: cluster.#folder,
        ALK_EMBEDDED_OPEN: "true"
      })
      const role = (name: string) => cluster.#start({ ALK_ROLES: name, CLICKHOUSE_URL: store })
      // The first one makes the topics.
      await role("sequencer")
      await Promise.all([role("sequencer"), role("projection"), role("projection")])
      cluster.apis.push(...(await Promise.all([role("api"), role("api")])))
      return cluster
    } catch (error) {
      await cluster.stop()
      throw error
    }
  }

  urls = (): ReadonlyArray<string> => this.apis.map(({ url }) => url)
  bootstrap = (): string => this.brokers.bootstrap

  async #start(environment: Readonly<Record<string, string>>): Promise<Started> {
    const started = await start({
      ALK_SECRET: TEST_SECRET,
      ALK_TOPIC_PREFIX: this.topicPrefix,
      ALK_PARTITIONS: String(PARTITIONS),
      ALK_REPLICATION: "3",
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
    const ends = this.#all.map(async (one) => {
      const timer = setTimeout(() => void one.kill(), STOP_MS)
      await one.stop()
      clearTimeout(timer)
    })
    await Promise.all(ends)
    keepLogs("cluster", this.#all)
    await this.brokers.end()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** A test on a cluster of its own, which ends with it. */
export const withCluster =
  (test: (cluster: Cluster) => Promise<void>) => async (): Promise<void> => {
    const cluster = await Cluster.start()
    try {
      await test(cluster)
    } finally {
      await cluster.stop()
    }
  }
