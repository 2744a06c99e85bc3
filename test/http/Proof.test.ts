/**
 * Checkpoints and proofs over HTTP: what is signed, what verifies, what is refused, and that
 * nothing leaves which does not lead to a signed root.
 */

import { afterEach, assert, beforeEach, describe, it } from "vitest"
import {
  exampleCheckpoint,
  exampleConsistency,
  exampleInclusion,
  exampleVkey,
  laterCheckpoint
} from "../../src/contracts/ExampleCheckpoint.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  openNote
} from "../../src/domain/chain/Checkpoint.ts"
import {
  Frontier,
  leafHash,
  verifyConsistency,
  verifyInclusion
} from "../../src/domain/chain/MerkleTree.ts"
import { LogUnavailable } from "../../src/ports/EventLog.ts"
import { ADMIN_TOKEN, OTHER_KEY, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { items } from "./support/Events.ts"
import { OTHER_SIGNER, SIGNER } from "./support/ProofDoubles.ts"
import { type Answer, TestApi } from "./support/TestApi.ts"

const CHECKPOINTS = "/v1/chain/checkpoints"
const LATEST = "/v1/chain/checkpoints/latest"
const INCLUSION = "/v1/chain/proofs/inclusion"
const CONSISTENCY = "/v1/chain/proofs/consistency"
const KEYS = "/.well-known/alk-keys.json"

const bytes = (hex: string) => Buffer.from(hex, "hex")
const bytesOf = (list: ReadonlyArray<string>) => list.map(bytes)

/** What the note says, not the fields beside it. */
const signed = (checkpoint: CheckpointRecord, vkey = SIGNER.vkey) => {
  const opened = openNote(checkpoint.note, [vkey])
  assert("checkpoint" in opened, JSON.stringify(opened))
  return opened.checkpoint
}

const assertIncludes = (body: any, sequence: number, vkey = SIGNER.vkey): void => {
  const { rootHash, treeSize } = signed(body.checkpoint, vkey)
  assert.strictEqual(body.sequence_number, sequence)
  assert.strictEqual(body.leaf_index, sequence - 1)
  assert.strictEqual(body.leaf_hash, leafHash(body.event_hash).toString("hex"))
  const claim = {
    leaf: bytes(body.leaf_hash),
    index: sequence - 1,
    size: treeSize,
    root: bytes(rootHash),
    proof: bytesOf(body.proof)
  }
  assert.isTrue(verifyInclusion(claim))
}

const assertConsistent = (body: any, vkey = SIGNER.vkey): void => {
  const [first, second] = [signed(body.first, vkey), signed(body.second, vkey)]
  assert.isTrue(
    verifyConsistency({
      first: first.treeSize,
      firstRoot: bytes(first.rootHash),
      second: second.treeSize,
      secondRoot: bytes(second.rootHash),
      proof: bytesOf(body.proof)
    })
  )
}

let api: TestApi
beforeEach(async () => {
  api = await TestApi.start()
})
afterEach(() => api.stop())

const append = async (count: number): Promise<void> => {
  for (let left = count; left > 0; left -= 100) {
    const { status } = await api.call("/v1/events/batch", {
      key: WRITE_KEY,
      json: { events: items(Math.min(left, 100)) },
      headers: { "x-service-sync": "true" }
    })
    assert.strictEqual(status, 200)
  }
}

const get = (path: string, key = READ_KEY, headers: Record<string, string> = {}) =>
  api.call(path, { key, headers })

const errorOf = ({ body, status }: Answer) => [status, body.error.code, body.error.field]

const commandsFor = () => api.world.commands.filter(({ kind }) => kind === "checkpoint").length

describe("the latest checkpoint", () => {
  it("covers the whole chain, is signed on demand and stays until the chain grows", async () => {
    assert.deepStrictEqual(errorOf(await get(LATEST)), [404, "not_found", undefined])
    await append(7)
    const { body, status } = await get(LATEST)
    assert.strictEqual(status, 200)
    assert.strictEqual(body.tree_size, 7)
    assert.deepInclude(signed(body), { origin: "alk/acme", treeSize: 7, rootHash: body.root_hash })
    assert.deepStrictEqual((await get(LATEST)).body, body)
    assert.strictEqual(commandsFor(), 1)
    await append(1)
    assert.strictEqual((await get(LATEST)).body.tree_size, 8)
    assert.strictEqual(commandsFor(), 2)
  })

  it("comes as the note itself where text is wanted", async () => {
    await append(3)
    const { body } = await get(LATEST)
    const text = await get(LATEST, READ_KEY, { accept: "text/plain" })
    assert.strictEqual(text.headers["content-type"], "text/plain; charset=utf-8")
    assert.strictEqual(text.text, body.note)
    const neither = await get(LATEST, READ_KEY, { accept: "image/png" })
    assert.deepStrictEqual(errorOf(neither), [406, "not_acceptable", "Accept"])
  })

  it("is asked for once by many at the same time", async () => {
    await append(5)
    const answers = await Promise.all(Array.from({ length: 20 }, () => get(LATEST)))
    for (const { body } of answers) assert.strictEqual(body.tree_size, 5)
    assert.strictEqual(commandsFor(), 1)
  })

  it("needs no store, but a log", async () => {
    await append(4)
    api.world.proofs.storeDown = true
    assert.strictEqual((await get(LATEST)).body.tree_size, 4)
    assert.strictEqual((await get(LATEST)).status, 200)
    assert.strictEqual(commandsFor(), 1)
    await append(1)
    api.world.refuse = new LogUnavailable({ operation: "test", cause: new Error("down") })
    const { body, headers, status } = await get(LATEST)
    assert.deepStrictEqual([status, body.error.code], [503, "unavailable"])
    assert.strictEqual(headers["retry-after"], "1")
  })

  it("belongs to the tenant of the key", async () => {
    await append(3)
    assert.strictEqual((await get(LATEST, OTHER_KEY)).status, 404)
    assert.deepStrictEqual((await get(CHECKPOINTS, OTHER_KEY)).body, { checkpoints: [] })
    assert.strictEqual((await get(`${INCLUSION}?sequence_number=1`, OTHER_KEY)).status, 404)
    await get(LATEST)
    const path = `${INCLUSION}?sequence_number=1&tree_size=3`
    assert.strictEqual((await get(path, READ_KEY)).status, 200)
    assert.strictEqual((await get(path, OTHER_KEY)).status, 404)
    assert.strictEqual((await get(LATEST, ADMIN_TOKEN)).status, 404)
  })

  it("is refused without a key and without the scope", async () => {
    for (const path of [LATEST, CHECKPOINTS, INCLUSION, CONSISTENCY]) {
      assert.strictEqual((await api.call(path)).status, 401, path)
      assert.strictEqual((await get(path, WRITE_KEY)).status, 403, path)
    }
  })
})

describe("the list of checkpoints", () => {
  it("pages from the largest tree to the smallest", async () => {
    for (let count = 0; count < 5; count++) {
      await append(2)
      await get(LATEST)
    }
    const sizes = ({ body }: Answer) =>
      body.checkpoints.map(({ tree_size }: CheckpointRecord) => tree_size)
    assert.deepStrictEqual(sizes(await get(CHECKPOINTS)), [10, 8, 6, 4, 2])
    const seen: Array<number> = []
    let path: string | undefined = `${CHECKPOINTS}?limit=2`
    while (path !== undefined) {
      const page: Answer = await get(path)
      seen.push(...sizes(page))
      path = /<([^>]+)>; rel="next"/.exec(String(page.headers["link"]))?.[1]
    }
    assert.deepStrictEqual(seen, [10, 8, 6, 4, 2])
    assert.deepStrictEqual(sizes(await get(`${CHECKPOINTS}?before_size=6`)), [4, 2])
    for (const query of ["limit=0", "limit=101", "limit=1.5", "before_size=0", "limit="]) {
      const { body, status } = await get(`${CHECKPOINTS}?${query}`)
      assert.deepStrictEqual([status, body.error.field], [400, query.split("=")[0]])
    }
  })

  it("is not shown while the view is rebuilt, or without a store", async () => {
    await append(2)
    await get(LATEST)
    api.world.rebuilding = true
    assert.strictEqual((await get(CHECKPOINTS)).status, 503)
    assert.strictEqual((await get(`${INCLUSION}?sequence_number=1`)).status, 503)
    api.world.rebuilding = false
    api.world.proofs.storeDown = true
    assert.strictEqual((await get(CHECKPOINTS)).status, 503)
  })
})

describe("an inclusion proof", () => {
  it("verifies against the signed root, for every event", async () => {
    await append(37)
    await get(LATEST)
    for (let sequence = 1; sequence <= 37; sequence++) {
      const { body, status } = await get(`${INCLUSION}?sequence_number=${sequence}`)
      assert.strictEqual(status, 200)
      assertIncludes(body, sequence)
    }
    const event = JSON.parse(api.world.bodies[11]!)
    const { body } = await get(`${INCLUSION}?sequence_number=12`)
    assert.strictEqual(body.event_hash, event.hash)
  })

  it("refers to the newest checkpoint, one made for it, or the one asked for", async () => {
    await append(5)
    const first = await get(`${INCLUSION}?sequence_number=3`)
    assertIncludes(first.body, 3)
    assert.strictEqual(first.body.checkpoint.tree_size, 5)
    await append(4)
    const held = await get(`${INCLUSION}?sequence_number=3`)
    assert.strictEqual(held.body.checkpoint.tree_size, 5)
    const made = await get(`${INCLUSION}?sequence_number=8`)
    assert.strictEqual(made.body.checkpoint.tree_size, 9)
    assertIncludes(made.body, 8)
    const older = await get(`${INCLUSION}?sequence_number=3&tree_size=5`)
    assert.strictEqual(older.body.checkpoint.tree_size, 5)
    assertIncludes(older.body, 3)
    assert.strictEqual(commandsFor(), 2)
  })

  it("is refused for what is not there", async () => {
    await append(5)
    await get(LATEST)
    await append(2)
    const refused = async (query: string) => errorOf(await get(`${INCLUSION}${query}`))
    assert.deepStrictEqual(await refused(""), [400, "invalid_request", "sequence_number"])
    for (const wrong of ["0", "-1", "x", "1.5", "99999999999999999999"]) {
      assert.deepStrictEqual(await refused(`?sequence_number=${wrong}`), [
        400,
        "invalid_request",
        "sequence_number"
      ])
    }
    assert.deepStrictEqual(await refused("?sequence_number=8"), [404, "not_found", undefined])
    assert.deepStrictEqual(await refused("?sequence_number=6&tree_size=5"), [
      400,
      "invalid_range",
      "sequence_number"
    ])
    assert.deepStrictEqual(await refused("?sequence_number=1&tree_size=4"), [
      404,
      "not_found",
      "tree_size"
    ])
    assert.deepStrictEqual(await refused("?sequence_number=1&tree_size=900"), [
      404,
      "not_found",
      "tree_size"
    ])
    assert.deepStrictEqual(await refused("?sequence_number=1&tree_size=0"), [
      400,
      "invalid_request",
      "tree_size"
    ])
  })

  it("waits for events, and checkpoints, that are on their way into the store", async () => {
    await append(6)
    const { proofs } = api.world
    const hashes = proofs.hashes.get("acme")!
    const arriving = hashes.splice(4)
    proofs.catchUp = () => hashes.push(...arriving.splice(0))
    const { body } = await get(`${INCLUSION}?sequence_number=6`)
    assertIncludes(body, 6)
    assert.strictEqual(proofs.waited, 1)
    const elsewhere = proofs.stored.splice(0)
    const other = Frontier.empty()
    for (const hash of hashes.slice(0, 2)) other.append(hash)
    elsewhere.push(makeCheckpoint(SIGNER, "alk", "acme", other, "2026-01-01T00:00:00.000000Z"))
    proofs.catchUp = () => proofs.stored.push(...elsewhere.splice(0))
    const small = await get(`${INCLUSION}?sequence_number=2&tree_size=2`)
    assertIncludes(small.body, 2)
    assert.strictEqual(proofs.forgotten, 0)
  })
})

describe("a consistency proof", () => {
  it("verifies between every two checkpoints", async () => {
    const sizes = [1, 4, 7, 8, 15, 31]
    let size = 0
    for (const next of sizes) {
      await append(next - size)
      size = next
      await get(LATEST)
    }
    for (const first of sizes) {
      const newest = await get(`${CONSISTENCY}?first=${first}`)
      assert.strictEqual(newest.body.second.tree_size, 31)
      assertConsistent(newest.body)
      for (const second of sizes.filter((one) => one >= first)) {
        const { body, status } = await get(`${CONSISTENCY}?first=${first}&second=${second}`)
        assert.strictEqual(status, 200)
        assert.deepStrictEqual([body.first.tree_size, body.second.tree_size], [first, second])
        assertConsistent(body)
      }
    }
  })

  it("is refused for sizes that make none", async () => {
    await append(4)
    await get(LATEST)
    const refused = async (query: string) => errorOf(await get(`${CONSISTENCY}${query}`))
    assert.deepStrictEqual(await refused(""), [400, "invalid_request", "first"])
    assert.deepStrictEqual(await refused("?first=0"), [400, "invalid_request", "first"])
    assert.deepStrictEqual(await refused("?first=4&second=3"), [400, "invalid_range", "first"])
    assert.deepStrictEqual(await refused("?first=3&second=4"), [404, "not_found", "first"])
    assert.deepStrictEqual(await refused("?first=4&second=9"), [404, "not_found", "second"])
  })
})

describe("what was tampered with", () => {
  const assertMismatch = ({ body, status }: Answer): void => {
    assert.deepStrictEqual([status, body.error.code], [503, "unavailable"])
    assert.match(body.error.message, /^checkpoint_mismatch: /)
    assert.notProperty(body, "proof")
  }
  const loud = () =>
    api.logs.filter(({ level, message }) => level === "Error" && /mismatch/.test(message))

  it("is no proof: a changed event, a missing one, a rewritten tail", async () => {
    await append(20)
    await get(LATEST)
    const hashes = api.world.proofs.hashes.get("acme")!
    const before = [...hashes]
    const restore = () => hashes.splice(0, hashes.length, ...before)
    hashes[4] = "a".repeat(64)
    for (const sequence of [5, 6, 20]) {
      assertMismatch(await get(`${INCLUSION}?sequence_number=${sequence}`))
    }
    assert.isAtLeast(loud().length, 1)
    restore()
    assert.strictEqual((await get(`${INCLUSION}?sequence_number=6`)).status, 200)
    hashes.splice(19)
    assertMismatch(await get(`${INCLUSION}?sequence_number=1`))
    restore()
    for (let index = 12; index < 20; index++) hashes[index] = "b".repeat(64)
    assertMismatch(await get(`${INCLUSION}?sequence_number=3`))
  })

  it("is seen against an older checkpoint when the tail was replaced and signed", async () => {
    await append(8)
    await get(LATEST)
    const hashes = api.world.proofs.hashes.get("acme")!
    const forged = Frontier.empty()
    for (let index = 0; index < 12; index++) {
      if (index > 5) hashes[index] = "c".repeat(64)
      forged.append(hashes[index]!)
    }
    const at = "2026-01-01T00:00:00.000000Z"
    api.world.proofs.stored.push(makeCheckpoint(SIGNER, "alk", "acme", forged, at))
    assertMismatch(await get(`${CONSISTENCY}?first=8&second=12`))
    assertMismatch(await get(`${INCLUSION}?sequence_number=7&tree_size=8`))
  })

  it("is computed anew, but not again and again, where what was kept is wrong", async () => {
    await append(20)
    await get(LATEST)
    const { proofs } = api.world
    proofs.kept.set("2/1", Buffer.alloc(32))
    const { body } = await get(`${INCLUSION}?sequence_number=1`)
    assertIncludes(body, 1)
    assert.strictEqual(proofs.forgotten, 1)
    proofs.hashes.get("acme")![0] = "d".repeat(64)
    for (let count = 0; count < 3; count++) {
      assertMismatch(await get(`${INCLUSION}?sequence_number=1`))
    }
    assert.strictEqual(proofs.forgotten, 2)
  })

  it("is no checkpoint: another key, another tenant's, other fields than the note", async () => {
    await append(6)
    const { body: own } = await get(LATEST)
    const { stored } = api.world.proofs
    const frontier = Frontier.empty()
    for (let index = 0; index < 9; index++) frontier.append("e".repeat(64))
    const made = (signer: typeof SIGNER, service: string, tenant: string) =>
      makeCheckpoint(signer, service, tenant, frontier, own.created_at)
    const forgeries: ReadonlyArray<CheckpointRecord> = [
      { ...made(SIGNER, "alk", "globex"), tenant_id: "acme" },
      made(SIGNER, "other", "acme"),
      { ...made(SIGNER, "alk", "acme"), root_hash: own.root_hash },
      { ...made(SIGNER, "alk", "acme"), key_id: OTHER_SIGNER.keyId },
      { ...own, tree_size: 9 },
      { ...made(SIGNER, "alk", "acme"), note: own.note },
      { ...made(SIGNER, "alk", "acme"), note: "" },
      made(OTHER_SIGNER, "alk", "acme")
    ]
    for (const forgery of forgeries) {
      stored.push(forgery)
      assertMismatch(await get(`${INCLUSION}?sequence_number=1&tree_size=9`))
      // The newest genuine one stays what it was, and no other is shown.
      assert.deepStrictEqual((await get(CHECKPOINTS)).body.checkpoints, [own])
      assert.deepStrictEqual((await get(LATEST)).body, own)
      const chain = await get("/v1/chain")
      assert.deepStrictEqual([chain.status, chain.body.length], [200, 6])
      assert.deepStrictEqual(chain.body.checkpoint, own)
      stored.pop()
      assert.strictEqual((await get(CHECKPOINTS)).status, 200)
    }
  })
})

describe("forged checkpoints beside genuine ones", () => {
  /** Checkpoints of each size from 1 on, then a forged one of some of them; `own`: the genuine ones. */
  const beside = async (sizes: ReadonlyArray<number>) => {
    const own: Array<CheckpointRecord> = []
    for (let size = 1; size <= 6; size++) {
      await append(1)
      own.unshift((await get(LATEST)).body)
    }
    const { hashes, stored } = api.world.proofs
    const forged = sizes.map((size) => {
      const tree = Frontier.empty()
      for (const hash of hashes.get("acme")!.slice(0, size)) tree.append(hash)
      for (let more = tree.size; more < size; more++) tree.append("e".repeat(64))
      return makeCheckpoint(OTHER_SIGNER, "alk", "acme", tree, own[0]!.created_at)
    })
    stored.push(...forged)
    return own
  }

  it("hide none of their size: each can be proven", async () => {
    const own = await beside([1, 2, 3, 4, 5, 6])
    for (const checkpoint of own) {
      const size = checkpoint.tree_size
      const { body } = await get(`${INCLUSION}?sequence_number=1&tree_size=${size}`)
      assert.deepStrictEqual(body.checkpoint, checkpoint)
      assertConsistent((await get(`${CONSISTENCY}?first=${size}`)).body)
    }
  })

  it.each([
    ["none of which is of a size that is signed", [7, 8, 9]],
    ["of each size", [1, 2, 3, 4, 5, 6]],
    ["of both", [2, 3, 7, 8]]
  ])("%s leave no page short", async (_, sizes) => {
    const own = await beside(sizes)
    for (const limit of [1, 2, 3, 6, 7]) {
      const listed: Array<CheckpointRecord> = []
      for (let next: string | undefined = `${CHECKPOINTS}?limit=${limit}`; next !== undefined; ) {
        const { body, headers } = await get(next)
        listed.push(...body.checkpoints)
        next = /<([^>]+)>; rel="next"/.exec(String(headers["link"]))?.[1]
      }
      assert.deepStrictEqual(listed, own)
    }
  })
})

describe("keys", () => {
  it("are public, as JWKS and as C2SP writes them, old ones too", async () => {
    api.world.proofs.vkeys.push(OTHER_SIGNER.vkey)
    const { body, headers, status } = await api.call(KEYS)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers["content-type"], "application/json")
    assert.deepStrictEqual(body.vkeys, [SIGNER.vkey, OTHER_SIGNER.vkey])
    assert.deepStrictEqual(
      body.keys.map(({ kid }: { kid: string }) => kid),
      [SIGNER.keyId, OTHER_SIGNER.keyId]
    )
    const key = await crypto.subtle.importKey("jwk", body.keys[0], "Ed25519", true, ["verify"])
    await append(2)
    const { body: latest } = await get(LATEST)
    const [text, signature] = latest.note.split(/(?<=\n)\n/)
    const raw = Buffer.from(signature.split(" ")[2], "base64").subarray(4)
    assert.isTrue(await crypto.subtle.verify("Ed25519", key, raw, Buffer.from(text)))
  })

  it("that have just been published are waited for", async () => {
    await append(2)
    const { arrivingKeys, vkeys } = api.world.proofs
    arrivingKeys.push(...vkeys.splice(0))
    assert.strictEqual((await get(LATEST)).status, 200)
    await append(1)
    vkeys.splice(0)
    const asking = get(LATEST)
    vkeys.push(SIGNER.vkey)
    assert.strictEqual((await asking).status, 200)
  })
})

describe("the chain", () => {
  it("shows its newest checkpoint, where there is one that can be read", async () => {
    assert.notProperty((await get("/v1/chain")).body, "checkpoint")
    await append(3)
    assert.notProperty((await get("/v1/chain")).body, "checkpoint")
    const { body: latest } = await get(LATEST)
    assert.deepStrictEqual((await get("/v1/chain")).body.checkpoint, latest)
    assert.strictEqual(commandsFor(), 1)
    api.world.proofs.storeDown = true
    const down = await get("/v1/chain")
    assert.deepStrictEqual([down.status, down.body.length], [200, 3])
  })
})

describe("the examples of the contract", () => {
  it("are true", () => {
    for (const one of [exampleCheckpoint, laterCheckpoint]) {
      const { origin, rootHash, treeSize } = signed(one, exampleVkey)
      assert.deepStrictEqual(
        [origin, treeSize, rootHash, one.key_id],
        ["alk/acme", one.tree_size, one.root_hash, exampleVkey.split("+")[1]]
      )
    }
    assertIncludes(exampleInclusion, 1, exampleVkey)
    assertConsistent(exampleConsistency, exampleVkey)
  })
})
