/**
 * What becomes of three brokers under load: nothing that was acknowledged is lost, doubled or out of
 * order when any one of them is killed, loses its disk or fills it up, freezes, is cut off or slow.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { Load } from "../faults/Load.ts"
import { judge } from "../faults/Oracle.ts"
import { pause, resume, TENANTS } from "../faults/Parts.ts"
import { assertWritable } from "../faults/Scenarios.ts"
import { Subscriber } from "../faults/Subscriber.ts"
import { type Broker, processOf } from "./Brokers.ts"
import { type Cluster, PARTITIONS, withCluster } from "./Cluster.ts"

/** Milliseconds that surely outlast the session of a broker (4 s). */
const BEYOND_SESSION_MS = 8_000
/** Requests that are acknowledged before the next fault: the load is really running again. */
const BETWEEN = 20
const MORE_MS = 120_000
const SMALL_DISK_BYTES = 1_073_741_824

/** One fault after the other under load, and then the oracle. */
const underLoad = (
  faults: (cluster: Cluster, load: Load) => Promise<void>
): (() => Promise<void>) =>
  withCluster(async (cluster) => {
    const load = new Load(cluster, { tenants: TENANTS, pauseMs: 50 })
    const subscribers = TENANTS.map((tenant) => new Subscriber(cluster, tenant))
    load.begin()
    await load.more(BETWEEN, MORE_MS)
    await faults(cluster, load)
    await cluster.brokers.whole()
    await load.more(BETWEEN, MORE_MS)
    await load.end()
    await assertWritable(cluster, load, TENANTS)
    await judge(cluster, load, subscribers)
  })

describe("three brokers", () => {
  it(
    "each killed and back, so the active controller too",
    underLoad(async ({ brokers }, load) => {
      const killAndBack = async (broker: Broker) => {
        await brokers.kill(broker)
        // Two copies are left, as many as an acknowledgement needs.
        await load.more(BETWEEN, MORE_MS)
        brokers.begin(broker)
        await brokers.whole()
      }
      for (const broker of brokers.all) await killAndBack(broker)
    }),
    900_000
  )

  it(
    "each without its disk and back",
    underLoad(async ({ brokers }, load) => {
      for (const broker of brokers.all) {
        await brokers.kill(broker)
        await brokers.loseDisk(broker)
        await load.more(BETWEEN, MORE_MS)
        brokers.begin(broker)
        await brokers.whole()
      }
    }),
    900_000
  )

  it(
    "one on a disk that fills up, and back with a new one",
    underLoad(async ({ brokers }, load) => {
      const [, broker] = brokers.all as [Broker, Broker]
      await brokers.stop(broker)
      brokers.beginOnSmallDisk(broker, SMALL_DISK_BYTES)
      await brokers.whole()
      await load.more(BETWEEN, MORE_MS)
      brokers.fillDisk(broker)
      // Kafka ends a broker that can't write to its only folder.
      await brokers.ended(broker)
      await load.more(BETWEEN, MORE_MS)
      await brokers.loseDisk(broker)
      brokers.begin(broker)
      await brokers.whole()
    }),
    900_000
  )

  it(
    "restarted one after the other",
    underLoad(async ({ brokers }, load) => {
      for (const broker of brokers.all) {
        await brokers.stop(broker)
        await load.more(BETWEEN, MORE_MS)
        brokers.begin(broker)
        await brokers.whole()
      }
    }),
    900_000
  )

  it(
    "one frozen beyond its session, one cut off from clients and peers, all of them slow",
    underLoad(async ({ brokers }, load) => {
      const [first, second] = brokers.all as [Broker, Broker]
      pause(processOf(first))
      await sleep(BEYOND_SESSION_MS)
      resume(processOf(first))
      await brokers.whole()
      await load.more(BETWEEN, MORE_MS)

      for (const link of [second.clients, second.peers]) link.cut()
      await sleep(BEYOND_SESSION_MS)
      for (const link of [second.clients, second.peers]) link.heal()
      await brokers.whole()
      await load.more(BETWEEN, MORE_MS)

      for (const { clients, peers } of brokers.all) {
        clients.delayMs = 50
        peers.delayMs = 50
      }
      await load.more(BETWEEN, MORE_MS)
      for (const { clients, peers } of brokers.all) {
        clients.delayMs = 0
        peers.delayMs = 0
      }
    }),
    900_000
  )

  it(
    "given other partitions while they are written",
    underLoad(async ({ brokers, topicPrefix }, load) => {
      for (const replicas of [
        [1, 2],
        [2, 3],
        [3, 1, 2]
      ]) {
        for (const kind of ["events", "commands", "state", "receipts"]) {
          await brokers.reassign(`${topicPrefix}.${kind}`, PARTITIONS, replicas)
        }
        await brokers.whole()
        await load.more(BETWEEN, MORE_MS)
        for (const found of await brokers.replicasOf(`${topicPrefix}.events`)) {
          assert.deepStrictEqual(found, [...replicas].sort())
        }
      }
    }),
    900_000
  )
})
