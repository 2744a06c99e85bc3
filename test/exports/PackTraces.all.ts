/**
 * Execution traces in a pack: their facts are recomputed offline, tied to signed checkpoints, and
 * what executions.ndjson and spans.ndjson say is what the facts say. Each change is named at its
 * place by all verifiers.
 */
import { Effect, Exit, Stream } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { EventFilter } from "../../src/domain/events/EventFilter.ts"
import { sha256Hex } from "../../src/domain/Identifiers.ts"
import type { JsonObject } from "../../src/domain/json/Json.ts"
import { eraseFact, parseFact } from "../../src/domain/traces/FactText.ts"
import { chunksOf } from "../../src/domain/traces/Payload.ts"
import { FactChain } from "../adapters/clickhouse/support/StoredFacts.ts"
import { TestChain } from "./support/Chains.ts"
import { PERIOD_OF_RUN_2, sign, tracesOf } from "./support/PackCorpus.ts"
import { PackEditor } from "./support/PackEditor.ts"
import { otherSigner, PackWorld, signer, traceCheckpointOf } from "./support/PackWorld.ts"
import { type Given, problemsOf, type Report, Verifiers } from "./support/Verifiers.ts"

const FACTS = "facts.ndjson"
const LINKS = "trace-links.ndjson"
const EXECUTIONS = "executions.ndjson"
const SPANS = "spans.ndjson"
const TENANT = "acme"

const facts = tracesOf()
const world = new PackWorld(new TestChain(TENANT, 4), facts)

let verifiers: Verifiers
let original: Buffer

beforeAll(async () => {
  verifiers = await Verifiers.open()
  original = await world.pack({ traceCheckpoints: [5, 9] })
})
afterAll(() => verifiers.close())

const check = (pack: PackEditor, given: Given = {}): Promise<Report> =>
  verifiers.check(pack.zip(), given)

/** What is found in a pack that the service's key has signed: what no signature would show. */
const foundIn = async (change: (pack: PackEditor) => unknown): Promise<ReadonlyArray<string>> => {
  const pack = new PackEditor(original)
  change(pack)
  const report = await check(sign(pack.settle(), TENANT), { key: signer.vkey })
  return problemsOf(report)
}

const line = (pack: PackEditor, file: string, at: number, change: (text: string) => string) =>
  pack.edit(file, (lines) => lines.with(at, change(lines[at]!)))

describe("a pack with traces", () => {
  it("holds every fact and link, and is authentic under the key", async () => {
    const pack = new PackEditor(original)
    assert.deepStrictEqual(
      pack.lines(FACTS),
      facts.map(({ body }) => body)
    )
    assert.strictEqual(pack.lines(LINKS).length, facts.length)
    for (const name of ["5", "9", `${facts.length}`]) {
      assert.isTrue(pack.files.has(`checkpoints/traces-${name}.txt`))
    }
    const manifest = JSON.parse(pack.text("manifest.json"))
    assert.deepInclude(manifest.counts, { facts: 12, trace_links: 12, executions: 3, spans: 4 })
    assert.deepStrictEqual(
      [manifest.first_trace_sequence_number, manifest.last_trace_sequence_number],
      [1, 12]
    )
    assert.deepStrictEqual(manifest.trace_head, { sequence_number: 12, hash: facts.at(-1)!.hash })
    const report = await check(pack, { key: signer.vkey })
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(report.verdict, "authentic")
    assert.isTrue(report.checked.some((one) => one.includes("12 facts of 3 executions")))
    assert.isFalse(report.not_established.some((one) => one.includes("trace-links")))
  })

  it("shows of a span that was sent again what counts, and says so", async () => {
    const chain = new FactChain(TENANT)
    chain.start("run")
    for (const said of ["first", "last"]) {
      chain.span("run", "span", undefined, { said })
      if (said === "last") chain.add("run", { type: "span.amended", span_id: "span" })
      chain.endSpan("run", "span")
    }
    const other = { payload: { details: { name: "other" } } }
    chain.add("run", { type: "span.amended", span_id: "span" }, other)
    chain.span("run", "client")
    const shared = { parent_span_id: "client", shared_span_id: "client" }
    chain.add("run", { type: "span.amended", span_id: "span", ...shared })
    chain.add("run", { type: "span.amended", span_id: "client", shared_span_id: "span" })
    // Of a span that has not started an amendment counts for nothing.
    for (const members of [{}, shared]) {
      chain.add("run", { type: "span.amended", span_id: "late", ...members })
    }
    chain.span("run", "late")
    chain.end("run")
    const zip = await new PackWorld(new TestChain(TENANT, 2), chain.all).pack({})
    const pack = new PackEditor(zip)
    assert.deepInclude(JSON.parse(pack.lines(SPANS)[0]!), {
      parent_span_id: "client",
      metadata: { said: "last" },
      repairs: [
        { code: "other_content", path: "span" },
        { code: "shared_id", path: "span_id" }
      ]
    })
    assert.notProperty(JSON.parse(pack.lines(SPANS)[2]!), "repairs")
    assert.deepStrictEqual(problemsOf(await check(pack, { key: signer.vkey })), [])
    line(pack, SPANS, 0, (text) => text.replace("other_content", "many_links"))
    const report = await check(sign(pack.settle(), TENANT), { key: signer.vkey })
    assert.deepStrictEqual(problemsOf(report), ["spans.ndjson null content_mismatch"])
  })

  it("is held against a kept checkpoint of the trace chain", async () => {
    const kept = [traceCheckpointOf(facts, TENANT, 7).note]
    assert.strictEqual((await check(new PackEditor(original), { kept })).verdict, "authentic")
    const others = new FactChain(TENANT)
    for (let n = 0; n < 7; n++) others.start(`other-${n}`)
    const other = [traceCheckpointOf(others.all, TENANT, 7).note]
    const report = await check(new PackEditor(original), { kept: other })
    assert.deepStrictEqual(problemsOf(report), ["kept-0.txt 7 checkpoint_mismatch"])
    const longer = [traceCheckpointOf([...facts, ...others.all], TENANT, 14).note]
    const cut = await check(new PackEditor(original), { kept: longer })
    assert.deepStrictEqual(problemsOf(cut), ["kept-0.txt 13 tail_missing"])
  })

  it("of a period holds the facts of its executions and the links between them", async () => {
    const some = facts.filter(({ executionId }) => executionId === "run-2")
    const bounded = new PackWorld(world.chain, facts)
    const zip = await bounded.pack({
      filter: PERIOD_OF_RUN_2,
      facts: some,
      traceCheckpoints: [5]
    })
    const pack = new PackEditor(zip)
    assert.deepStrictEqual(pack.lines(FACTS).length, some.length)
    const [first, last] = [some[0]!.chainSequence, some.at(-1)!.chainSequence]
    assert.strictEqual(pack.lines(LINKS).length, last - first + 1)
    const report = await check(pack, { key: signer.vkey })
    assert.deepStrictEqual(problemsOf(report), [])
    assert.isTrue(report.not_established.some((one) => one.includes("leaves no execution")))
  })
})

describe("a pack of a period is none", () => {
  const from2 = facts.filter(({ executionId }) => executionId === "run-2")
  const leftOut: ReadonlyArray<readonly [string, Partial<EventFilter>, typeof facts]> = [
    ["that ran all the time", { to: PERIOD_OF_RUN_2.to }, from2],
    ["that has not ended", { from: PERIOD_OF_RUN_2.from }, from2],
    ["that is the only one", PERIOD_OF_RUN_2, []],
    ["by its last fact", PERIOD_OF_RUN_2, from2.slice(0, -1)],
    ["by its first fact", PERIOD_OF_RUN_2, from2.slice(1)]
  ]
  for (const [what, filter, some] of leftOut) {
    it(`without an execution ${what}`, async () => {
      const traces = { status: "valid", first_sequence_number: 1, last_sequence_number: 12 }
      const wishes = { filter, facts: some, report: { traces } as never }
      const failed = await Effect.runPromiseExit(Stream.runDrain(world.stream(wishes)))
      assert.isTrue(Exit.isFailure(failed))
    })
  }

  it("unless the execution's start was removed with the beginning of the chain", async () => {
    const filter = { to: PERIOD_OF_RUN_2.to }
    const made = world.stream({ filter, facts: from2, removedFacts: 1 })
    assert.isTrue(Exit.isSuccess(await Effect.runPromiseExit(Stream.runDrain(made))))
  })

  it("whose facts have changed since", async () => {
    const other = facts.map((fact) =>
      fact.executionId === "run-1" ? { ...fact, body: fact.body.replace("2019", "2020") } : fact
    )
    const wishes = { filter: PERIOD_OF_RUN_2, facts: from2 }
    const changed = new PackWorld(world.chain, other).stream(wishes)
    assert.isTrue(Exit.isFailure(await Effect.runPromiseExit(Stream.runDrain(changed))))
  })
})

describe("a change that the service's key has signed is named", () => {
  const cases: ReadonlyArray<
    readonly [string, (pack: PackEditor) => unknown, ReadonlyArray<string>]
  > = [
    [
      "a payload",
      (pack) => line(pack, FACTS, 3, (text) => text.replace("hello", "hullo")),
      [`${FACTS} 4 content_mismatch`]
    ],
    [
      "a status",
      (pack) => line(pack, FACTS, 11, (text) => text.replace("FAILED", "COMPLETED")),
      [`${EXECUTIONS} null content_mismatch`, `${FACTS} 12 content_mismatch`]
    ],
    [
      "other bytes of the same fact",
      (pack) => line(pack, FACTS, 3, (text) => text.replace(':"hello"', ': "hello"')),
      [`${FACTS} 4 content_mismatch`]
    ],
    [
      "a fact that is no JSON",
      (pack) => line(pack, FACTS, 3, (text) => text.slice(0, 50)),
      [`${FACTS} 4 content_mismatch`, `${FACTS} 6 sequence_gap`]
    ],
    [
      "a fact that was dropped",
      (pack) => pack.edit(FACTS, (lines) => lines.toSpliced(3, 1)),
      [`${FACTS} 4 sequence_gap`, `${FACTS} 6 sequence_gap`]
    ],
    [
      "the last fact of an execution, dropped with its link",
      (pack) => {
        pack.edit(FACTS, (lines) => lines.slice(0, -1))
        pack.edit(LINKS, (lines) => lines.slice(0, -1))
      },
      [`${LINKS} 12 tail_missing`, `${EXECUTIONS} null content_mismatch`]
    ],
    [
      "a whole execution, dropped everywhere but from the links",
      (pack) => {
        for (const file of [FACTS, EXECUTIONS, SPANS]) {
          pack.edit(file, (lines) => lines.filter((one) => !one.includes('"run-1"')))
        }
      },
      [`${FACTS} 1 sequence_gap`]
    ],
    [
      "a link",
      (pack) => line(pack, LINKS, 3, (text) => text.replace(/"hash":"./, '"hash":"x')),
      [`${LINKS} 4 content_mismatch`]
    ],
    [
      "facts in another order",
      (pack) => pack.edit(FACTS, (lines) => lines.toReversed()),
      [`${FACTS} 11 out_of_order`]
    ],
    [
      "details that are gone without a fact that says so",
      (pack) =>
        line(pack, FACTS, 3, (text) => eraseFact(parseFact(text)!, "2026-11-21T12:00:00.000000Z")),
      [`${FACTS} 4 content_mismatch`]
    ],
    [
      "another time of erasure",
      (pack) =>
        line(pack, FACTS, 1, (text) =>
          text.replace(/"erased_at":"[^"]+"/, '"erased_at":"2026-11-21T12:00:00.000000Z"')
        ),
      [`${FACTS} 2 content_mismatch`]
    ],
    [
      "a status of an execution",
      (pack) => line(pack, EXECUTIONS, 0, (text) => text.replace("FAILED", "COMPLETED")),
      [`${EXECUTIONS} null content_mismatch`]
    ],
    [
      "the metadata of an execution",
      (pack) => line(pack, EXECUTIONS, 0, (text) => text.replace('"start"', '"stop"')),
      [`${EXECUTIONS} null content_mismatch`]
    ],
    [
      "an execution more",
      (pack) => pack.edit(EXECUTIONS, (lines) => [...lines, lines[0]!]),
      [`${EXECUTIONS} null content_mismatch`, "manifest.json null report_mismatch"]
    ],
    [
      "an execution less",
      (pack) => pack.edit(EXECUTIONS, (lines) => lines.slice(1)),
      [`${EXECUTIONS} null content_mismatch`]
    ],
    [
      "the name of a span",
      (pack) => line(pack, SPANS, 0, (text) => text.replace("span span-1", "span span-9")),
      [`${SPANS} null content_mismatch`]
    ],
    [
      "the error of a span",
      (pack) => line(pack, SPANS, 0, (text) => text.replace("secret error", "no error")),
      [`${SPANS} null content_mismatch`]
    ],
    [
      "the end of a span",
      (pack) =>
        line(pack, SPANS, 0, (text) =>
          text.replace(/"ended_at":"[^"]+"/, '"ended_at":"2026-11-21T12:00:00.000000Z"')
        ),
      [`${SPANS} null content_mismatch`]
    ],
    [
      "a span less",
      (pack) => pack.edit(SPANS, (lines) => lines.slice(1)),
      [`${SPANS} null content_mismatch`]
    ],
    [
      "another head of the trace chain",
      (pack) =>
        pack.json("manifest.json", (manifest) => (manifest["trace_head"]["hash"] = "0".repeat(64))),
      [`${LINKS} 12 hash_mismatch`]
    ],
    [
      "a longer trace chain",
      (pack) =>
        pack.json("manifest.json", (manifest) => (manifest["trace_head"]["sequence_number"] = 13)),
      [`${LINKS} 13 tail_missing`]
    ],
    [
      "a break of the trace chain that the service itself has found",
      (pack) =>
        pack.json("verification.json", (report) => {
          const broken = { sequence_number: 7, event_id: null, reason: "content_mismatch" }
          report["valid"] = false
          report["traces"] = { breaks: [{ ...broken, expected: "a", actual: "b" }] }
        }),
      ["verification.json 7 content_mismatch"]
    ],
    [
      "edges of the trace tree",
      (pack) => pack.set("checkpoints/traces-tree.json", "{}"),
      ["checkpoints/traces-tree.json null content_mismatch"]
    ],
    [
      "a checkpoint of events in the place of one of facts",
      (pack) => pack.set("checkpoints/traces-4.txt", pack.text("checkpoints/4.txt")),
      ["checkpoints/traces-4.txt 4 checkpoint_mismatch"]
    ],
    [
      "a checkpoint that another key has signed",
      (pack) =>
        pack.set(
          "checkpoints/traces-5.txt",
          traceCheckpointOf(facts, TENANT, 5, otherSigner).note.replace(/\n\u2014[^]*$/, (lines) =>
            lines.replace(/ \S+\n$/, ` ${signer.sign("x").split(" ").at(-1)}`)
          )
        ),
      ["checkpoints/traces-5.txt 5 checkpoint_mismatch"]
    ]
  ]
  for (const [name, change, wanted] of cases) {
    it(`by all verifiers: ${name}`, async () => {
      const found = await foundIn(change)
      for (const problem of wanted) assert.include(found, problem)
    })
  }
})

const said = (report: Report): ReadonlyArray<string> =>
  "not_established" in report ? report.not_established : []

describe("a pack with values that have no room in their span", () => {
  const value = "A long prompt, 字. ".repeat(30_000)
  const [first, second, third] = chunksOf(value)
  const packOf = (pieces: ReadonlyArray<object>) => {
    const chain = new FactChain(TENANT)
    chain.start("run")
    chain.span("run", "call")
    for (const payload of pieces) {
      chain.add(
        "run",
        { type: "span.payload", span_id: "call" },
        { payload: payload as JsonObject }
      )
    }
    chain.endSpan("run", "call")
    return new PackWorld(new TestChain(TENANT), chain.all).pack()
  }

  it("is authentic", async () => {
    const pieces = [first!, second!, third!]
    for (const whole of [pieces, [...pieces, ...chunksOf("another"), ...pieces]]) {
      const report = await verifiers.check(await packOf(whole), { key: signer.vkey })
      assert.deepStrictEqual(problemsOf(report), [])
      assert.strictEqual(report.verdict, "authentic")
    }
  })

  it("is not if the pieces are not those of the value", async () => {
    const other = { ...third!, text: `${third!.text}.` }
    const cases: ReadonlyArray<readonly [ReadonlyArray<object>, ReadonlyArray<number>]> = [
      [[first!, second!, other], [5]],
      [[first!, third!], [4]],
      [[second!], [3]],
      [[first!, ...chunksOf("another"), second!], [5]],
      [[first!, { ...second!, sha256: "0".repeat(64) }], [4]],
      [[{ ...first!, chunk: "1" }], [3]],
      [[{ text: "nothing else" }], [3]]
    ]
    for (const [pieces, places] of cases) {
      const report = await verifiers.check(await packOf(pieces), { key: signer.vkey })
      assert.deepStrictEqual(
        problemsOf(report),
        places.map((place) => `${FACTS} ${place} content_mismatch`)
      )
    }
  })
})

describe("a pack with values that metadata of its events refers to", () => {
  const kept = "A long answer. ".repeat(3_000)
  const references = [kept, "not kept"].map((value) => ({
    $ref: `sha256:${sha256Hex(value)}`,
    bytes: value.length
  }))
  const events = new TestChain(TENANT)
  events.add({ metadata: { small: 1, answer: references[0]! } })
  const holding = () => {
    const chain = new FactChain(TENANT)
    chain.payload("holder", "event", kept)
    return chain
  }

  it("is authentic, and no list of it has what holds them", async () => {
    const zip = await new PackWorld(events, holding().all).pack()
    assert.deepStrictEqual(new PackEditor(zip).lines(EXECUTIONS), [])
    const report = await verifiers.check(zip, { key: signer.vkey })
    assert.deepStrictEqual(problemsOf(report), [])
    assert.isFalse(said(report).some((text) => text.includes("reference")))
  })

  it("says how many of them it does not hold", async () => {
    const more = new TestChain(TENANT)
    more.add({ metadata: { answer: references[0]!, other: references[1]! } })
    more.add({ metadata: references[1]! })
    const report = await verifiers.check(await new PackWorld(more, holding().all).pack())
    assert.deepStrictEqual(problemsOf(report), [])
    assert.isTrue(said(report).some((text) => text.startsWith("What 1 reference in metadata")))
  })

  it("has to list what is more than a holder of values", async () => {
    const chain = holding()
    chain.event("holder", "event", 1)
    const report = await verifiers.check(await new PackWorld(events, chain.all).pack())
    assert.deepStrictEqual(problemsOf(report), [`${EXECUTIONS} null content_mismatch`])
  })
})
