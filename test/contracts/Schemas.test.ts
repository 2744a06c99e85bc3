/** The published files are what the source makes, and they are valid documents of their kinds. */
import { readdirSync, readFileSync } from "node:fs"
import { Ajv } from "ajv"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { asyncApiDocument, asyncApiYaml, defaultPlace } from "../../src/contracts/AsyncApi.ts"
import { exampleCheckpoint } from "../../src/contracts/ExampleCheckpoint.ts"
import { exampleLink, exampleValue } from "../../src/contracts/ExampleEvent.ts"
import { exampleFactPlace, exampleFactValue } from "../../src/contracts/ExampleFact.ts"
import type { JsonRecord, JsonValue } from "../../src/contracts/JsonSchema.ts"
import { publishedFiles } from "../../src/contracts/PublishedFiles.ts"
import { toYaml } from "../../src/contracts/Yaml.ts"
import { recompute } from "../../src/domain/events/HashChain.ts"
import {
  auditEventHeaders,
  checkpointHeaders,
  traceFactHeaders
} from "../../src/domain/records/CloudEvent.ts"
import { recordContracts } from "../../src/domain/records/RecordContracts.ts"
import { recomputeFact } from "../../src/domain/traces/FactText.ts"
import { FOLDER, faultIn, makeAjv, publishedNames } from "./Published.ts"

const read = (path: string): string => readFileSync(path, "utf8")

/** Every object in a document, with its path. */
const walk = (
  value: unknown,
  visit: (object: Record<string, unknown>, path: string) => void,
  path = "#"
): void => {
  if (typeof value !== "object" || value === null) return
  if (!Array.isArray(value)) visit(value as Record<string, unknown>, path)
  for (const [name, member] of Object.entries(value)) walk(member, visit, `${path}/${name}`)
}

describe("the published contracts", () => {
  it("are what the source makes: else run npm run generate", () => {
    for (const [path, content] of publishedFiles()) assert.strictEqual(read(path), content, path)
  })

  it("hold a schema for every contract and no other", () => {
    assert.deepStrictEqual(publishedNames, recordContracts.map(({ name }) => name).sort())
    assert.strictEqual(readdirSync(FOLDER).length, publishedNames.length)
  })

  it("are all named in the README beside them", () => {
    const readme = read("schemas/README.md")
    for (const name of publishedNames) assert.include(readme, `(json/${name}.schema.json)`)
    assert.include(readme, "asyncapi.yaml")
    assert.include(readme, "(backup-manifest.schema.json)")
  })

  it("are JSON Schemas that a strict validator takes, each with an id of its own", () => {
    const ajv = makeAjv()
    const ids = publishedNames.map((name) => {
      const schema = JSON.parse(read(`${FOLDER}/${name}.schema.json`)) as { readonly $id: string }
      ajv.compile(schema)
      return schema.$id
    })
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it("leave no object open but what clients may fill as they like", () => {
    for (const name of publishedNames) {
      walk(JSON.parse(read(`${FOLDER}/${name}.schema.json`)), (object, path) => {
        const isFree = /\/(?:metadata|payload|error\/anyOf\/1)$/.test(path)
        if (object["type"] !== "object" || isFree) return
        assert.strictEqual(object["additionalProperties"], false, `${name} ${path}`)
      })
    }
  })

  it("show an example that is a true event", () => {
    const event = recompute(exampleValue)
    assert.isTrue(event?.exact)
    assert.strictEqual(event?.hash, event?.event.hash)
    assert.strictEqual(event?.contentHash, event?.event.content_hash)
    assert.strictEqual(event?.detailsHash, event?.event.details_hash)
    assert.isUndefined(faultIn("audit-event", JSON.parse(exampleValue)))
    assert.isUndefined(faultIn("audit-event", auditEventHeaders("alk", exampleLink), "headers"))
  })

  it("show an example that is a true fact", () => {
    const recomputed = recomputeFact(exampleFactValue)
    assert.isTrue(recomputed?.exact)
    assert.strictEqual(recomputed?.hash, recomputed?.fact.hash)
    assert.strictEqual(recomputed?.contentHash, recomputed?.fact.content_hash)
    assert.strictEqual(recomputed?.detailsHash, recomputed?.fact.details_hash)
    assert.isUndefined(faultIn("trace-fact", JSON.parse(exampleFactValue)))
    const headers = traceFactHeaders("alk", exampleFactPlace)
    assert.isUndefined(faultIn("trace-fact", headers, "headers"))
  })
})

describe("toYaml", () => {
  const hostile: JsonRecord = {
    plain: "some words",
    empty: "",
    "": "empty name",
    yes: "yes",
    no: ["no", "on", "~", "null", "1", "1.0", "1e3", "0x1f", "2026-11-21", "12:30:00", "=", "<<"],
    spaces: [" a", "a ", "a: b", "a #b", "- a", "? a", "&a", "*a", "!a", "%a", "@a", "`a", "{a"],
    lines: ["a\nb", "a\nb\n", "a\n\nb\n\n", "\na", " a\nb", "a\n  b\n", "a\t\nb", "ü\n€"],
    odd: ["\u0000\u0001\u007f\u0085\u00a0\u2028\ufeff", "😀", "\\n", "\"'", "a\r\nb"],
    values: [null, true, false, 0, -1, 1.5, 1e21],
    nested: [[], {}, [[]], [{ a: [{ b: {} }] }, [1, [2, [3]]]], { list: [{ c: "x\ny\n", d: [] }] }]
  }

  it("is read back as what it was, whatever stands in it", () => {
    assert.deepStrictEqual(parse(toYaml(hostile)), hostile)
  })
})

describe("the AsyncAPI document", () => {
  const document = parse(read("schemas/asyncapi.yaml")) as any

  it("reads as YAML to what the source describes", () => {
    assert.deepStrictEqual(document, asyncApiDocument(defaultPlace) as JsonValue)
  })

  it("has only references that lead somewhere", () => {
    let references = 0
    walk(document, (object, path) => {
      const reference = object["$ref"]
      if (reference === undefined) return
      references += 1
      assert.match(String(reference), /^#\//, path)
      const steps = String(reference).slice(2).split("/")
      const target = steps.reduce((at: any, step) => at?.[step], document)
      assert.isDefined(target, `${path} to ${String(reference)}`)
    })
    assert.isAbove(references, 5)
  })

  it("is an AsyncAPI 3.0 document of the channels that alk sends to", () => {
    assert.strictEqual(document.asyncapi, "3.0.0")
    assert.hasAllKeys(document, [
      "asyncapi",
      "info",
      "defaultContentType",
      "servers",
      "channels",
      "operations",
      "components"
    ])
    assert.deepStrictEqual(Object.keys(document.channels), ["events", "traces", "checkpoints"])
    assert.strictEqual(document.channels.events.address, "alk.events")
    assert.strictEqual(document.channels.traces.address, "alk.traces")
    const operations = Object.values<any>(document.operations)
    assert.deepStrictEqual(
      operations.map(({ action }) => action),
      ["send", "send", "send"]
    )
    assert.strictEqual(document.servers.kafka.protocol, "kafka")
  })

  const described = [
    ["audit-event", "auditEvent", "AuditEvent", auditEventHeaders("alk", exampleLink)],
    ["trace-fact", "traceFact", "TraceFact", traceFactHeaders("alk", exampleFactPlace)],
    ["checkpoint", "checkpoint", "Checkpoint", checkpointHeaders("alk", exampleCheckpoint)]
  ] as const

  it.each(described)("describes what the schema %s does", (file, name, own, headers) => {
    const schema = JSON.parse(read(`${FOLDER}/${file}.schema.json`))
    const message = document.components.messages[name]
    const { schemas } = document.components
    assert.deepStrictEqual(message.bindings.kafka.key, schema.$defs.key)
    assert.deepStrictEqual(schemas[`${own}Headers`], schema.$defs.headers)
    const { $defs, $id: _2, $schema: _3, description: _4, title: _5, ...value } = schema
    const moved = (part: unknown) =>
      JSON.parse(JSON.stringify(part).replaceAll("#/$defs/", "#/components/schemas/"))
    assert.deepStrictEqual(schemas[own], moved(value))
    for (const [part, definition] of Object.entries($defs)) {
      if (part === "key" || part === "headers") continue
      assert.deepStrictEqual(schemas[part], moved(definition))
    }
    assert.deepStrictEqual(Object.keys(schemas[`${own}Headers`].properties), Object.keys(headers))
  })

  it("uses schemas that draft 7, which AsyncAPI builds on, reads the same way", () => {
    const ajv = new Ajv({ strict: true, validateFormats: false })
    ajv.addVocabulary(["components"])
    const { messages, schemas } = document.components
    const validator = (name: string) =>
      ajv.compile({ ...schemas[name], components: document.components })
    const isEvent = validator("AuditEvent")
    const [event] = messages.auditEvent.examples
    assert.isTrue(isEvent(event.payload), JSON.stringify(isEvent.errors))
    assert.isFalse(isEvent({ ...event.payload, actor: { id: "u", type: "robot" } }))
    assert.isFalse(isEvent({ ...event.payload, note: "not hashed" }))
    const isFact = validator("TraceFact")
    const [fact] = messages.traceFact.examples
    assert.isTrue(isFact(fact.payload), JSON.stringify(isFact.errors))
    assert.isFalse(isFact({ ...fact.payload, type: "execution.ended" }))
    assert.isFalse(isFact({ ...fact.payload, note: "not hashed" }))
    const isCheckpoint = validator("Checkpoint")
    const [checkpoint] = messages.checkpoint.examples
    assert.isTrue(isCheckpoint(checkpoint.payload), JSON.stringify(isCheckpoint.errors))
    assert.isFalse(isCheckpoint({ ...checkpoint.payload, tree_size: 0 }))
  })

  it("tells the names and numbers of the deployment that it is made for", () => {
    const place = {
      topicPrefix: "prod.audit",
      serviceName: "trail",
      bootstrap: "kafka:9092",
      partitions: 12,
      eventsRetentionMs: 86_400_000
    }
    const made = parse(asyncApiYaml(place)) as any
    const { kafka } = made.channels.events.bindings
    assert.strictEqual(made.channels.events.address, "prod.audit.events")
    assert.strictEqual(kafka.topic, "prod.audit.events")
    assert.strictEqual(kafka.partitions, 12)
    assert.strictEqual(kafka.topicConfiguration["retention.ms"], 86_400_000)
    assert.strictEqual(made.servers.kafka.variables.bootstrap.default, "kafka:9092")
    const [example] = made.components.messages.auditEvent.examples
    assert.strictEqual(example.headers.ce_source, "trail/acme")
    assert.strictEqual(made.channels.traces.address, "prod.audit.traces")
    const [fact] = made.components.messages.traceFact.examples
    assert.strictEqual(fact.headers.ce_source, "trail/acme/traces")
  })
})
