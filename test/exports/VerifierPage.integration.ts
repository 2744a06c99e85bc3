/** The page in a pack: its own cryptography, and what it shows and never asks for. */
import { execFileSync } from "node:child_process"
import { createHash, createPublicKey, generateKeyPairSync, sign } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { verifierFiles } from "../../src/adapters/esbuild/PackVerifiersBundle.ts"
import { Sha256 } from "../../src/domain/Sha256ByHand.ts"
import { sha512, verifyByHand } from "../../src/exports/checker/Ed25519ByHand.ts"
import { packAssets } from "../../src/exports/pack/PackAssets.ts"
import { TestChain } from "./support/Chains.ts"
import { PackEditor } from "./support/PackEditor.ts"
import { otherSigner, PackWorld, signer } from "./support/PackWorld.ts"
import { VerifierPage } from "./support/VerifierPage.ts"

/** Milliseconds; many times what a check needs on a busy machine. */
const CHANGED_MS = 120_000

const assets = packAssets(await verifierFiles())
const asset = (name: string): string =>
  assets.find((found) => found.name === name)!.content.toString()

/** Vectors 1, 2, 3 of RFC 8032, section 7.1, and the one over a hash: key, message, signature. */
const rfcVectors: ReadonlyArray<readonly [string, string, string]> = [
  [
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "",
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
  ],
  [
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    "72",
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
  ],
  [
    "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    "af82",
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
  ],
  [
    "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704"
  ]
]

/** Signatures that must not pass: each with what is wrong with it. */
const forgeries = (): Array<readonly [string, string, string]> => {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const little = (value: bigint) =>
    Buffer.from(value.toString(16).padStart(64, "0"), "hex").reverse()
  return rfcVectors.flatMap(([key, message, signature]) => {
    const bytes = Buffer.from(signature, "hex")
    const scalar = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`)
    const flipped = Buffer.from(bytes)
    flipped[5] = flipped[5]! ^ 4
    // The same signature with the order added: valid in the equation, refused by the RFC.
    const malleable = Buffer.concat([bytes.subarray(0, 32), little(scalar + order)])
    return [
      [key, `${message}00`, signature],
      [key, message, flipped.toString("hex")],
      [key, message, malleable.toString("hex")],
      [rfcVectors[0]![0] === key ? rfcVectors[1]![0] : rfcVectors[0]![0], message, signature],
      ["f".repeat(64), message, signature],
      [key, message, signature.slice(2)]
    ] as const
  })
}

const ownVectors = (count: number): Array<readonly [string, string, string]> =>
  Array.from({ length: count }, (_, at) => {
    const { privateKey } = generateKeyPairSync("ed25519")
    const raw = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(12)
    const message = createHash("sha512")
      .update(`${at}`)
      .digest()
      .subarray(0, at * 3)
    const signature = sign(null, message, privateKey)
    return [raw.toString("hex"), message.toString("hex"), signature.toString("hex")] as const
  })

describe("cryptography by hand", () => {
  const hex = (text: string) => Uint8Array.from(Buffer.from(text, "hex"))

  it("hashes as everybody does, however the bytes are cut", () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 8 })
    fc.assert(
      fc.property(pieces, (parts) => {
        const all = Buffer.concat(parts)
        const hash = new Sha256()
        for (const part of parts) hash.update(part)
        assert.strictEqual(hash.hex(), createHash("sha256").update(all).digest("hex"))
        const long = Buffer.from(sha512(all)).toString("hex")
        assert.strictEqual(long, createHash("sha512").update(all).digest("hex"))
      }),
      { numRuns: 300 }
    )
    for (let length = 0; length < 300; length++) {
      const bytes = new Uint8Array(length).fill(length)
      const wanted = createHash("sha256").update(bytes).digest("hex")
      assert.strictEqual(new Sha256().update(bytes).hex(), wanted)
    }
  })

  it("verifies Ed25519 in JavaScript: the vectors of RFC 8032, and none that is forged", () => {
    for (const [key, message, signature] of [...rfcVectors, ...ownVectors(10)]) {
      assert.isTrue(verifyByHand(hex(key), hex(message), hex(signature)))
    }
    for (const [key, message, signature] of forgeries()) {
      assert.isFalse(verifyByHand(hex(key), hex(message), hex(signature)))
    }
  })

  it("verifies Ed25519 in Python likewise", () => {
    const folder = mkdtempSync(join(tmpdir(), "alk-ed-"))
    try {
      writeFileSync(join(folder, "verify.py"), asset("verify.py"))
      const vectors = [...rfcVectors, ...ownVectors(10)]
      const program = [
        "import json, sys, verify",
        "data = json.load(sys.stdin)",
        "print(json.dumps([verify.verify_ed25519(*map(bytes.fromhex, one)) for one in data]))"
      ].join("\n")
      const ask = (input: ReadonlyArray<readonly [string, string, string]>) =>
        JSON.parse(
          execFileSync("python3", ["-B", "-c", program], {
            cwd: folder,
            input: JSON.stringify(input)
          }).toString()
        ) as ReadonlyArray<boolean>
      assert.deepStrictEqual(
        ask(vectors),
        vectors.map(() => true)
      )
      assert.deepStrictEqual(
        ask(forgeries()),
        forgeries().map(() => false)
      )
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe("the page", () => {
  const chain = new TestChain("acme", 30)
  let folder: string
  let zip: Buffer

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "alk-page-"))
    writeFileSync(join(folder, "verify.html"), asset("verify.html"))
    zip = await new PackWorld(chain).pack()
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const file = (name: string, bytes: Buffer): string => {
    const path = join(folder, name)
    writeFileSync(path, bytes)
    return path
  }
  const opened = async <A>(
    use: (page: VerifierPage) => Promise<A>,
    options: { readonly before?: string } = {}
  ): Promise<A> => {
    const page = await VerifierPage.open(join(folder, "verify.html"), options)
    try {
      return await use(page)
    } finally {
      await page.close()
    }
  }

  it("is as loud about failure as about success, and says what it left open", async () => {
    await opened(async (page) => {
      const word = () => page.page.textContent(".verdict .word")
      const box = async () => (await page.page.locator(".verdict").boundingBox())!
      await page.check(file("good.zip", zip), { key: signer.vkey })
      assert.strictEqual(await word(), "Authentic")
      const good = await box()
      const bad = new PackEditor(zip)
        .edit("events.ndjson", (lines) => lines.toSpliced(6, 1))
        .settle()
      await page.check(file("bad.zip", bad.zip()))
      assert.strictEqual(await word(), "Tampered with")
      assert.include((await page.page.textContent(".verdict"))!, "sequence 7")
      assert.include((await page.page.textContent("table"))!, "sequence_gap")
      assert.isAtLeast((await box()).height, good.height)
      assert.include((await page.page.textContent("#result"))!, "Who made the pack")
      await page.check(file("none.zip", Buffer.from("nothing that could be a ZIP file")))
      assert.strictEqual(await word(), "Unreadable")
      // Whoever can't see the page is led to the verdict and hears it.
      assert.strictEqual(await page.page.evaluate("document.activeElement?.id"), "verdict")
      assert.strictEqual(await page.page.getAttribute("#result", "aria-live"), "polite")
      assert.deepStrictEqual(page.errors, [])
    })
  })

  it("asks for nothing but itself, and runs nothing that a pack says", async () => {
    await opened(async (page) => {
      const code = "document.title='pwned'"
      const script = `<img src=x onerror=${code}><script>${code}</script>`
      const evil = new PackEditor(zip).edit("events.ndjson", (lines) =>
        lines.with(4, lines[4]!.replace(/"hash":"[0-9a-f]+"/, `"hash":${JSON.stringify(script)}`))
      )
      await page.check(file("evil.zip", evil.settle().zip()))
      assert.include((await page.page.textContent("table"))!, script)
      assert.notStrictEqual(await page.page.title(), "pwned")
      assert.strictEqual(await page.page.locator("#result img, #result script").count(), 0)
      const others = page.requests.filter((url) => !url.endsWith("/verify.html"))
      assert.deepStrictEqual(others, [])
      const reached = await page.page.evaluate(() =>
        fetch("http://127.0.0.1:9/").then(
          () => true,
          () => false
        )
      )
      assert.isFalse(reached)
      assert.isTrue(page.errors.some((error) => error.includes("Content Security Policy")))
    })
  })

  it("checks signatures where there is no WebCrypto", async () => {
    const before = "Object.defineProperty(globalThis, 'crypto', { value: undefined })"
    await opened(
      async (page) => {
        assert.isTrue(await page.page.evaluate(() => globalThis.crypto === undefined))
        const path = file("plain.zip", zip)
        assert.strictEqual((await page.check(path, { key: signer.vkey })).verdict, "authentic")
        const report = await page.check(path, { key: otherSigner.vkey })
        assert.strictEqual(report.verdict, "tampered")
      },
      { before }
    )
  })

  it("says when a file has changed under its hands, and goes on when it is chosen again", async () => {
    await opened(async (page) => {
      const path = file("changing.zip", zip)
      assert.strictEqual((await page.check(path)).verdict, "consistent")
      writeFileSync(path, Buffer.concat([zip, Buffer.from("more")]))
      await page.page.click("#again")
      await page.page.waitForSelector("html[data-verdict=unreadable]", {
        state: "attached",
        timeout: CHANGED_MS
      })
      assert.include((await page.page.textContent(".verdict"))!, "choose it again")
      assert.strictEqual((await page.check(file("changing.zip", zip))).verdict, "consistent")
      const kept = [file("kept.txt", Buffer.from("no note"))]
      assert.strictEqual((await page.check(path, { kept })).verdict, "unreadable")
      assert.strictEqual((await page.check(path)).verdict, "consistent")
    })
  })

  it("says when a key is none, and does not pretend to have used it", async () => {
    await opened(async (page) => {
      const report = await page.check(file("plain.zip", zip), { key: "not a key" })
      assert.isTrue(await page.page.isVisible("#key-wrong"))
      assert.isTrue(report.not_established.some((line) => line.startsWith("Who made the pack")))
    })
  })
})
