/**
 * The line of signing keys in packs: what goes in, that both verifiers follow it as domain/KeyLine
 * defines it, and what they say of packs that a replaced key has signed.
 */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Signer, signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { endorse, openEndorsement } from "../../src/domain/chain/KeyLine.ts"
import { refusalOf } from "../../src/domain/chain/KeyStandings.ts"
import { hashesOf, inclusionParts, type TreeNode } from "../../src/domain/chain/MerkleTree.ts"
import { verifyByHand } from "../../src/exports/checker/Ed25519ByHand.ts"
import { keyLine } from "../../src/exports/checker/Keys.ts"
import * as notes from "../../src/exports/checker/Notes.ts"
import type { PackReport } from "../../src/exports/checker/Report.ts"
import { subtreesOf } from "../../src/exports/pack/PackTree.ts"
import { keysDocument } from "../../src/http/chain/PublicKeys.ts"
import { publishedKeys } from "../../src/services/checkpoints/SigningKeys.ts"
import { FactChain } from "../adapters/clickhouse/support/StoredFacts.ts"
import { readVectors } from "../support/Independent.ts"
import { KEY_LINE_VECTORS, type KeyLineVectors } from "../support/KeyLineVectors.ts"
import { TestChain } from "./support/Chains.ts"
import { sign } from "./support/PackCorpus.ts"
import { PackEditor } from "./support/PackEditor.ts"
import {
  checkpointOf,
  handOverNote,
  signer as next,
  nodeOf,
  otherSigner,
  PackWorld,
  ROTATED_AT,
  SERVICE
} from "./support/PackWorld.ts"
import { type Given, problemsOf, Verifiers } from "./support/Verifiers.ts"

const before = signerOf(SERVICE, Buffer.alloc(32, 6))
const chain = new TestChain("acme", 20)
const traces = new FactChain("acme")
traces.start("run-1")
traces.span("run-1", "span-1")
traces.endSpan("run-1", "span-1")
traces.end("run-1")
traces.start("run-2")
const facts = traces.all
const rotation = { before, events: 9, traces: 4 }

let verifiers: Verifiers
/** Made after the change of keys. */
let rotated: Buffer

beforeAll(async () => {
  verifiers = await Verifiers.open()
  rotated = await new PackWorld(chain, facts).pack({ rotation, checkpoints: [5, 14] })
})
afterAll(() => verifiers.close())

const registered = ({ keyId, publicKey, vkey }: Signer, endorsement?: string) => ({
  key_id: keyId,
  vkey,
  public_key: publicKey,
  added_at: `2026-11-1${endorsement === undefined ? 0 : 1}T00:00:00.000000Z`,
  ...(endorsement === undefined ? {} : { endorsement })
})

/** alk-keys.json after the change of keys, as a file. */
const freshKeys = (): string => {
  const keys = publishedKeys(
    [registered(before), registered(next, endorse(before, next.vkey, ROTATED_AT))],
    []
  )
  return verifiers.file("alk-keys.json", JSON.stringify(keysDocument(keys)))
}

const isOpen = ({ not_established: open }: PackReport, words: string) =>
  open.some((line) => line.includes(words))

const verdictOf = async (zip: Buffer, given: Given = {}) => {
  const report = await verifiers.check(zip, given)
  assert(report.verdict !== "unreadable")
  return report
}

/** Files of a pack changed, and its manifest signed by a key. */
const forged = (zip: Buffer, by: Signer, change: (pack: PackEditor) => void): Buffer => {
  const pack = new PackEditor(zip)
  change(pack)
  return sign(pack.settle(), "acme", by).zip()
}

/** Without the report for people, of the time before the change of keys. */
const madeBefore = (size = 9) =>
  new PackWorld(chain.branch(size), facts.slice(0, 4)).pack({ signer: before })

describe("a pack made after a change of keys", () => {
  it("holds the endorsement and the trees handed over, in the order of the keys", () => {
    const pack = new PackEditor(rotated)
    assert.deepStrictEqual(pack.lines("keys/vkeys.txt"), [before.vkey, next.vkey])
    const statement = openEndorsement(pack.text("keys/endorsement-2.txt"), before.vkey)
    assert.strictEqual(statement?.nextVkey, next.vkey)
    assert.isFalse(pack.files.has("keys/endorsement-1.txt"))
    assert.strictEqual(
      pack.text("checkpoints/hand-over-1.txt"),
      handOverNote(chain, 9, before, next)
    )
    assert.match(pack.text("checkpoints/traces-hand-over-1.txt"), /^alk\/acme\/traces\n4\n/)
    assert.strictEqual(JSON.parse(pack.text("manifest.json")).tree_signer, next.vkey)
    assert.include(pack.text("README.txt"), "hand-over-N.txt")
  })

  it("is authentic under either key and under fresh keys, and lists the line", async () => {
    for (const key of [before.vkey, next.vkey, freshKeys()]) {
      const report = await verdictOf(rotated, { key })
      assert.strictEqual(report.verdict, "authentic", key)
      assert.isTrue(report.keys.find(({ vkey }) => vkey === next.vkey)!.signs_manifest)
    }
    const { keys } = await verdictOf(rotated, { key: before.vkey })
    assert.deepStrictEqual(keys, [
      {
        name: SERVICE,
        key_id: before.keyId,
        vkey: before.vkey,
        trusted: "listed",
        pinned: true,
        endorsed_by: null,
        next: next.keyId,
        retired_at: ROTATED_AT,
        handed_over: { events: 9, traces: 4 },
        signs_manifest: false
      },
      {
        name: SERVICE,
        key_id: next.keyId,
        vkey: next.vkey,
        trusted: "endorsed",
        pinned: false,
        endorsed_by: before.keyId,
        next: null,
        retired_at: null,
        handed_over: { events: null, traces: null },
        signs_manifest: true
      }
    ])
  })

  it("is authentic with a checkpoint of the key before, and only consistent without", async () => {
    const kept = [checkpointOf(chain, 7, before).note]
    assert.strictEqual((await verdictOf(rotated, { kept })).verdict, "authentic")
    const report = await verdictOf(rotated)
    assert.strictEqual(report.verdict, "consistent")
    assert.deepStrictEqual(
      report.keys.map(({ trusted }) => trusted),
      ["root", "endorsed"]
    )
  })

  it("is tampered if the key before signed a tree beyond the one handed over", async () => {
    for (const by of [next, before]) {
      const zip = forged(rotated, by, (pack) => {
        pack.set("checkpoints/14.txt", checkpointOf(chain, 14, before).note)
      })
      const report = await verdictOf(zip, { key: freshKeys() })
      assert.deepStrictEqual(problemsOf(report), ["checkpoints/14.txt 14 checkpoint_mismatch"])
      assert.include(report.problems[0]!.actual, "when the tree had 9 leaves, not 14")
    }
  })

  it("is tampered if a tree handed over is not that of its links", async () => {
    const zip = forged(rotated, next, (pack) => {
      const other = new TestChain("acme")
      for (let n = 0; n < 9; n++) other.add({ outcome: "denied" })
      pack.set("checkpoints/hand-over-1.txt", handOverNote(other, 9, before, next))
    })
    const report = await verdictOf(zip, { key: next.vkey })
    assert.include(problemsOf(report), "checkpoints/hand-over-1.txt 9 checkpoint_mismatch")
  })

  it("shows keys that nothing endorses, and believes none of them", async () => {
    const zip = forged(rotated, otherSigner, (pack) => {
      pack.set("keys/vkeys.txt", `${before.vkey}\n${next.vkey}\n${otherSigner.vkey}\n`)
      // Signed by a key that has endorsed another one already.
      pack.set("keys/endorsement-3.txt", endorse(before, otherSigner.vkey, ROTATED_AT))
    })
    const report = await verdictOf(zip, { key: freshKeys() })
    assert.include(problemsOf(report), "manifest.sig null signature_invalid")
    assert.deepStrictEqual(
      report.keys.map(({ trusted }) => trusted),
      ["listed", "listed", "unendorsed"]
    )
    const alone = forged(rotated, otherSigner, (pack) => {
      pack.set("keys/vkeys.txt", `${before.vkey}\n${next.vkey}\n${otherSigner.vkey}\n`)
    })
    const open = await verdictOf(alone)
    assert.strictEqual(open.verdict, "consistent")
    assert.strictEqual(open.keys[2]!.trusted, "unendorsed")
    assert.isTrue(isOpen(open, `${otherSigner.keyId}: no key of the pack has endorsed it`))
  })
})

describe("a pack that a replaced key has signed", () => {
  it("is authentic under that key alone", async () => {
    const report = await verdictOf(await madeBefore(), { key: before.vkey })
    assert.strictEqual(report.verdict, "authentic")
  })

  it("is not authentic with fresh keys: the key may have signed it after that", async () => {
    const other = new TestChain("acme")
    for (let n = 0; n < 9; n++) other.add({ outcome: "denied" })
    const made = await new PackWorld(other).pack({ signer: before })
    for (const zip of [made, await madeBefore()]) {
      const report = await verdictOf(zip, { key: freshKeys() })
      assert.strictEqual(report.verdict, "consistent")
      assert.isTrue(isOpen(report, `${before.keyId}, which was replaced at ${ROTATED_AT}`))
    }
  })

  it("is not authentic where the keys only say when it was replaced", async () => {
    const { keys } = JSON.parse(readFileSync(freshKeys(), "utf8"))
    const { endorsement, endorsed_by, ...second } = keys[1]
    assert.strictEqual(endorsed_by, before.keyId)
    assert.isString(endorsement)
    const path = verifiers.file("jwks.json", JSON.stringify({ keys: [keys[0], second] }))
    assert.strictEqual((await verdictOf(await madeBefore(), { key: path })).verdict, "consistent")
    // A replaced key endorses nothing that those who know of it do not know.
    const zip = forged(await madeBefore(), otherSigner, (pack) => {
      pack.set("keys/vkeys.txt", `${before.vkey}\n${otherSigner.vkey}\n`)
      pack.set("keys/endorsement-2.txt", endorse(before, otherSigner.vkey, ROTATED_AT))
    })
    const report = await verdictOf(zip, { key: path })
    assert.deepStrictEqual(problemsOf(report), ["manifest.sig null signature_invalid"])
  })

  it("is authentic if its trees are proven to be those handed over", async () => {
    const zip = await new PackWorld(chain.branch(9)).pack({ signer: before })
    const kept = [handOverNote(chain, 9, before, next)]
    const report = await verdictOf(zip, { key: freshKeys(), kept })
    assert.strictEqual(report.verdict, "authentic")
    assert.isTrue(isOpen(report, "Its events and facts are those that the service signed"))
    // Of the trace chain nothing given shows anything.
    const half = await verdictOf(await madeBefore(), { key: freshKeys(), kept })
    assert.strictEqual(half.verdict, "consistent")
  })

  it("is not authentic if it says more than its trees show", async () => {
    const kept = [handOverNote(chain, 9, before, next)]
    const world = new PackWorld(chain.branch(9))
    const pdf = Buffer.from("%PDF-")
    const wishes = [{ pdf }, { filter: { action: "document.shared" } }] as const
    for (const wish of wishes) {
      const zip = await world.pack({ signer: before, ...wish })
      const report = await verdictOf(zip, { key: freshKeys(), kept })
      assert.strictEqual(report.verdict, "consistent")
    }
    const shorter = await new PackWorld(chain.branch(8)).pack({
      signer: before,
      filter: { toSequence: 8 }
    })
    const report = await verdictOf(shorter, { key: freshKeys(), kept })
    assert.strictEqual(report.verdict, "consistent")
  })

  it("is tampered if it goes beyond the tree that was handed over", async () => {
    const zip = await new PackWorld(chain.branch(14)).pack({ signer: before })
    const kept = [handOverNote(chain, 9, before, next)]
    const report = await verdictOf(zip, { key: freshKeys(), kept })
    assert.deepStrictEqual(problemsOf(report), ["checkpoints/14.txt 14 checkpoint_mismatch"])
  })

  it("is tampered if it holds other events than those handed over", async () => {
    const other = new TestChain("acme")
    for (let n = 0; n < 9; n++) other.add({ outcome: "denied" })
    const zip = await new PackWorld(other).pack({ signer: before })
    const kept = [handOverNote(chain, 9, before, next)]
    const report = await verdictOf(zip, { key: freshKeys(), kept })
    assert.strictEqual(report.verdict, "tampered")
  })
})

describe("an erasure behind the links of a pack", () => {
  const VICTIM = 3
  const LAST = 6
  const filter = { toSequence: LAST }

  /** A chain whose n-th event erased one of the pack. */
  const erasedAt = (sequence: number, length: number): TestChain => {
    const log = new TestChain("acme", sequence - 1)
    log.erase(VICTIM)
    while (log.length < length) log.add()
    return log
  }
  const genuine = erasedAt(11, 12)
  const invented = erasedAt(8, 8)

  const hashOf = ({ bodies }: TestChain) => {
    const hashes = bodies.map((body) => (JSON.parse(body) as { hash: string }).hash)
    return (level: number, index: number) => nodeOf(hashes, level, index)
  }

  /** The details are taken out, and an erasure that no chain has says why. */
  const excuse = (pack: PackEditor): void => {
    const size = invented.length
    pack.edit("events.ndjson", (lines) => lines.with(VICTIM - 1, invented.bodies[VICTIM - 1]!))
    pack.setLines("erasures.ndjson", [invented.bodies.at(-1)!])
    const hashes = hashesOf(inclusionParts(size - 1, size), hashOf(invented))
    const proof = hashes.map((hash) => hash.toString("hex"))
    const line = { sequence_number: size, tree_size: size, proof }
    pack.setLines("checkpoints/erasure-proofs.ndjson", [JSON.stringify(line)])
    pack.json("verification.json", (report) => Object.assign(report, { erased_events: 1 }))
    pack.json("manifest.json", ({ counts }) => Object.assign(counts, { erasures: 1 }))
  }

  const packOf = (log: TestChain, handedOver: number) =>
    new PackWorld(log).pack({
      filter,
      rotation: { before, events: handedOver },
      checkpoints: [LAST]
    })

  it("counts by a checkpoint after the change of keys, whichever key had signed it", async () => {
    for (const log of [genuine, erasedAt(8, 12)]) {
      const zip = await packOf(log, 9)
      assert.lengthOf(new PackEditor(zip).lines("checkpoints/erasure-proofs.ndjson"), 1)
      for (const key of [before.vkey, next.vkey, freshKeys()]) {
        assert.strictEqual((await verdictOf(zip, { key })).verdict, "authentic")
      }
      const old = sign(new PackEditor(zip), "acme", before).zip()
      assert.strictEqual((await verdictOf(old, { key: freshKeys() })).verdict, "authentic")
    }
  })

  it("counts by a checkpoint that was kept, as large as the tree that holds it", async () => {
    const log = erasedAt(8, 9)
    const zip = await new PackWorld(log).pack({ filter, signer: before })
    const verdict = async (...kept: ReadonlyArray<string>) =>
      (await verdictOf(zip, { key: freshKeys(), kept })).verdict
    assert.strictEqual(await verdict(checkpointOf(log, LAST, before).note), "consistent")
    assert.strictEqual(await verdict(handOverNote(log, 9, before, next)), "authentic")
  })

  it("does not count by a tree handed over that was compared with no links", async () => {
    const zip = forged(await packOf(new TestChain("acme", 12), 9), before, (pack) => {
      excuse(pack)
      pack.set("checkpoints/hand-over-1.txt", handOverNote(invented, 8, before, next))
    })
    for (const key of [freshKeys(), before.vkey, undefined]) {
      const report = await verdictOf(zip, key === undefined ? {} : { key })
      assert.deepStrictEqual(problemsOf(report), [`erasures.ndjson ${VICTIM} content_mismatch`])
    }
  })

  it("shows no origin by edges that a replaced key made up beside links of now", async () => {
    const hashes = (nodes: ReadonlyArray<TreeNode>) =>
      nodes.map(({ index, level }) => hashOf(invented)(level, index).toString("hex"))
    const zip = forged(await packOf(new TestChain("acme", 12), 4), before, (pack) => {
      excuse(pack)
      pack.set("checkpoints/hand-over-1.txt", handOverNote(invented, 8, before, next))
      pack.remove("checkpoints/12.txt")
      const right = { start: LAST, end: 8, hashes: hashes(subtreesOf(LAST, 8)) }
      pack.json("checkpoints/tree.json", (tree) => Object.assign(tree, { right }))
    })
    const report = await verdictOf(zip, { key: freshKeys() })
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(report.verdict, "consistent")
    assert.isFalse(isOpen(report, "are those that the service signed"))
  })
})

describe("the texts of the programs", () => {
  it("list the line of keys", () => {
    const path = verifiers.file("pack.zip", rotated)
    const args = [path, "--public-key", before.vkey]
    for (const [command, program] of [
      ["node", "verify.mjs"],
      ["python3", "verify.py"]
    ] as const) {
      const text = execFileSync(command, [join(verifiers.folder, program), ...args]).toString()
      assert.include(text, "\nSigning keys\n")
      assert.include(
        text,
        `  - alk+${before.keyId}: given, or known by a checkpoint that was given; replaced by `
          + `${next.keyId} at ${ROTATED_AT}; handed over at 9 events; handed over at 4 facts\n`
      )
      assert.include(
        text,
        `  - alk+${next.keyId}: endorsed by ${before.keyId}; signs manifest.json\n`
      )
    }
  })
})

describe("the page", () => {
  it("lists the line of keys", async () => {
    const path = verifiers.file("pack.zip", rotated)
    await verifiers.page.check(path, { key: before.vkey })
    const lines = await verifiers.page.page.locator(".keys li").allTextContents()
    assert.lengthOf(lines, 2)
    assert.include(lines[0], `replaced by ${next.keyId} at ${ROTATED_AT}; handed over at 9 events`)
    assert.include(lines[1], `endorsed by ${before.keyId}; signs manifest.json`)
  })

  it("says why a pack of a replaced key shows no origin", async () => {
    const path = verifiers.file("pack.zip", await madeBefore())
    await verifiers.page.check(path, { key: readFileSync(freshKeys(), "utf8") })
    const sentence = await verifiers.page.page.textContent(".sentence")
    assert.include(sentence, `its key ${before.keyId} was replaced at ${ROTATED_AT}`)
  })
})

/** What the checks of verify.mjs say of a case. */
const answerOf = async (one: KeyLineVectors["cases"][number], origin: string) => {
  const host = { verifyEd25519 }
  const keyOf = ({ vkey, ...said }: { readonly vkey: string }) => ({
    ...notes.keyOfVkey(vkey)!,
    ...said
  })
  const keys = [...one.keys.map(keyOf), ...one.pinned.map((vkey) => keyOf({ vkey }))]
  const input = { pinned: one.pinned, believesRoots: one.believes_roots }
  const line = await keyLine(keys, input, host)
  const handOvers = await Promise.all(
    one.hand_overs.map(async (text) => {
      const note = notes.checkpointOf(text)!
      return { ...note, signers: (await notes.signatureState(note, keys, host)).signers }
    })
  )
  const handOversBy = (vkey: string) => handOvers.filter(({ signers }) => signers.includes(vkey))
  const tree = { origin, handOversBy, signer: one.signer ?? undefined }
  return {
    standings: line.map(({ endorsedBy, retiredAt, trusted, vkey }) => ({
      vkey,
      trusted,
      endorsed_by: endorsedBy ?? null,
      retired_at: retiredAt ?? null
    })),
    allowed: one.checkpoints.map(
      ({ root_hash: rootHash, tree_size: treeSize, vkey }) =>
        refusalOf(line, tree, { rootHash, treeSize, vkey }) === undefined
    )
  }
}

const verifyEd25519 = async (raw: Uint8Array, message: Uint8Array, signature: Uint8Array) =>
  verifyByHand(raw, message, signature)

const PYTHON = `
import json, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
sys.dont_write_bytecode = True
import verify
vectors = json.load(open(sys.argv[2], encoding="utf-8"))
answers = []
for one in vectors["cases"]:
    def key_of(said):
        return dict(verify.key_of_vkey(said["vkey"]), **said)
    pinned = [key_of({"vkey": vkey}) for vkey in one["pinned"]]
    line = verify.key_line([key_of(key) for key in one["keys"]], pinned, one["believes_roots"])
    keys = [standing["key"] for standing in line]
    hand_overs = []
    for text in one["hand_overs"]:
        note = verify.note_of(text)
        hand_overs.append(dict(note, signers=verify.signature_state(note, keys)[1]))
    names = ("vkey", "trusted", "endorsed_by", "retired_at")
    answers.append({
        "standings": [{name: standing[name] for name in names} for standing in line],
        "allowed": [
            verify.signature_refusal(line, vectors["origin"], hand_overs, one["signer"],
                note["vkey"], note["tree_size"], note["root_hash"]) is None
            for note in one["checkpoints"]
        ],
    })
print(json.dumps(answers))
`

describe("the published cases of the line of keys", () => {
  const { cases, origin } = readVectors(KEY_LINE_VECTORS) as KeyLineVectors
  const wanted = cases.map(({ checkpoints, standings }) => ({
    standings,
    allowed: checkpoints.map(({ allowed }) => allowed)
  }))
  it("are those of verify.mjs", async () => {
    assert.deepStrictEqual(await Promise.all(cases.map((one) => answerOf(one, origin))), wanted)
  })

  it("are those of verify.py", () => {
    const args = [
      "-c",
      PYTHON,
      join(verifiers.folder, "verify.py"),
      join("schemas", "vectors", KEY_LINE_VECTORS)
    ]
    assert.deepStrictEqual(JSON.parse(execFileSync("python3", args).toString()), wanted)
  })
})
