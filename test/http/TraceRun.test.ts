/** The tests of traces from outside, over the real HTTP server and the doubles behind it. */
import { afterAll, beforeAll } from "vitest"
import type { Principal } from "../../src/actors/follower/Keys.ts"
import { allTraceTenants, traceBlackBox } from "../support/TraceBlackBox.ts"
import { World } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

const keyOf = (tenant: string): string =>
  `alk_live_${Buffer.from(tenant).toString("hex").padEnd(43, "0")}`

let api: TestApi
beforeAll(async () => {
  const principals = allTraceTenants.map((tenantId): readonly [string, Principal] => [
    keyOf(tenantId),
    { tenantId, keyId: `key of ${tenantId}`, scopes: ["read", "write"] }
  ])
  const world = new World()
  for (const [key, principal] of principals) world.principals.set(key, principal)
  api = await TestApi.start({}, world)
})
afterAll(() => api.stop())

traceBlackBox(() => ({ urls: [api.url], keyOf }), false)
