/**
 * The examples of consumers that start at once, on the topic of a running alk: kafkajs,
 * @platformatic/kafka, and kcat where it is installed. Each finds every chain that is forged.
 */
import { afterAll, beforeAll } from "vitest"
import { describeExamples } from "./Examples.ts"
import { kafkajs, kcat, platformatic } from "./Languages.ts"
import { makeWorld, type World } from "./World.ts"

let world: World
beforeAll(async () => {
  world = await makeWorld("consumers")
})
afterAll(() => world.stop())

describeExamples([kafkajs, platformatic, kcat], () => world)
