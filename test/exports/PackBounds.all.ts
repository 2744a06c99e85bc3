/**
 * What a pack claims to hold is held against what its links and trees show: packs of a part of the
 * log, told as packs of more or of less and signed again, by whoever holds a key of the service.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Signer, signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { endorse } from "../../src/domain/chain/KeyLine.ts"
import { HISTORY_TO } from "../../src/domain/Timestamp.ts"
import { keysDocument } from "../../src/http/chain/PublicKeys.ts"
import { publishedKeys } from "../../src/services/checkpoints/SigningKeys.ts"
import { TestChain } from "./support/Chains.ts"
import { sign, tracesOf } from "./support/PackCorpus.ts"
import { PackEditor } from "./support/PackEditor.ts"
import {
  checkpointOf,
  handOverNote,
  type PackWishes,
  PackWorld,
  ROTATED_AT,
  SERVICE,
  signer,
  traceCheckpointOf
} from "./support/PackWorld.ts"
import { alkVerify, type Given, problemsOf, Verifiers } from "./support/Verifiers.ts"

const COUNT = 20
const chain = new TestChain("acme", COUNT - 3)
chain.erase(3)
while (chain.length < COUNT) chain.add()
const facts = tracesOf()
const replaced = signerOf(SERVICE, Buffer.alloc(32, 6))
const rotation = { before: replaced, events: 9, traces: 4 }

let verifiers: Verifiers
/** alk-keys.json after the change of keys. */
let freshKeys: string

beforeAll(async () => {
  verifiers = await Verifiers.open()
  const registered = [replaced, signer].map(({ keyId, publicKey, vkey }, at) => ({
    key_id: keyId,
    vkey,
    public_key: publicKey,
    added_at: `2026-11-1${at}T00:00:00.000000Z`,
    ...(at === 0 ? {} : { endorsement: endorse(replaced, vkey, ROTATED_AT) })
  }))
  const document = keysDocument(publishedKeys(registered, []))
  freshKeys = verifiers.file("alk-keys.json", JSON.stringify(document))
})
afterAll(() => verifiers.close())

type Claims = Readonly<Record<string, unknown>>

/** The pack with other bounds, and other members of manifest and report, signed again. */
const retold = (zip: Buffer, bounds: Claims, claims: Claims = {}, by: Signer = signer): Buffer => {
  const pack = new PackEditor(zip)
  for (const file of ["manifest.json", "verification.json"]) {
    pack.json(file, (value) => {
      Object.assign(value["bounds"], bounds)
      for (const name of Object.keys(claims)) if (name in value) value[name] = claims[name]
    })
  }
  return sign(pack.settle(), "acme", by).zip()
}

const packOf = (wishes: PackWishes = {}, ofFacts: typeof facts = []) =>
  new PackWorld(chain, ofFacts).pack(wishes)

const verdictOf = async (zip: Buffer, given: Given = { key: signer.vkey }) => {
  const report = await verifiers.check(zip, given)
  assert(report.verdict !== "unreadable")
  return report
}

const kept = (size: number) => checkpointOf(chain, size).note

describe("a pack whose chains grow while it is made", () => {
  const heads = { events: 15, traces: 9 }
  const grown = () => packOf({ heads, facts: facts.slice(0, 9) }, facts)

  it("says where it ends, and is authentic", async () => {
    const zip = await grown()
    const pack = new PackEditor(zip)
    const manifest = JSON.parse(pack.text("manifest.json"))
    assert.strictEqual(manifest.bounds.to_sequence, 15)
    assert.strictEqual(manifest.to_trace_sequence, 9)
    assert.include(pack.text("README.txt"), ", sequences 1 to 15\n")
    assert.include(pack.text("README.txt"), "\nTraces   facts 1 to 9\n")
    const report = await verdictOf(zip, { key: signer.vkey, kept: [kept(12), kept(18)] })
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(report.verdict, "authentic")
    const ends = "The checkpoint kept-1.txt: it covers 18 events, the pack ends at 15."
    assert.include(report.not_established, ends)
    const { text } = await alkVerify([verifiers.file("grown.zip", zip)])
    assert.include(text, `${HISTORY_TO}, sequences 1 to 15\n`)
  })

  const asked: ReadonlyArray<readonly [string, PackWishes, number | null]> = [
    ["from a sequence on", { filter: { fromSequence: 4 } }, 15],
    ["up to a sequence that the chain had not", { filter: { toSequence: 18 } }, 15],
    ["up to a sequence that it had", { filter: { toSequence: 12 } }, 12],
    ["of a period", { filter: { to: "2026-01-01T00:10:00.000000Z" } }, null],
    ["of a period without an end", { filter: { from: "2026-01-01T00:10:00.000000Z" } }, 15]
  ]
  for (const [what, wishes, end] of asked) {
    it(`the same of one ${what}`, async () => {
      const zip = await packOf({ heads, ...wishes })
      const { bounds } = JSON.parse(new PackEditor(zip).text("manifest.json"))
      assert.strictEqual(bounds.to_sequence, end)
      const report = await verdictOf(zip)
      assert.deepStrictEqual(problemsOf(report), [])
      assert.strictEqual(report.verdict, "authentic")
    })
  }

  it("claims everything where they have not", async () => {
    const zip = await packOf({}, facts)
    const { bounds, to_trace_sequence: end } = JSON.parse(new PackEditor(zip).text("manifest.json"))
    assert.deepStrictEqual([bounds.to_sequence, end], [null, null])
  })

  it("is tampered if it claims everything, whatever else it holds and whoever signs", async () => {
    for (const by of [signer, replaced]) {
      const zip = await packOf({ heads, facts: facts.slice(0, 9), rotation }, facts)
      const open = retold(zip, { to_sequence: null }, { to_trace_sequence: null }, by)
      const report = await verdictOf(open, { key: freshKeys })
      assert.deepStrictEqual(problemsOf(report), [
        "checkpoints/traces-12.txt 10 tail_missing",
        `checkpoints/${COUNT}.txt 16 tail_missing`
      ])
      assert.strictEqual(report.problems[1]!.expected, "sequences 16 to 20, as the checkpoint says")
    }
  })
})

describe("a pack of a part that is told as another", () => {
  const part = { filter: { fromSequence: 4, toSequence: 13 } }
  const head13 = { head: { sequence_number: 13, hash: chain.event(13).hash, created_at: "" } }
  const cases: ReadonlyArray<readonly [string, PackWishes, Claims, Claims, ReadonlyArray<string>]> =
    [
      [
        "whole but for its end",
        { filter: { toSequence: 13 } },
        { to_sequence: null },
        head13,
        ["checkpoints/20.txt 14 tail_missing", "kept-0.txt 14 tail_missing"]
      ],
      [
        "whole but for its beginning",
        { filter: { fromSequence: 11 } },
        { from_sequence: null },
        {},
        ["links.ndjson 1 sequence_gap"]
      ],
      ["from earlier on", part, { from_sequence: 2 }, {}, ["links.ndjson 2 sequence_gap"]],
      ["from later on", part, { from_sequence: 5 }, {}, ["links.ndjson 4 content_mismatch"]],
      [
        "up to a later one",
        part,
        { to_sequence: 15 },
        head13,
        ["checkpoints/20.txt 14 tail_missing", "kept-0.txt 14 tail_missing"]
      ],
      [
        "up to a later one, of a longer log",
        part,
        { to_sequence: 15 },
        {},
        [
          "links.ndjson 14 tail_missing",
          "checkpoints/20.txt 14 tail_missing",
          "kept-0.txt 14 tail_missing"
        ]
      ],
      ["up to an earlier one", part, { to_sequence: 12 }, {}, ["links.ndjson 13 content_mismatch"]],
      [
        "all of a log that has nothing",
        { filter: { fromSequence: COUNT + 1 } },
        { from_sequence: null },
        { head: null },
        ["checkpoints/hand-over-1.txt 1 tail_missing", "kept-0.txt 1 tail_missing"]
      ],
      [
        "a period that has no end",
        { filter: { from: "2026-01-01T00:02:00.000000Z", to: "2026-01-01T00:09:00.000000Z" } },
        { to: HISTORY_TO },
        { head: { ...head13.head, sequence_number: 9, hash: chain.event(9).hash } },
        ["checkpoints/20.txt 10 tail_missing", "kept-0.txt 10 tail_missing"]
      ],
      [
        "bounds that are none",
        part,
        { to_sequence: "13" },
        {},
        ["manifest.json null content_mismatch"]
      ]
    ]
  for (const [what, wishes, bounds, claims, problems] of cases) {
    it(`is tampered, whichever key signs: ${what}`, async () => {
      for (const by of [signer, replaced]) {
        const zip = retold(await packOf({ ...wishes, rotation }), bounds, claims, by)
        const report = await verdictOf(zip, { key: freshKeys, kept: [kept(COUNT)] })
        assert.deepStrictEqual(problemsOf(report), problems)
      }
    })
  }

  it("is tampered: all facts of a log that has none, where a checkpoint covers some", async () => {
    const { note } = traceCheckpointOf(facts, "acme")
    const given = { key: signer.vkey, kept: [note] }
    const whole = await verdictOf(await packOf(), given)
    assert.deepStrictEqual(problemsOf(whole), ["kept-0.txt 1 tail_missing"])
    // A selection of events may leave them out.
    const filter = { outcome: "success" } as const
    const zip = await packOf({ filter, eventsOnly: true }, facts)
    assert.strictEqual((await verdictOf(zip, given)).verdict, "authentic")
  })
})

describe("a pack of a chain whose beginning was removed", () => {
  const REMOVED = 10
  const ours = { removedEvents: REMOVED }
  const line = "events up to sequence 10 were removed by retention, as verification.json says"

  it("begins after that, and says what it does not hold", async () => {
    for (const given of [{ key: signer.vkey }, { kept: [kept(15)] }, { kept: [kept(REMOVED)] }]) {
      const report = await verdictOf(await packOf(ours), given)
      assert.deepStrictEqual(problemsOf(report), [])
      assert.strictEqual(report.verdict, "authentic")
      assert.isTrue(report.not_established.some((one) => one.includes(line)))
    }
  })

  const { pruned } = new PackWorld(chain).pruned(REMOVED) as { pruned: object }
  const other = new TestChain("acme", 2)
  while (other.length < REMOVED) other.add({ outcome: "error" })
  const { note: foreign, root_hash } = checkpointOf(other, REMOVED)
  const cases: ReadonlyArray<readonly [string, unknown, ReadonlyArray<string>]> = [
    ["nothing", undefined, ["links.ndjson 1 sequence_gap"]],
    ["null", null, ["links.ndjson 1 sequence_gap"]],
    [
      "another size than its checkpoint",
      { ...pruned, up_to_sequence: 9 },
      ["links.ndjson 1 sequence_gap", "verification.json 9 checkpoint_mismatch"]
    ],
    [
      "no checkpoint",
      { ...pruned, checkpoint: "\ud800" },
      ["links.ndjson 1 sequence_gap", "verification.json 10 checkpoint_mismatch"]
    ],
    [
      "a smaller part of it",
      { ...pruned, up_to_sequence: 5, ...rootAndNote(5) },
      ["links.ndjson 6 sequence_gap"]
    ],
    [
      "another beginning",
      { ...pruned, checkpoint: foreign, root_hash },
      ["verification.json 10 checkpoint_mismatch"]
    ]
  ]
  for (const [what, said, problems] of cases) {
    it(`is tampered if its report says of that ${what}`, async () => {
      const zip = retold(await packOf(ours), {}, { pruned: said })
      const report = await verdictOf(zip)
      assert.deepStrictEqual([...problemsOf(report)].sort(), problems)
    })
  }

  it("is not authentic by a replaced key", async () => {
    const zip = retold(await packOf({ ...ours, rotation }), {}, {}, replaced)
    const report = await verdictOf(zip, { key: freshKeys })
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(report.verdict, "consistent")
  })
})

describe("what only the signature of a pack says", () => {
  const events = "That events.ndjson leaves no event of the bounds out: it holds 4 of 4 linked"
  const executions = "That facts.ndjson leaves no execution of the period out: it holds 0 of 0"
  const short = { from: "2026-01-01T00:05:00.000000Z", to: "2026-01-01T00:08:00.000000Z" }
  const period = { from: "2026-01-01T00:01:00.000000Z", to: "2026-01-01T00:12:00.000000Z" }
  const told = async (by: Signer) =>
    retold(await packOf({ filter: short, rotation }), period, {}, by)

  it("is not established: that it leaves out nothing of a period", async () => {
    const report = await verdictOf(await told(signer), { key: freshKeys })
    assert.strictEqual(report.verdict, "authentic")
    for (const words of [events, executions]) {
      assert.isTrue(
        report.not_established.some((one) => one.startsWith(words)),
        words
      )
    }
  })

  it("is no word of a replaced key", async () => {
    const given = { key: freshKeys, kept: [handOverNote(chain, 9, replaced, signer), kept(COUNT)] }
    const report = await verdictOf(await told(replaced), given)
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(report.verdict, "consistent")
    const words = "Who made the pack, and that it leaves nothing of its bounds out"
    assert.isTrue(report.not_established.some((one) => one.startsWith(words)))
  })

  it("is not needed for sequences: the trees show all of them", async () => {
    const zip = await packOf({ filter: { fromSequence: 4, toSequence: 13 }, rotation })
    const report = await verdictOf(retold(zip, {}, {}, replaced), { key: freshKeys })
    assert.strictEqual(report.verdict, "authentic")
    const words = "the log went no further then than event 13 and fact 0"
    assert.isTrue(report.not_established.some((one) => one.includes(words)))
  })
})

/** What a checkpoint of this size says in a pruned point. */
function rootAndNote(size: number) {
  const { note, root_hash } = checkpointOf(chain, size)
  return { checkpoint: note, root_hash }
}
