/** What a verdict says about the origin of a pack. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { verifierFiles } from "../../src/adapters/esbuild/PackVerifiersBundle.ts"
import { VERIFY_HELP } from "../../src/cli/VerifyPack.ts"
import type { PackReport } from "../../src/exports/checker/Report.ts"
import { packAssets } from "../../src/exports/pack/PackAssets.ts"
import type { VerifyReport as PackedReport } from "../../src/verify/Verifier.ts"
import { TestChain } from "./support/Chains.ts"
import { PackEditor } from "./support/PackEditor.ts"
import { checkpointOf, otherSigner, PackWorld, signer } from "./support/PackWorld.ts"
import { alkVerify, Verifiers } from "./support/Verifiers.ts"

const chain = new TestChain("acme", 20)
const ORIGIN = "Who made the pack"

let verifiers: Verifiers
let original: Buffer
/** The same events in a pack that somebody made with a key of their own. */
let foreign: Buffer

beforeAll(async () => {
  verifiers = await Verifiers.open()
  original = await new PackWorld(chain).pack()
  const world = new PackWorld(chain)
  const manifest = (pack: PackEditor) => pack.files.get("manifest.json")!
  const pack = new PackEditor(await world.pack({ signer: otherSigner }))
  assert.isAbove(manifest(pack).length, 0)
  foreign = pack.zip()
})
afterAll(() => verifiers.close())

describe("the verdict on a pack that agrees with itself", () => {
  it("is authentic under a key that was given", async () => {
    const report = await verifiers.check(original, { key: signer.vkey })
    assert.strictEqual(report.verdict, "authentic")
    assert.isFalse(report.not_established.some((line) => line.startsWith(ORIGIN)))
  })

  it("is authentic with a checkpoint that the same key signed", async () => {
    const report = await verifiers.check(original, { kept: [checkpointOf(chain, 12).note] })
    assert.strictEqual(report.verdict, "authentic")
    assert.isFalse(report.not_established.some((line) => line.startsWith(ORIGIN)))
  })

  it("is only consistent without a key or a checkpoint, and says what is missing", async () => {
    for (const zip of [original, foreign]) {
      const report = await verifiers.check(zip)
      assert.strictEqual(report.verdict, "consistent")
      assert.isTrue(report.not_established.some((line) => line.startsWith(ORIGIN)))
    }
  })

  it("is only consistent if another key signed the checkpoint that was given", async () => {
    const report = await verifiers.check(foreign, { kept: [checkpointOf(chain, 12).note] })
    assert.strictEqual(report.verdict, "consistent")
    assert.isTrue(report.not_established.some((line) => line.startsWith(ORIGIN)))
  })

  it("is tampered if another key than the given one signed it", async () => {
    const report = await verifiers.check(foreign, { key: signer.vkey })
    assert.strictEqual(report.verdict, "tampered")
  })
})

describe("exit codes", () => {
  const exitCodes = async (zip: Buffer, ...args: ReadonlyArray<string>) => {
    const path = verifiers.file("pack.zip", zip)
    const all = [path, "--json", ...args]
    const runs = [await alkVerify(all), await verifiers.node(all), await verifiers.python(all)]
    return runs.map(({ exitCode }) => exitCode)
  }
  const threeTimes = (code: number) => [code, code, code]
  const required = "--require-origin"
  const key = ["--public-key", signer.vkey]

  it("are 0 for consistent, and 3 where the origin is required", async () => {
    assert.deepStrictEqual(await exitCodes(original), threeTimes(0))
    assert.deepStrictEqual(await exitCodes(original, required), threeTimes(3))
    assert.deepStrictEqual(await exitCodes(foreign, required), threeTimes(3))
  })

  it("are 0 for authentic, required or not", async () => {
    assert.deepStrictEqual(await exitCodes(original, ...key), threeTimes(0))
    assert.deepStrictEqual(await exitCodes(original, ...key, required), threeTimes(0))
  })

  it("are 1 and 2 for tampered and unreadable, required or not", async () => {
    const tampered = new PackEditor(original).set("events.ndjson", "").zip()
    assert.deepStrictEqual(await exitCodes(tampered, required), threeTimes(1))
    assert.deepStrictEqual(await exitCodes(Buffer.from("no ZIP"), required), threeTimes(2))
  })

  it("are explained by each program and the README of the pack in the same words", async () => {
    const texts = packAssets(await verifierFiles()).filter(({ name }) =>
      /^verify\.(?:mjs|py)$/.test(name)
    )
    const told = [...texts.map(({ content }) => content.toString()), VERIFY_HELP]
    const readme = new PackEditor(original).text("README.txt")
    for (const text of [...told, readme]) {
      for (const word of ["authentic", "consistent", "tampered", "unreadable", required]) {
        assert.include(text, word)
      }
    }
    for (const line of VERIFY_HELP.split("\n").slice(-6)) {
      for (const text of told) assert.include(text, line)
    }
  })

  it("come with the words of the verdict", async () => {
    const path = verifiers.file("pack.zip", original)
    const texts = [
      (await alkVerify([path])).text,
      execFileSync("node", [join(verifiers.folder, "verify.mjs"), path]).toString(),
      execFileSync("python3", [join(verifiers.folder, "verify.py"), path]).toString()
    ]
    for (const text of texts) assert.match(text, /^CONSISTENT, ORIGIN NOT CHECKED {2}/)
    // The head hash is there to be compared, and no sentence is cut.
    const { report } = await alkVerify([path, "--json"])
    assert.notStrictEqual(report.verdict, "unreadable")
    const { head_hash, last_sequence_number, not_established } = report as PackReport
    assert.match(head_hash ?? "", /^[0-9a-f]{64}$/)
    assert.include(texts[0], `\n  head hash ${head_hash}, sequence ${last_sequence_number}\n`)
    for (const sentence of not_established) assert.include(texts[0], `  - ${sentence}\n`)
    assert.deepStrictEqual(texts, [texts[0], texts[0], texts[0]])
  })
})

describe("what the service says beside its verdict", () => {
  const ADOPTED = "alk.state was lost and made again from the topics"
  const packOf = (notices: unknown, ofTraces: unknown = undefined) => {
    const traces = { valid: true, status: "valid", breaks: [], notices: ofTraces }
    return new PackWorld(chain).pack({ report: { notices, traces } as Partial<PackedReport> })
  }
  const saidOf = async (zip: Buffer) => {
    const { not_established, verdict } = await verifiers.check(zip, { key: signer.vkey })
    assert.strictEqual(verdict, "authentic")
    return not_established.filter((line) => line.startsWith("verification.json says"))
  }

  it("is not established, of events and of facts", async () => {
    const said = [
      `verification.json says of the events: ${ADOPTED}.`,
      "verification.json says of the facts: code_of_a_later_release."
    ]
    const zip = await packOf([ADOPTED], ["code_of_a_later_release"])
    assert.deepStrictEqual(await saidOf(zip), said)
    const path = verifiers.file("pack.zip", zip)
    const texts = [
      (await alkVerify([path])).text,
      execFileSync("node", [join(verifiers.folder, "verify.mjs"), path]).toString(),
      execFileSync("python3", [join(verifiers.folder, "verify.py"), path]).toString()
    ]
    for (const line of said) assert.include(texts[0], `  - ${line}\n`)
    assert.deepStrictEqual(texts, [texts[0], texts[0], texts[0]])
    const readme = new PackEditor(zip).text("README.txt")
    assert.include(readme, `Notices  not established, as the service itself found:\n`)
    assert.include(readme, `\n         of the events: ${ADOPTED}\n`)
    assert.include(readme, "\n         of the facts: code_of_a_later_release\n")
  })

  it("is cut and escaped, whatever a pack says", async () => {
    const long = "\u{1f600}".repeat(401)
    const many = Array.from({ length: 22 }, (_, at) => `${at}`)
    const hostile = ["\u001b[2J\nAUTHENTIC\u202e\ud800", long, { code: 7 }, null]
    const zip = await packOf(hostile, many)
    const said = await saidOf(zip)
    assert.lengthOf(said, 4 + 21)
    assert.isTrue(said[1]!.endsWith(`: ${"\u{1f600}".repeat(400)}….`))
    assert.isTrue(said[2]!.endsWith(': {"code":7}.'))
    assert.strictEqual(said.at(-1), "verification.json says 2 more of the facts.")
    const path = verifiers.file("pack.zip", zip)
    const args = [join(verifiers.folder, "verify.mjs"), path]
    const text = execFileSync("node", args).toString()
    assert.include(text, "of the events: \\u001b[2J\\u000aAUTHENTIC\\u202e\\ud800.\n")
    const python = execFileSync("python3", [join(verifiers.folder, "verify.py"), path]).toString()
    assert.strictEqual(python, text)
    const changed = new PackEditor(original)
    const traces = { notices: 7 }
    const report = { ...JSON.parse(changed.text("verification.json")), notices: "alone", traces }
    changed.set("verification.json", JSON.stringify(report))
    const { not_established } = await verifiers.check(changed.zip())
    assert.include(not_established, "verification.json says of the events: alone.")
    assert.include(not_established, "verification.json says of the facts: 7.")
  })

  it("is nowhere without any", async () => {
    assert.deepStrictEqual(await saidOf(original), [])
    assert.notInclude(new PackEditor(original).text("README.txt"), "Notices")
  })
})

describe("README.txt", () => {
  it("says where the verifiers in the pack come from, and where else to get them", () => {
    const text = new PackEditor(original).text("README.txt").replaceAll(/\s+/g, " ")
    assert.include(text, "come from the maker of the pack")
    assert.include(text, "alk verify")
    assert.include(text, "release of alk")
    assert.include(text, "/.well-known/alk-keys.json")
    assert.include(text, "must come from elsewhere")
  })
})
