/** Ids and keys: their forms, what they are derived from, and what must not pass for one. */
import { createHash, createHmac } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  derivedUuid,
  isApiKeyForm,
  isClientId,
  isTenantId,
  makeReceiptId,
  newApiKey,
  randomHex,
  SYSTEM_TENANT,
  sha256Hex,
  uuidv7,
  verifyReceiptId
} from "../../src/domain/Identifiers.ts"
import { ID_LENGTH_MAX } from "../../src/domain/IdForms.ts"

const uuidForm = (version: number) =>
  new RegExp(`^[0-9a-f]{8}-[0-9a-f]{4}-${version}[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

const SECRET = "a secret that all processes share"

describe("uuidv7", () => {
  it("is a UUID of version 7 that holds the time of its making", () => {
    const before = Date.now()
    const id = uuidv7()
    assert.match(id, uuidForm(7))
    const made = Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)
    assert.isTrue(made >= before && made <= Date.now())
  })

  it("never repeats, through many refills of the random pool", () => {
    const ids = new Set(Array.from({ length: 5_000 }, uuidv7))
    assert.strictEqual(ids.size, 5_000)
    assert.strictEqual(new Set(Array.from({ length: 5_000 }, randomHex)).size, 5_000)
  })
})

describe("randomHex", () => {
  it("uses every digit in every place", () => {
    const samples = Array.from({ length: 2_000 }, randomHex)
    for (let place = 0; place < 32; place++) {
      assert.strictEqual(new Set(samples.map((hex) => hex[place])).size, 16)
    }
    assert.isTrue(samples.every((hex) => /^[0-9a-f]{32}$/.test(hex)))
  })
})

describe("derivedUuid", () => {
  it("is version 8 over SHA-256 of the length-prefixed parts", () => {
    const hash = createHash("sha256").update("4:acme3:é1").digest("hex")
    const id = derivedUuid("acme", "é1")
    assert.match(id, uuidForm(8))
    const plain = id.replaceAll("-", "")
    assert.strictEqual(plain.slice(0, 12), hash.slice(0, 12))
    assert.strictEqual(plain.slice(13, 16), hash.slice(13, 16))
    assert.strictEqual(plain.slice(17), hash.slice(17, 32))
    const variants = new Set(Array.from({ length: 200 }, (_, index) => derivedUuid(`${index}`)[19]))
    assert.deepStrictEqual([...variants].sort(), ["8", "9", "a", "b"])
  })

  it("is the same for the same parts only, wherever they are cut", () => {
    const parts = fc.array(fc.constantFrom("", "a", "b", "1:", "ab", "2:ab"), { maxLength: 4 })
    fc.assert(
      fc.property(parts, parts, (left, right) => {
        const equal = JSON.stringify(left) === JSON.stringify(right)
        assert.strictEqual(derivedUuid(...left) === derivedUuid(...right), equal)
      })
    )
  })
})

describe("isClientId", () => {
  it.each([
    "a",
    " ",
    "user_1",
    "é",
    "日本",
    "😀".repeat(ID_LENGTH_MAX),
    "/%?#",
    "\u2028",
    "\u00a0"
  ])("takes %j", (id) => assert.isTrue(isClientId(id)))

  it.each([
    "",
    "x".repeat(257),
    "😀".repeat(257),
    "a\u0000",
    "a\n",
    "\t",
    "\u001f",
    "\u007f",
    "\u0080",
    "\u009f",
    "\ud800",
    "a\udc00b"
  ])("refuses %j", (id) => assert.isFalse(isClientId(id)))
})

describe("isTenantId", () => {
  it.each(["a", "0", "acme", "acme-2_b", "x".repeat(63)])("takes %s", (id) =>
    assert.isTrue(isTenantId(id))
  )

  it.each(["", "-a", "_a", SYSTEM_TENANT, "Acme", "a.b", "a b", "é", "x".repeat(64), "a\n"])(
    "refuses %j",
    (id) => assert.isFalse(isTenantId(id))
  )
})

describe("receipt ids", () => {
  const uuid = "01890a5d-ac96-774b-bcce-b302099a8057"

  it("carry the UUID and the first half of an HMAC-SHA256", () => {
    const id = makeReceiptId(SECRET, "acme", uuid)
    const plain = uuid.replaceAll("-", "")
    const mac = createHmac("sha256", SECRET).update(`alk-receipt\nacme\n${plain}`).digest("hex")
    assert.strictEqual(id, `rcp_${plain}${mac.slice(0, 20)}`)
  })

  it("are recognised with the same secret and tenant only", () => {
    const id = makeReceiptId(SECRET, "acme", uuid)
    assert.isTrue(verifyReceiptId(SECRET, "acme", id))
    assert.isFalse(verifyReceiptId(SECRET, "acm", id))
    assert.isFalse(verifyReceiptId("another secret", "acme", id))
  })

  it("are refused when any character differs", () => {
    const id = makeReceiptId(SECRET, "acme", uuid)
    for (let place = 0; place < id.length; place++) {
      const other = id[place] === "0" ? "1" : "0"
      const changed = id.slice(0, place) + other + id.slice(place + 1)
      assert.isFalse(verifyReceiptId(SECRET, "acme", changed))
    }
  })

  it.each(["", "rcp_", "rcp_1", "RCP_", `${makeReceiptId(SECRET, "acme", uuid)}0`, "é".repeat(56)])(
    "refuses %j",
    (id) => assert.isFalse(verifyReceiptId(SECRET, "acme", id))
  )

  it("are refused in upper case", () => {
    const id = makeReceiptId(SECRET, "acme", uuid)
    assert.isFalse(verifyReceiptId(SECRET, "acme", `rcp_${id.slice(4).toUpperCase()}`))
  })
})

describe("API keys", () => {
  it.each(["alk_live_", "svc_live_"] as const)("are %s and 43 base62 characters", (prefix) => {
    const key = newApiKey(prefix)
    assert.match(key, new RegExp(`^${prefix}[0-9A-Za-z]{43}$`))
    assert.isTrue(isApiKeyForm(key))
  })

  it("are all different and use every character", () => {
    const keys = Array.from({ length: 500 }, () => newApiKey("alk_live_"))
    assert.strictEqual(new Set(keys).size, 500)
    const used = new Set(keys.flatMap((key) => [...key.slice("alk_live_".length)]))
    assert.strictEqual(used.size, 62)
  })

  it.each([
    "",
    "alk_live_",
    `alk_test_${"a".repeat(43)}`,
    `alk_live_${"a".repeat(31)}`,
    `alk_live_${"a".repeat(129)}`,
    `alk_live_${"a".repeat(42)}-`,
    ` alk_live_${"a".repeat(43)}`,
    `alk_live_${"a".repeat(43)}\n`,
    "a".repeat(52)
  ])("have another form than %j", (text) => assert.isFalse(isApiKeyForm(text)))

  it.each([`svc_live_${"a".repeat(32)}`, `alk_live_${"Z9".repeat(64)}`])("may be %s", (text) =>
    assert.isTrue(isApiKeyForm(text))
  )
})

describe("sha256Hex", () => {
  it("hashes the UTF-8 bytes", () => {
    assert.strictEqual(sha256Hex("日本"), createHash("sha256").update("日本", "utf8").digest("hex"))
  })
})
