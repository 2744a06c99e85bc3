/**
 * The routes of C2SP tlog-tiles over HTTP: a client made from the specification reads a whole log,
 * nothing is served beyond a signed checkpoint, or that does not lead to one.
 */
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { openNote } from "../../src/domain/chain/Checkpoint.ts"
import { askIndependentTree } from "../support/IndependentTree.ts"
import { readLog } from "../support/TlogReader.ts"
import { OTHER_KEY, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { items } from "./support/Events.ts"
import { SIGNER } from "./support/ProofDoubles.ts"
import { type Answer, TestApi } from "./support/TestApi.ts"

const PREFIX = "/v1/tlog/events"

let api: TestApi
beforeEach(async () => {
  api = await TestApi.start()
})
afterEach(() => api.stop())

const append = async (count: number): Promise<void> => {
  for (let left = count; left > 0; left -= 100) {
    const { status } = await api.call("/v1/events/batch?sync=true", {
      key: WRITE_KEY,
      json: { events: items(Math.min(left, 100)) }
    })
    assert.strictEqual(status, 200)
  }
}

const get = (path: string, key = READ_KEY) => api.call(`${PREFIX}/${path}`, { key })

const fetchOk = async (path: string): Promise<Buffer> => {
  const { bytes, status, text } = await get(path)
  assert.strictEqual(status, 200, `${path}: ${text}`)
  return bytes
}

const errorOf = ({ body, status }: Answer) => [status, body.error.code]

describe("a log", () => {
  it("is read whole by a client of the specification, whatever its size", async () => {
    let size = 0
    for (const next of [1, 255, 256, 257, 512, 700]) {
      await append(next - size)
      size = next
      const log = await readLog(fetchOk)
      const hashes = api.world.proofs.hashes.get("acme")!
      const { roots } = askIndependentTree({
        hashes,
        sizes: [size],
        inclusion: [],
        consistency: []
      })
      assert.deepStrictEqual([log.origin, log.size], ["alk/acme", size])
      assert.strictEqual(Buffer.from(log.root, "base64").toString("hex"), roots[0])
      assert.deepStrictEqual(
        log.entries.map((entry) => entry.toString("hex")),
        hashes
      )
    }
  })

  it("keeps the partial tiles of earlier checkpoints when they have grown", async () => {
    await append(300)
    const before = await readLog(fetchOk)
    assert.includeMembers([...before.paths], ["tile/entries/001.p/44", "tile/1/000.p/1"])
    const kept = await Promise.all(before.paths.map(fetchOk))
    await append(300)
    await readLog(fetchOk)
    assert.deepStrictEqual(await Promise.all(before.paths.map(fetchOk)), kept)
    // A client that asks for the full one instead finds the partial one at its beginning.
    const [partial, full] = [await fetchOk("tile/0/001.p/44"), await fetchOk("tile/0/001")]
    assert.strictEqual(full.length, 8_192)
    assert.isTrue(full.subarray(0, partial.length).equals(partial))
  })

  it("has a signed checkpoint of the whole chain, and none while that is empty", async () => {
    assert.deepStrictEqual(errorOf(await get("checkpoint")), [404, "not_found"])
    await append(3)
    const { headers, text } = await get("checkpoint")
    const opened = openNote(text, [SIGNER.vkey])
    assert("checkpoint" in opened)
    assert.deepInclude(opened.checkpoint, { origin: "alk/acme", treeSize: 3 })
    assert.strictEqual(headers["content-type"], "text/plain; charset=utf-8")
    assert.strictEqual(headers["cache-control"], "no-store")
    await append(1)
    assert.match((await get("checkpoint")).text, /^alk\/acme\n4\n/)
  })
})

describe("a tile", () => {
  it("says how long it may be kept, and for whom", async () => {
    await append(260)
    await get("checkpoint")
    for (const path of ["tile/0/000", "tile/entries/000"]) {
      const { headers } = await get(path)
      assert.strictEqual(headers["content-type"], "application/octet-stream")
      assert.strictEqual(headers["cache-control"], "private, max-age=31536000, immutable")
      assert.strictEqual(headers["vary"], "Authorization")
    }
    for (const path of ["tile/0/001.p/4", "tile/entries/001.p/4", "tile/1/000.p/1"]) {
      const { headers } = await get(path)
      assert.strictEqual(headers["cache-control"], "private, max-age=60")
      assert.strictEqual(headers["vary"], "Authorization")
    }
  })

  it("is another one for another key, for pages of other origins too", async () => {
    await api.stop()
    api = await TestApi.start({ corsOrigins: ["https://console.example"] })
    await append(1)
    await get("checkpoint")
    const { headers } = await api.call(`${PREFIX}/tile/0/000.p/1`, {
      key: READ_KEY,
      headers: { origin: "https://console.example" }
    })
    assert.sameMembers(headers["vary"]!.split(", "), ["Authorization", "Origin"])
  })

  it("is not there beyond the newest signed checkpoint", async () => {
    await append(256)
    // Nothing is signed because a tile is asked for.
    assert.deepStrictEqual(errorOf(await get("tile/0/000.p/1")), [404, "not_found"])
    await get("checkpoint")
    await append(10)
    for (const path of ["0/001.p/1", "0/000.p/256", "1/000.p/2", "1/000", "2/000.p/1", "63/000"]) {
      assert.deepStrictEqual(errorOf(await get(`tile/${path}`)), [404, "not_found"], path)
    }
    assert.deepStrictEqual(errorOf(await get("tile/entries/001.p/1")), [404, "not_found"])
    await fetchOk("tile/0/000")
    await get("checkpoint")
    await fetchOk("tile/0/001.p/10")
    assert.deepStrictEqual(errorOf(await get("tile/0/001.p/11")), [404, "not_found"])
  })

  it("has one path, with slashes as they are or percent-encoded", async () => {
    await append(5)
    await get("checkpoint")
    const tile = await fetchOk("tile/0/000.p/5")
    assert.isTrue((await fetchOk("tile/0/000.p%2F5")).equals(tile))
    const wrong = [
      ...["0/0.p/5", "00/000.p/5", "0/x000/000.p/5", "0/000.p/05", "0/000.p/5/", "0/000.p/5/1"],
      ...["0/", "64/000", "-1/000", "entries/", "entries/x/000"]
    ]
    for (const path of wrong) {
      assert.deepStrictEqual(errorOf(await get(`tile/${path}`)), [404, "not_found"], path)
    }
    const { body, status } = await api.call("/v1/tlog/other/tile/0/000.p/5", { key: READ_KEY })
    assert.deepStrictEqual([status, body.error.code], [404, "not_found"])
    const query = await get("tile/0/x001/000?width=5")
    assert.deepStrictEqual(errorOf(query), [400, "invalid_request"])
    const posted = await api.call(`${PREFIX}/tile/0/x001/000`, { method: "POST", key: READ_KEY })
    assert.deepStrictEqual([posted.status, posted.headers["allow"]], [405, "GET, HEAD"])
  })

  it("belongs to the tenant of the key, and needs the scope", async () => {
    await append(5)
    await get("checkpoint")
    for (const path of ["checkpoint", "tile/0/000.p/5", "tile/entries/000.p/5"]) {
      assert.strictEqual((await get(path)).status, 200, path)
      assert.strictEqual((await get(path, OTHER_KEY)).status, 404, path)
      assert.strictEqual((await get(path, WRITE_KEY)).status, 403, path)
      assert.strictEqual((await api.call(`${PREFIX}/${path}`)).status, 401, path)
    }
  })

  it("waits for what is on its way into the store, and is not shown of a rebuilt one", async () => {
    await append(6)
    await get("checkpoint")
    const { proofs } = api.world
    const hashes = proofs.hashes.get("acme")!
    const whole = await fetchOk("tile/0/000.p/6")
    const arriving = hashes.splice(4)
    proofs.catchUp = () => hashes.push(...arriving.splice(0))
    assert.isTrue((await fetchOk("tile/0/000.p/6")).equals(whole))
    assert.strictEqual(proofs.waited, 1)
    api.world.rebuilding = true
    assert.strictEqual((await get("tile/0/000.p/6")).status, 503)
  })
})

describe("what was tampered with", () => {
  const assertMismatch = ({ body, status }: Answer): void => {
    assert.deepStrictEqual([status, body.error.code], [503, "unavailable"])
    assert.match(body.error.message, /^checkpoint_mismatch: /)
  }

  it("is no tile: a changed hash, a missing one, a kept node that is wrong", async () => {
    await append(520)
    const log = await readLog(fetchOk)
    const hashes = api.world.proofs.hashes.get("acme")!
    const before = [...hashes]
    hashes[300] = "a".repeat(64)
    for (const path of log.paths) assertMismatch(await get(path))
    hashes.splice(0, hashes.length, ...before.toSpliced(519))
    for (const path of log.paths) assertMismatch(await get(path))
    hashes.splice(0, hashes.length, ...before)
    for (const path of log.paths) await fetchOk(path)
  })

  it("is computed anew where only what was kept of the tree is wrong", async () => {
    await append(520)
    await readLog(fetchOk)
    const { proofs } = api.world
    proofs.kept.set("8/1", Buffer.alloc(32))
    await readLog(fetchOk)
    assert.strictEqual(proofs.forgotten, 1)
  })
})
