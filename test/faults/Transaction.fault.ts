/**
 * A sequencer that dies, or loses its broker, at each exact step of a transaction. What was not
 * committed never existed; what was committed is never written again.
 */
import { describe, it } from "vitest"
import { apiKeys, BrokerProxy, type Moment } from "./BrokerProxy.ts"
import { Load } from "./Load.ts"
import { judge } from "./Oracle.ts"
import { Parts, pause, resume, TENANTS, until } from "./Parts.ts"
import { assertWritable } from "./Scenarios.ts"
import { Subscriber } from "./Subscriber.ts"

const { addPartitions, endTransaction, produce } = apiKeys

const moments: ReadonlyArray<readonly [string, Moment]> = [
  ["before anything is sent", { apiKey: addPartitions, side: "request" }],
  ["before the events are sent", { apiKey: produce, side: "request" }],
  ["after the events are sent", { apiKey: produce, side: "response" }],
  ["before receipts and state are sent", { apiKey: produce, side: "request", skip: 1 }],
  ["after receipts and state are sent", { apiKey: produce, side: "response", skip: 1 }],
  ["before the commit", { apiKey: endTransaction, side: "request" }],
  ["after the commit, before its answer", { apiKey: endTransaction, side: "response" }]
]

const withProxy = (test: (parts: Parts, proxy: BrokerProxy) => Promise<void>) => async () => {
  const parts = await Parts.start(0)
  const proxy = await BrokerProxy.start(parts.bootstrap())
  try {
    parts.sequencers.push(await parts.startRole("sequencer", { KAFKA_BROKERS: proxy.bootstrap }))
    await test(parts, proxy)
  } finally {
    await parts.stop()
    proxy.close()
  }
}

describe("in the middle of a transaction", () => {
  it(
    "the sequencer is killed, at each step",
    withProxy(async (parts, proxy) => {
      const load = new Load(parts, { tenants: TENANTS, senders: 1 })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      for (const [, moment] of moments) {
        await assertWritable(parts, load, TENANTS)
        const killed = proxy.at(moment, () => parts.sequencers[0]!.kill())
        load.begin()
        await killed
        parts.sequencers[0] = await parts.startRole("sequencer", {
          KAFKA_BROKERS: proxy.bootstrap
        })
        await load.more(10)
        await load.end()
      }
      await judge(parts, load, subscribers)
    }),
    300_000
  )

  it(
    "the connections are cut, at each step: the state is read again",
    withProxy(async (parts, proxy) => {
      const load = new Load(parts, { tenants: TENANTS, senders: 1 })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      for (const [, moment] of moments) {
        await assertWritable(parts, load, TENANTS)
        const cutOff = proxy.at(moment, ({ cut }) => cut())
        load.begin()
        await cutOff
        await load.more(10)
        await load.end()
      }
      await judge(parts, load, subscribers)
    }),
    300_000
  )

  it(
    "the commit's answer never comes, with the connection open",
    withProxy(async (parts, proxy) => {
      const load = new Load(parts, { tenants: TENANTS, senders: 1 })
      const swallowed = proxy.at({ apiKey: endTransaction, side: "response" }, () => undefined)
      load.begin()
      await swallowed
      await load.more(10, 90_000)
      await load.end()
      await assertWritable(parts, load, TENANTS)
      await judge(parts, load)
    })
  )

  it(
    "the sequencer freezes before its commit and another takes over: the late commit is refused",
    withProxy(async (parts, proxy) => {
      const load = new Load(parts, { tenants: TENANTS, senders: 1 })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      const [frozen] = parts.sequencers
      load.begin()
      await proxy.at({ apiKey: endTransaction, side: "request" }, async ({ pass }) => {
        pause(frozen!)
        const other = await parts.startRole("sequencer")
        await until(
          "another sequencer",
          () => other.output().split('"message":"sequencing"').length > 2
        )
        await load.more(10)
        pass()
        resume(frozen!)
      })
      await until("the frozen one stands down", () =>
        frozen!.output().includes("another sequencer has taken the partition over")
      )
      await load.more(10)
      await load.end()
      await assertWritable(parts, load, TENANTS)
      await judge(parts, load, subscribers)
    })
  )
})
