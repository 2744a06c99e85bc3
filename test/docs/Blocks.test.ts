/** The blocks of the pages that need no running program: JSON, expressions, formulas, pictures. */
import { globSync, readFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import { parseWhere } from "../../src/domain/events/where/Parse.ts"
import { topicKinds, topicName } from "../../src/domain/records/Topics.ts"
import { PayloadReference } from "../../src/domain/traces/Payload.ts"
import { openApiDocument } from "../../src/http/Api.ts"
import { computed } from "./Formulas.ts"
import { type Block, blocks, fenceOf, placeOf } from "./Pages.ts"
import { showsPrinted } from "./Shapes.ts"
import { filesOfReasons, unusedStandIns } from "./StandIns.ts"

/** What a fence may say, beside `json` and a schema. CONTRIBUTING.md says what each means. */
const KINDS = [
  "sh",
  "sh endless",
  "ts",
  "ts endless",
  "python",
  "sql",
  "sql store",
  "sql admin",
  "where",
  "text output",
  "text grammar",
  "text formula",
  "text help",
  "mermaid"
]

const TOPICS = topicKinds.map((kind) => topicName("alk", kind))

const those = (fence: string): ReadonlyArray<Block> =>
  blocks.filter((block) => fenceOf(block) === fence)

describe("the blocks of the pages", () => {
  it("say by their fence how they are tested", () => {
    const unknown = blocks.filter(
      (block) =>
        !KINDS.includes(fenceOf(block)) && (block.language !== "json" || block.kind === undefined)
    )
    assert.deepStrictEqual(unknown.map(placeOf), [])
  })

  it("are of kinds that CONTRIBUTING.md explains", () => {
    const text = readFileSync("CONTRIBUTING.md", "utf8")
    for (const kind of KINDS) assert.include(text, `\`${kind}\``)
  })

  it("in which something stands in for a program are there, and so are the tests that run it", () => {
    assert.deepStrictEqual(unusedStandIns(those("sh")), [])
    for (const file of filesOfReasons) assert.isNotEmpty(globSync(file), file)
  })

  it("of text are help of commands on the generated page only", () => {
    for (const { page } of those("text help")) assert.strictEqual(page, "docs/cli.md")
  })
})

describe("JSON", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(openApiDocument() as object, "openapi")

  for (const block of blocks.filter(({ language }) => language === "json")) {
    it(`fits the schema that it names (${placeOf(block)})`, () => {
      const value = JSON.parse(block.text)
      if (block.kind === "PayloadReference") {
        Schema.decodeUnknownSync(PayloadReference)(value, { onExcessProperty: "error" })
        return
      }
      const fits = ajv.validate({ $ref: `openapi#/components/schemas/${block.kind}` }, value)
      assert.isTrue(fits, ajv.errorsText())
    })
  }
})

describe("expressions", () => {
  for (const block of those("where")) {
    it(`are read (${placeOf(block)})`, () => {
      for (const line of block.text.split("\n")) parseWhere(line, "2026-11-24T00:00:00.000000Z")
    })
  }

  it("have the grammar that their parser has", () => {
    const rules = (text: string) =>
      [...text.matchAll(/^[ *]*(\w+) +=(?: (.*))$/gm)].map(([, name, rule]) => `${name} = ${rule}`)
    const source = readFileSync("src/domain/events/where/Parse.ts", "utf8")
    const ofParser = rules(source.slice(0, source.indexOf("*/")))
    for (const block of those("text grammar")) {
      assert.isNotEmpty(rules(block.text))
      assert.includeMembers(ofParser, rules(block.text))
    }
  })
})

interface Vectors {
  readonly chain: ReadonlyArray<{ readonly event: Readonly<Record<string, unknown>> }>
}

describe("formulas", () => {
  const vectors: Vectors = JSON.parse(readFileSync("schemas/vectors/alk-chain-v1.json", "utf8"))
  const events = vectors.chain.map(({ event }) => event)

  /** An event with its details under the names that the formulas have. */
  const valuesOf = (event: Readonly<Record<string, unknown>>) => {
    const { actor, resource } = event as {
      readonly actor: { readonly email?: string }
      readonly resource: { readonly name?: string }
    }
    return { ...event, actor_email: actor.email, resource_name: resource.name }
  }

  for (const block of those("text formula")) {
    it(`give the hashes of the vectors (${placeOf(block)})`, () => {
      let count = 0
      for (const line of block.text.split("\n")) {
        for (const event of events) {
          if (line.startsWith("details_hash") && event["details_salt"] === undefined) continue
          const { hash, name } = computed(line, valuesOf(event))!
          assert.strictEqual(hash, event[name], line)
          count += 1
        }
      }
      assert.isAbove(count, 2 * events.length)
    })
  }
})

describe("pictures", () => {
  for (const block of those("mermaid")) {
    it(`are flowcharts of nodes and topics that there are (${placeOf(block)})`, () => {
      const [head, ...lines] = block.text.split("\n")
      assert.match(head!, /^flowchart (?:LR|TD)$/)
      const declared = new Set<string>()
      const used = new Set<string>()
      for (const line of lines) {
        const nodes = line.trim().split(" --> ")
        for (const node of nodes) {
          const [, name, label] = /^(\w+)([[(]+"[^"]+"[\])]+)?$/.exec(node) ?? []
          assert.isDefined(name, `${line} is no edge`)
          used.add(name!)
          if (label !== undefined) declared.add(name!)
        }
      }
      assert.deepStrictEqual(
        [...used].filter((name) => !declared.has(name)),
        []
      )
      for (const [topic] of block.text.matchAll(/\balk\.[a-z]+/g)) assert.include(TOPICS, topic)
    })
  }
})

describe("what a page shows of a command", () => {
  it("fits what it prints, apart from times, numbers and widths", () => {
    const printed = "noise\nSEQ  TIME\n  7   2026-11-24 10:00:00\nend 12 ms\n"
    assert.isTrue(showsPrinted("SEQ TIME\n12 2026-01-01 09:00:00", printed))
    assert.isTrue(showsPrinted("SEQ TIME\n…\nend 3 s", printed))
    assert.isTrue(showsPrinted("end…", printed))
  })

  it("does not fit other columns, words or lines in between", () => {
    const printed = "SEQ  TIME  ACTOR\n1  2026-11-24 10:00:00  alice\nend\n"
    assert.isFalse(showsPrinted("SEQ  TIME", printed))
    assert.isFalse(showsPrinted("SEQ  TIME  ACTOR\nend", printed))
    assert.isFalse(showsPrinted("1  2026-11-24 10:00:00  bob", printed))
  })
})
