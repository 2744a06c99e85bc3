/**
 * A broker that goes away and does not come back. Two of three copies are left, as many as an
 * acknowledgement needs: whichever broker it is, requests are acknowledged again without it. With
 * `AWAY_TIMES`, a file: how long each took, for whoever compares.
 */
import { appendFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { clientOf, pause, resume } from "../faults/Parts.ts"
import { type Broker, type Brokers, processOf } from "./Brokers.ts"
import { type Cluster, withCluster } from "./Cluster.ts"

const TENANT = "ada"
/** Requests that each API process answers while the broker is away. */
const WHILE_AWAY = 3
/** Milliseconds, far more than it takes. */
const GIVE_UP_MS = 150_000

const eventOf = (id: string) => ({
  id,
  actor: { id: "anna", type: "human" },
  action: "record.read",
  resource: { id, type: "record" },
  outcome: "success"
})

/** Until the event is in the chain. A request that is still pending is sent again, to the next process. */
const acknowledged = async (cluster: Cluster, id: string, first: number): Promise<void> => {
  const begun = Date.now()
  for (let attempt = first; ; attempt++) {
    const api = clientOf(cluster, TENANT, attempt)
    const { body, status } = await api.call("/v1/events?sync=true", { body: eventOf(id) })
    if (status === 200 || status === 201) break
    assert.isBelow(Date.now() - begun, GIVE_UP_MS, JSON.stringify(body))
  }
  const { AWAY_TIMES } = process.env
  if (AWAY_TIMES) appendFileSync(AWAY_TIMES, `${id} ${Date.now() - begun} ms\n`)
}

/** How a broker goes, and comes back when the test is done with it. */
const ways = {
  stopped: {
    go: (brokers: Brokers, broker: Broker) => brokers.stop(broker),
    come: (brokers: Brokers, broker: Broker) => brokers.begin(broker)
  },
  killed: {
    go: (brokers: Brokers, broker: Broker) => brokers.kill(broker),
    come: (brokers: Brokers, broker: Broker) => brokers.begin(broker)
  },
  frozen: {
    go: async (_: Brokers, broker: Broker) => pause(processOf(broker)),
    come: (_: Brokers, broker: Broker) => resume(processOf(broker))
  }
} as const

describe("without one of three brokers", () => {
  for (const [name, { come, go }] of Object.entries(ways)) {
    it(
      `requests are acknowledged, whichever of them is ${name}`,
      withCluster(async (cluster) => {
        const { brokers } = cluster
        await acknowledged(cluster, "before", 0)
        for (const broker of brokers.all) {
          const going = go(brokers, broker)
          await acknowledged(cluster, `${name}-${broker.id}-amid`, 0)
          await going
          for (let request = 0; request < 2 * WHILE_AWAY; request++) {
            await acknowledged(cluster, `${name}-${broker.id}-${request}`, request)
          }
          come(brokers, broker)
          await brokers.whole()
        }
      }),
      900_000
    )
  }
})
