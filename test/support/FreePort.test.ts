import { existsSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { assert, describe, it } from "vitest"
import { freePort } from "./FreePort.ts"

const RANGE = "/proc/sys/net/ipv4/ip_local_port_range"

describe("a free port", () => {
  it.skipIf(!existsSync(RANGE))("is none that outgoing connections take (Linux)", async () => {
    const [low = 0, high = 0] = readFileSync(RANGE, "utf8").trim().split(/\s+/).map(Number)
    for (let n = 0; n < 50; n++) {
      const port = await freePort()
      assert.isTrue(port < low || port > high, `${port} is in ${low}-${high}`)
    }
  })

  it("is another one each time, and can be listened on", async () => {
    const ports = await Promise.all(Array.from({ length: 50 }, freePort))
    assert.lengthOf(new Set(ports), 50)
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(ports[0], "127.0.0.1", resolve))
    server.close()
  })
})
