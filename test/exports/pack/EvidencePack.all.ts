/** What a pack holds, that it is the same each time, and that making it takes what it must. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect, Exit, Fiber, Stream } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { eventuallyAsync } from "../../support/Eventually.ts"
import { hostileItems, TestChain } from "../support/Chains.ts"
import { tracesOf } from "../support/PackCorpus.ts"
import { PackEditor } from "../support/PackEditor.ts"
import { checkpointOf, type PackWishes, PackWorld, signer } from "../support/PackWorld.ts"
import { alkVerify, problemsOf, Verifiers } from "../support/Verifiers.ts"

let verifiers: Verifiers
let folder: string

beforeAll(async () => {
  verifiers = await Verifiers.open()
  folder = mkdtempSync(join(tmpdir(), "alk-packs-"))
})
afterAll(async () => {
  await verifiers.close()
  rmSync(folder, { recursive: true, force: true })
})

const packOf = async (chain: TestChain, wishes: PackWishes = {}) =>
  new PackEditor(await new PackWorld(chain).pack(wishes))

const sequencesIn = (pack: PackEditor, file: string): ReadonlyArray<number> =>
  pack.lines(file).map((line) => (JSON.parse(line) as { sequence_number: number }).sequence_number)

const upTo = (last: number, first = 1): ReadonlyArray<number> =>
  Array.from({ length: last - first + 1 }, (_, at) => first + at)

/** A chain with erasures, hostile texts and times of all kinds. */
const mixed = (count: number): TestChain => {
  const chain = new TestChain("acme", Math.floor(count / 2))
  for (const item of hostileItems) chain.add(item)
  if (chain.length > 12) {
    chain.erase(3)
    chain.erase(12)
  }
  while (chain.length < count) chain.add()
  return chain
}

describe("a pack", () => {
  const populations: ReadonlyArray<readonly [string, () => TestChain]> = [
    ["0 events", () => new TestChain("acme")],
    ["1 event", () => new TestChain("acme", 1)],
    ["200 events, some hostile, some erased", () => mixed(200)],
    ["3,000 events", () => mixed(3_000)]
  ]
  for (const [name, make] of populations) {
    it(`of ${name} is authentic for every verifier and for sha256sum`, async () => {
      const chain = make()
      const zip = await new PackWorld(chain).pack({ pdf: Buffer.from("%PDF-1.7\n") })
      const report = await verifiers.check(zip, { key: signer.vkey })
      assert.deepStrictEqual(problemsOf(report), [])
      assert.strictEqual(report.verdict, "authentic")
      if (report.verdict === "unreadable") return
      assert.strictEqual(report.events, chain.length)
      assert.strictEqual(report.links, chain.length)
      const unpacked = new PackEditor(zip).unpack(join(folder, name.slice(0, 5).trim()))
      execFileSync("sha256sum", ["--check", "--strict", "--quiet", "sha256sums.txt"], {
        cwd: unpacked
      })
    })
  }

  it("opens with ordinary tools", async () => {
    const path = join(folder, "tools.zip")
    writeFileSync(path, await new PackWorld(mixed(50)).pack())
    const tested = execFileSync("python3", ["-m", "zipfile", "-t", path]).toString()
    assert.include(tested, "Done testing")
    execFileSync("python3", ["-m", "zipfile", "-e", path, join(folder, "tools")])
    const unpacked = join(folder, "tools")
    execFileSync("sha256sum", ["--check", "--strict", "--quiet", "sha256sums.txt"], {
      cwd: unpacked
    })
  })

  it("holds exactly these files", async () => {
    const pack = await packOf(mixed(60), { pdf: Buffer.from("%PDF"), checkpoints: [20, 40] })
    assert.deepStrictEqual(
      [...pack.files.keys()],
      [
        "evidence.pdf",
        "events.ndjson",
        "links.ndjson",
        "erasures.ndjson",
        "executions.ndjson",
        "spans.ndjson",
        "facts.ndjson",
        "trace-links.ndjson",
        "checkpoints/20.txt",
        "checkpoints/40.txt",
        "checkpoints/60.txt",
        "checkpoints/tree.json",
        "checkpoints/traces-tree.json",
        "checkpoints/erasure-proofs.ndjson",
        "keys/jwks.json",
        "keys/vkeys.txt",
        "schema/audit-event.schema.json",
        "schema/chain-link.schema.json",
        "schema/manifest.schema.json",
        "schema/trace-fact.schema.json",
        "schema/verification.schema.json",
        "verify.html",
        "verify.mjs",
        "verify.py",
        "README.txt",
        "verification.json",
        "manifest.json",
        "manifest.sig",
        "sha256sums.txt"
      ]
    )
    const manifest = JSON.parse(pack.text("manifest.json")) as { files: Array<{ name: string }> }
    const named = manifest.files.map(({ name }) => name)
    const others = [...pack.files.keys()].slice(0, -3)
    assert.deepStrictEqual(named, others)
  })

  it("leaves the PDF out if there is none", async () => {
    const pack = await packOf(mixed(5))
    assert.isFalse(pack.files.has("evidence.pdf"))
    assert.notInclude(pack.text("README.txt"), "evidence.pdf")
  })

  it("holds the stored bytes of every event, ascending, dated in the future or not", async () => {
    const chain = mixed(120)
    const pack = await packOf(chain)
    assert.deepStrictEqual(pack.lines("events.ndjson"), chain.bodies)
    assert.deepStrictEqual(sequencesIn(pack, "links.ndjson"), upTo(120))
    assert.isTrue(pack.text("events.ndjson").includes("2261-12-31T23:59:59.999999Z"))
  })

  it("satisfies its own schemas", async () => {
    const chain = mixed(80)
    const pack = new PackEditor(
      await new PackWorld(chain, tracesOf()).pack({ filter: { action: "document.read" } })
    )
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    const schema = (name: string) =>
      ajv.compile(JSON.parse(pack.text(`schema/${name}.schema.json`)) as object)
    const assertValid = (validate: ReturnType<typeof schema>, value: unknown) =>
      assert.isTrue(validate(value), JSON.stringify(validate.errors))
    assertValid(schema("manifest"), JSON.parse(pack.text("manifest.json")))
    assertValid(schema("verification"), JSON.parse(pack.text("verification.json")))
    const event = schema("audit-event")
    for (const line of pack.lines("events.ndjson")) assertValid(event, JSON.parse(line))
    for (const line of pack.lines("erasures.ndjson")) assertValid(event, JSON.parse(line))
    const link = schema("chain-link")
    for (const line of pack.lines("links.ndjson")) assertValid(link, JSON.parse(line))
    for (const line of pack.lines("trace-links.ndjson")) assertValid(link, JSON.parse(line))
    const fact = schema("trace-fact")
    for (const line of pack.lines("facts.ndjson")) assertValid(fact, JSON.parse(line))
    assert.strictEqual(pack.lines("facts.ndjson").length, 12)
  })

  it("says the same of the bounds everywhere", async () => {
    const bounds = { from: "2026-01-01T00:10:00.000000Z", to: "2026-01-01T00:20:00.000000Z" }
    const pack = await packOf(new TestChain("acme", 60), { filter: bounds })
    const manifest = JSON.parse(pack.text("manifest.json")) as { bounds: object }
    const report = JSON.parse(pack.text("verification.json")) as { bounds: object }
    assert.deepStrictEqual(manifest.bounds, report.bounds)
    assert.deepStrictEqual(manifest.bounds, { ...bounds, from_sequence: null, to_sequence: null })
    assert.include(pack.text("README.txt"), `${bounds.from} to ${bounds.to}`)
  })

  it("keeps line feeds of a client's filter from forging lines of README.txt", async () => {
    const pack = await packOf(new TestChain("acme", 3), { filter: { actorId: "x\nVerdict  fine" } })
    assert.notInclude(pack.text("README.txt").split("\n"), "Verdict  fine")
  })
})

describe("a pack of a part of the log", () => {
  const chain = new TestChain("acme", 40)
  chain.erase(15)
  while (chain.length < 70) chain.add()
  chain.erase(25)
  chain.erase(2)
  while (chain.length < 80) chain.add()

  const parts: ReadonlyArray<readonly [string, PackWishes, ReadonlyArray<number>, number]> = [
    ["by sequence", { filter: { fromSequence: 20, toSequence: 30 } }, upTo(30, 20), 11],
    ["from a sequence on", { filter: { fromSequence: 66 } }, upTo(80, 66), 15],
    ["up to a sequence", { filter: { toSequence: 33 } }, upTo(33), 33],
    [
      "by time",
      { filter: { from: "2026-01-01T00:22:00.000000Z", to: "2026-01-01T00:27:30.000000Z" } },
      upTo(27, 22),
      6
    ],
    ["by condition", { filter: { action: "alk.event.erased" } }, [41, 71, 72], 80],
    [
      "by condition and sequence",
      { filter: { outcome: "failure", fromSequence: 10, toSequence: 50 } },
      [11, 22, 33, 44],
      41
    ],
    ["where nothing matches", { filter: { actorId: "nobody" } }, [], 80],
    ["where nothing is", { filter: { from: "2200-01-01T00:00:00.000000Z" } }, [], 0]
  ]
  for (const [name, wishes, wanted, links] of parts) {
    it(`is authentic and holds what was asked for: ${name}`, async () => {
      const given = { ...wishes, checkpoints: [5, 24, 25, 50, 64] }
      const zip = await new PackWorld(chain).pack(given)
      const pack = new PackEditor(zip)
      assert.deepStrictEqual(sequencesIn(pack, "events.ndjson"), wanted)
      assert.strictEqual(pack.lines("links.ndjson").length, links)
      const report = await verifiers.check(zip, { key: signer.vkey })
      assert.deepStrictEqual(problemsOf(report), [])
      assert.strictEqual(report.verdict, "authentic")
      const doubts = report.not_established.filter((line) => line.includes("Nothing signed covers"))
      assert.deepStrictEqual(doubts, [])
    })
  }

  it("for readers of these events only, names no erasure of others and has no traces", async () => {
    const filter = { where: "sequence_number:15" }
    const facts = tracesOf()
    const whole = new PackEditor(await new PackWorld(chain, facts).pack({ filter }))
    assert.deepStrictEqual(sequencesIn(whole, "erasures.ndjson"), [41, 71, 72])
    assert.isNotEmpty(whole.lines("facts.ndjson"))
    const zip = await new PackWorld(chain, facts).pack({ filter, eventsOnly: true })
    const pack = new PackEditor(zip)
    assert.deepStrictEqual(sequencesIn(pack, "events.ndjson"), [15])
    assert.deepStrictEqual(sequencesIn(pack, "erasures.ndjson"), [41])
    for (const name of ["executions", "spans", "facts", "trace-links"]) {
      assert.isEmpty(pack.lines(`${name}.ndjson`), name)
    }
    const report = await verifiers.check(zip, { key: signer.vkey })
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(report.verdict, "authentic")
  })

  it("proves an erasure that happened behind it", async () => {
    const zip = await new PackWorld(chain).pack({ filter: { toSequence: 30 } })
    const pack = new PackEditor(zip)
    assert.deepStrictEqual(sequencesIn(pack, "erasures.ndjson"), [41, 71, 72])
    assert.deepStrictEqual(sequencesIn(pack, "checkpoints/erasure-proofs.ndjson"), [41, 71, 72])
    const without = pack
      .edit("checkpoints/erasure-proofs.ndjson", (lines) => lines.slice(1))
      .settle()
    assert.include(
      problemsOf(await verifiers.check(without.zip())),
      "erasures.ndjson 15 content_mismatch"
    )
  })

  it("names the filter that selected its events, and says what that leaves open", async () => {
    const filter = {
      actionPrefix: "document.",
      outcome: "failure",
      metadata: [{ path: "n", value: "11" }]
    } as const
    const zip = await new PackWorld(chain).pack({ filter })
    const manifest = JSON.parse(new PackEditor(zip).text("manifest.json")) as { filter: object }
    assert.deepStrictEqual(manifest.filter, {
      action: "document.*",
      outcome: "failure",
      "metadata.n": "11"
    })
    const report = await verifiers.check(zip)
    assert.isTrue(
      report.not_established.some((line) => line.includes("leaves no event of the bounds out"))
    )
  })

  it("is held against a checkpoint that ends within it, before it and behind it", async () => {
    const zip = await new PackWorld(chain).pack({ filter: { fromSequence: 20, toSequence: 30 } })
    const kept = [19, 25, 80].map((size) => checkpointOf(chain, size).note)
    assert.strictEqual((await verifiers.check(zip, { kept })).verdict, "authentic")
    const [early, late] = [10, 50].map((size) => checkpointOf(chain, size).note)
    const report = await verifiers.check(zip, { kept: [early!, late!] })
    assert.strictEqual(report.verdict, "authentic")
    const open = report.not_established.filter((line) => line.startsWith("The checkpoint"))
    assert.strictEqual(open.length, 2)
  })

  it("takes a checkpoint as the API answers it, too", async () => {
    const zip = await new PackWorld(chain).pack()
    const kept = [JSON.stringify(checkpointOf(chain, 25))]
    const report = await verifiers.check(zip, { kept })
    assert.strictEqual(report.verdict, "authentic")
    assert.isFalse(report.not_established.some((line) => line.includes("rewritten and signed")))
  })

  it("contradicts a checkpoint of another past", async () => {
    const other = chain.branch(9)
    while (other.length < 80) other.add({ outcome: "error" })
    const zip = await new PackWorld(chain).pack({ filter: { fromSequence: 20, toSequence: 30 } })
    const report = await verifiers.check(zip, { kept: [checkpointOf(other, 25).note] })
    assert.deepStrictEqual(problemsOf(report), ["kept-0.txt 25 checkpoint_mismatch"])
  })

  it("has edges that were not made up", async () => {
    const zip = await new PackWorld(chain).pack({ filter: { fromSequence: 20, toSequence: 30 } })
    const pack = new PackEditor(zip)
      .json("checkpoints/tree.json", ({ left }) => (left.hashes[0] = "0".repeat(64)))
      .settle()
    assert.include(
      problemsOf(await verifiers.check(pack.zip())),
      "checkpoints/80.txt 80 checkpoint_mismatch"
    )
  })
})

describe("a selection", () => {
  const chain = new TestChain("acme", 60)
  const filter = { actionPrefix: "document.shared" }
  const shared = Array.from({ length: 20 }, (_, at) => 3 * (at + 1))
  const hidden = 33

  it("is what the chain says, whatever the store finds", async () => {
    const world = new PackWorld(chain)
    world.hidden.add(hidden)
    assert.deepStrictEqual(
      sequencesIn(new PackEditor(await world.pack({ filter })), "events.ndjson"),
      shared
    )
  })

  it("is none once the store has changed what was verified", async () => {
    const other = chain.branch(59)
    other.add({ action: "document.read" })
    const read = (at: number) => chain.bodies[at - 1]!.replace("document.shared", "document.read")
    for (const [at, body] of [
      [hidden, read(hidden)],
      [60, read(60)],
      [60, other.bodies.at(-1)!],
      [hidden, chain.bodies[hidden - 2]!]
    ] as const) {
      const world = new PackWorld(chain)
      world.changed.set(at, body)
      const failed = await Effect.runPromiseExit(Stream.runDrain(world.stream({ filter })))
      assert.isTrue(Exit.isFailure(failed), `${at}`)
    }
  })

  it("is that of the store where the chain was found broken before", async () => {
    const world = new PackWorld(chain)
    world.changed.set(4, "{}")
    const report = { valid: false, status: "broken", breaks_total: 1 } as const
    const pack = new PackEditor(await world.pack({ filter, report }))
    assert.deepStrictEqual(sequencesIn(pack, "events.ndjson"), shared)
  })
})

describe("the same content", () => {
  const chain = mixed(150)
  const wishes = { pdf: Buffer.from("%PDF"), checkpoints: [40], spans: ['{"id":"s"}'] }

  it("gives the same bytes", async () => {
    const first = await new PackWorld(chain).pack(wishes)
    const second = await new PackWorld(chain).pack(wishes)
    assert.isTrue(first.equals(second))
  })

  it("differs by the generation time alone", async () => {
    const generatedAt = "2027-01-01T00:00:00.000000Z"
    const first = await packOf(chain, wishes)
    const second = await packOf(chain, { ...wishes, generatedAt })
    const different = [...first.files.keys()].filter(
      (name) => first.text(name) !== second.text(name)
    )
    assert.deepStrictEqual(different, [
      "verification.json",
      "manifest.json",
      "manifest.sig",
      "sha256sums.txt"
    ])
    const time = "2026-11-21T12:00:00.000000Z"
    assert.strictEqual(
      first.text("verification.json").replaceAll(time, generatedAt),
      second.text("verification.json")
    )
  })
})

describe("making a pack", () => {
  it("reads the store as fast as the pack is taken, and no faster", async () => {
    const world = new PackWorld(new TestChain("acme", 20_000))
    const total = 20_000 / 100
    let taken = 0
    let ahead = 0
    await Effect.runPromise(
      world.stream().pipe(
        Stream.runForEach((bytes) =>
          Effect.gen(function* () {
            taken += bytes.length
            // Let everything that can run without a further read run.
            for (let turn = 0; turn < 5; turn++)
              yield* Effect.promise(() => new Promise(setImmediate))
            if (taken < 300_000) ahead = Math.max(ahead, world.scans.chunks)
          })
        )
      )
    )
    assert.strictEqual(world.scans.chunks, 2 * total)
    // 300 kB of the ZIP are some 4,000 events; the rest waits in the store.
    assert.isBelow(ahead, total)
  })

  it("stops when its reader goes away", async () => {
    const world = new PackWorld(new TestChain("acme", 20_000))
    const fiber = Effect.runFork(world.stream().pipe(Stream.runForEach(() => Effect.never)))
    await eventuallyAsync("the store is read", () => world.scans.begun > 0)
    await Effect.runPromise(Fiber.interrupt(fiber))
    assert.strictEqual(world.scans.ended, world.scans.begun)
    const { chunks } = world.scans
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    assert.strictEqual(world.scans.chunks, chunks)
    assert.isBelow(chunks, 200)
  })
})

/** The three that are programs, called with the same arguments. */
const programs = async (args: ReadonlyArray<string>) => [
  await alkVerify(args),
  await verifiers.node(args),
  await verifiers.python(args)
]

describe("the verifiers", () => {
  const chain = mixed(30)

  it("check the folder that they lie in, and a folder that is named", async () => {
    const pack = await packOf(chain)
    const unpacked = pack.unpack(join(folder, "own"))
    for (const command of [
      ["node", "verify.mjs"],
      ["python3", "verify.py"]
    ]) {
      const said = execFileSync(command[0]!, [command[1]!], { cwd: unpacked }).toString()
      assert.match(said, /^CONSISTENT, ORIGIN NOT CHECKED/)
    }
    const args = [unpacked, "--json"]
    const reports = await programs(args)
    for (const { report } of reports) assert.strictEqual(report.verdict, "consistent")
    assert.deepStrictEqual(reports[1]!.report, reports[0]!.report)
    assert.deepStrictEqual(reports[2]!.report, reports[0]!.report)
  })

  it("leave files alone that are not of the pack in a folder, and say so", async () => {
    const unpacked = (await packOf(chain)).set("notes.txt", "mine").unpack(join(folder, "noted"))
    const args = [unpacked, "--json"]
    for (const { report } of await programs(args)) {
      assert.strictEqual(report.verdict, "consistent")
      assert.isTrue(report.not_established.some((line) => line.includes("notes.txt")))
    }
  })

  it("take the public key in every form that it comes in", async () => {
    const pack = await packOf(chain)
    const path = verifiers.file("forms.zip", pack.zip())
    const der = Buffer.concat([
      Buffer.from("302a300506032b6570032100", "hex"),
      Buffer.from(signer.publicKey, "base64")
    ])
    const pem = `-----BEGIN PUBLIC KEY-----\n${der.toString("base64")}\n-----END PUBLIC KEY-----\n`
    const forms = [
      signer.vkey,
      signer.publicKey,
      verifiers.file("key.pem", pem),
      verifiers.file("jwks.json", pack.text("keys/jwks.json")),
      verifiers.file("alk-keys.json", JSON.stringify({ keys: [], vkeys: [signer.vkey] }))
    ]
    for (const form of forms) {
      const args = [path, "--json", "--public-key", form]
      for (const { report } of await programs(args)) {
        assert.strictEqual(report.verdict, "authentic", form)
        assert.isFalse(report.not_established.some((line) => line.startsWith("Who made the pack")))
      }
    }
  })

  it("print what a pack says without obeying it", async () => {
    const pack = await packOf(chain)
    const evil = "\u001b[2J\u001b[32mINTACT\u0007\u202e"
    pack.edit("events.ndjson", (lines) =>
      lines.with(4, lines[4]!.replace(/"hash":"[0-9a-f]+"/, `"hash":${JSON.stringify(evil)}`))
    )
    const path = verifiers.file("evil.zip", pack.settle().zip())
    const { text } = await alkVerify([path])
    const run = (command: string, name: string) => {
      try {
        return execFileSync(command, [join(verifiers.folder, name), path]).toString()
      } catch (error) {
        return (error as { stdout: Buffer }).stdout.toString()
      }
    }
    for (const said of [text, run("node", "verify.mjs"), run("python3", "verify.py")]) {
      assert.match(said, /^TAMPERED/)
      assert.notMatch(said, /[\u0007\u001b\u202e]/)
    }
  })

  it("end with 2 and a sentence when they are called wrongly", async () => {
    const run = (command: string, args: ReadonlyArray<string>) => {
      try {
        execFileSync(command, [...args], { stdio: "pipe" })
        return 0
      } catch (error) {
        return (error as { status: number }).status
      }
    }
    const calls = [["--nonsense"], ["--public-key"], ["--public-key", "x"], ["a.zip", "b.zip"]]
    for (const args of calls) {
      assert.strictEqual(run("node", [join(verifiers.folder, "verify.mjs"), ...args]), 2)
      assert.strictEqual(run("python3", [join(verifiers.folder, "verify.py"), ...args]), 2)
    }
  })

  it("share no code with the program", () => {
    for (const name of ["verify.mjs", "verify.py", "verify.html"]) {
      const text = readFileSync(join(verifiers.folder, name), "utf8")
      const imported = [...text.matchAll(/^\s*(?:import|from) .*$/gmu)].map(([line]) => line)
      for (const line of imported) assert.notMatch(line, /src|\.ts|\.\.\//u)
    }
  })
})
