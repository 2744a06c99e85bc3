/**
 * Keys that are written with an escape, over HTTP: somebody else's objects were made to mislead the
 * JSON.parse of V8 before (nodejs/node#63785), and still what is stored, shown, hashed and verified
 * is what was sent. Compares texts, so that the tests' own JSON.parse has no say.
 */
import { execFile } from "node:child_process"
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { engineConfusesKeys } from "../../src/domain/json/Json.ts"
import { PackEditor } from "../exports/support/PackEditor.ts"
import { checkChain, readTopic } from "../support/BlackBox.ts"
import { type Answer, Client, type Options, readStream } from "../support/Client.ts"
import { armingFor, type Victim, victims } from "../support/EscapedKeys.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"

const folder = freshFolder("escaped-keys")
const OWN = "escapedown"
const STRANGER = "escapedstranger"
const SYNC = { "x-service-sync": "true" }
const NDJSON = { "content-type": "application/x-ndjson" }
const run = promisify(execFile)

let running: Started
beforeAll(async () => {
  mkdirSync(join(folder, "data"))
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    ALK_ADMIN_TOKEN: ADMIN_TOKEN,
    ALK_BOOTSTRAP_KEYS: [OWN, STRANGER]
      .map((name) => `${testKey(name)}=${name}:read+write`)
      .join(",")
  })
})
afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

const api = (tenant = OWN): Client => new Client(running.url, testKey(tenant))
const admin = (): Client => new Client(running.url, ADMIN_TOKEN)

const sent = async (
  path: string,
  raw: string,
  options: Options = {},
  by = api()
): Promise<Answer> => {
  const answer = await by.call(path, { ...options, raw, headers: { ...SYNC, ...options.headers } })
  assert.isBelow(answer.status, 300, `${raw}: ${answer.text}`)
  return answer
}

/** Somebody else sends the texts that mislead, whatever is answered, then we send ours. */
const attacked = async (path: string, raw: string, options: Options = {}): Promise<Answer> => {
  await api(STRANGER).call(path, { ...options, raw: armingFor(raw) })
  return sent(path, raw, options)
}

const eventText = (id: string, metadata: string): string =>
  `{"id":"${id}","actor":{"id":"a","type":"human"},"action":"document.read",`
  + `"resource":{"id":"r","type":"t"},"outcome":"success","metadata":${metadata}}`

const linesOf = (text: string): ReadonlyArray<string> =>
  text.split("\n").filter((line) => line !== "")

/** Texts of the stored events, ascending. */
const stored = async (): Promise<ReadonlyArray<string>> => {
  const headers = { accept: NDJSON["content-type"] }
  return linesOf((await api().call("/v1/events?order=asc", { headers })).text)
}

/** The values of a public topic. */
const published = async (topic: string): Promise<ReadonlyArray<string>> =>
  (await readTopic(running.topics, topic, OWN)).map(({ value }) => value)

const assertStored = (
  bodies: ReadonlyArray<string>,
  prefix: string,
  all: ReadonlyArray<Victim>
): void => {
  all.forEach(({ canonical, name }, n) => {
    const body = bodies.find((text) => text.includes(`"id":"${prefix}${n}",`))
    assert.include(body, `"metadata":${canonical},"tenant_id"`, name)
  })
}

describe("an event whose metadata has a key with an escape", () => {
  it("is stored as it was sent alone", async () => {
    const all = victims()
    for (const [n, { canonical, name, text }] of all.entries()) {
      const answer = await attacked("/v1/events", eventText(`single${n}`, text))
      assert.include(answer.text, `"metadata":${canonical},`, name)
    }
    assertStored(await stored(), "single", all)
  })

  it("is stored as it was sent in a batch, also beside an item that is refused", async () => {
    for (const prefix of ["batch", "mixed"]) {
      const all = victims()
      const events = all.map(({ text }, n) => eventText(`${prefix}${n}`, text))
      if (prefix === "mixed") events.push(eventText("refused", '{"n":1e400}'))
      await attacked("/v1/events/batch", `{"events":[${events.join(",")}]}`)
      assertStored(await stored(), prefix, all)
    }
  })

  it("is stored as it was sent in lines", async () => {
    const all = victims()
    const lines = all.map(({ text }, n) => eventText(`line${n}`, text))
    await attacked("/v1/events/batch", lines.join("\n"), { headers: NDJSON })
    assertStored(await stored(), "line", all)
  })

  it("keeps the metadata when its own name is written so", async () => {
    const text = eventText("named", '{"a":1}').replace('"metadata"', '"m\\u0065tadata"')
    const { text: answer } = await attacked("/v1/events", text)
    assert.include(answer, '"metadata":{"a":1},')
  })
})

describe("what is handed out of them", () => {
  it("is the same text in the list, in CSV, on the stream and on the topic", async () => {
    const bodies = await stored()
    assert.isAbove(bodies.length, 40)
    const listed = await api().call("/v1/events?order=asc&page_size=1000")
    for (const body of bodies) assert.include(listed.text, body)
    assert.deepStrictEqual(await published("alk.events"), bodies)
    const stream = `${running.url}/v1/events/stream?after_sequence=0`
    const messages = await readStream(stream, api().key, {
      done: (seen) => seen.length >= bodies.length
    })
    assert.deepStrictEqual(
      messages.map(({ data }) => data),
      bodies
    )
    const csv = await api().call("/v1/events?order=asc", { headers: { accept: "text/csv" } })
    for (const body of bodies) {
      const start = body.indexOf('"metadata":') + '"metadata":'.length
      const metadata = body.slice(start, body.lastIndexOf(',"tenant_id":'))
      assert.include(csv.text, `"${metadata.replaceAll('"', '""')}"`)
    }
    await checkChain(bodies)
  })

  it("is found by its key, in the list and live", async () => {
    const query = `metadata.${encodeURIComponent("名前")}=kept`
    const { body } = await api().call(`/v1/events?${query}`)
    assert.strictEqual(body.total, 4)
    const [victim] = victims().filter(({ name }) => name === "two characters of Japanese")
    const messages = await readStream(`${running.url}/v1/events/stream?${query}`, api().key, {
      opened: async () => void (await attacked("/v1/events", eventText("live", victim!.text))),
      done: (seen) => seen.length >= 1
    })
    assert.include(messages[0]?.data, victim!.canonical)
  })

  it("verifies by the service, by what was kept, and offline", async () => {
    const { body, text } = await api().call("/v1/verify")
    assert.isTrue(body.valid, text)
    // As somebody may have written the same events down: with other escapes.
    const kept = (await stored()).map((event) =>
      event.replaceAll("名前", "\\u540d\\u524d").replaceAll('"/"', '"\\/"')
    )
    const answer = await attacked("/v1/verify", `{"events":[${kept.join(",")}]}`)
    assert.include(answer.text, '"valid":true')
    const pack = await fetch(`${running.url}/v1/export/evidence-pack`, {
      headers: { authorization: `Bearer ${api().key}` }
    })
    const editor = new PackEditor(Buffer.from(await pack.arrayBuffer()))
    const unpacked = editor.unpack(join(folder, "pack"))
    const checks = [["verify.mjs"], [join(process.cwd(), "src/main.ts"), "verify", unpacked]]
    for (const args of checks) {
      const { stdout } = await run(process.execPath, args, { cwd: unpacked })
      assert.match(stdout, /^CONSISTENT/)
    }
  })
})

describe("a trace with such keys", () => {
  const EXECUTIONS = "/api/v1/executions"
  const nameOf = (n: number): string => `escaped-${n}`

  it("keeps them in executions, spans and trace events", async () => {
    const all = victims()
    for (const [n, { canonical, name, text }] of all.entries()) {
      const id = nameOf(n)
      const started = `{"id":"${id}","agent_id":"a","metadata":${text}}`
      assert.include((await attacked(EXECUTIONS, started)).text, `"metadata":${canonical}`, name)
      const span = `{"id":"s${n}","span_type":"TOOL_CALL","name":"s","metadata":${text}}`
      assert.include((await attacked(`${EXECUTIONS}/${id}/spans`, span)).text, canonical, name)
      const eventOf = (eventId: string) =>
        `{"id":"${eventId}${n}","event_type":"x","payload":${text}}`
      await attacked(`/api/v1/spans/s${n}/events`, eventOf("alone"))
      await attacked(`/api/v1/spans/s${n}/events`, `{"events":[${eventOf("listed")}]}`)
      const found = await api().call(`/api/v1/spans/s${n}`)
      assert.strictEqual(found.text.split(canonical).length, 4, `${name}: ${found.text}`)
      const read = await api().call(`${EXECUTIONS}/${id}`)
      assert.include(read.text, `"metadata":${canonical}`, name)
    }
  })

  it("keeps them in a batch of operations, and the chain verifies", async () => {
    const all = victims()
    const operations = all.map(
      ({ text }, n) => `{"op":"execution.end","execution_id":"${nameOf(n)}","metadata":${text}}`
    )
    await attacked("/api/v1/traces/batch", `{"operations":[${operations.join(",")}]}`)
    const facts = await published("alk.traces")
    for (const [n, { canonical, name }] of all.entries()) {
      const own = facts.filter((fact) => fact.includes(`"execution_id":"${nameOf(n)}"`))
      assert.isTrue(
        own.some((fact) => fact.includes(`"metadata":${canonical}`)),
        name
      )
      const { body, text } = await api().call(`${EXECUTIONS}/${nameOf(n)}/verify`)
      assert.isTrue(body.valid, text)
    }
  })

  it("reads the fields of OTLP, with and without numbers that no double holds", async () => {
    for (const [n, time] of ['"1767225600000000001"', "1767225600000000001"].entries()) {
      const trace = String(n + 1).repeat(32)
      const span =
        `{"traceId":"${trace}","spanId":"${trace.slice(16)}","startTimeUnixNano":${time},`
        + `"endTimeUnixNano":${time},"\\u006eame":"the name of span ${n}",`
        + `"attributes":[{"ke\\u0079":"kept${n}","v\\u0061lue":{"stringV\\u0061lue":"v"}}]}`
      await attacked("/v1/traces", `{"resourceSpans":[{"scopeSpans":[{"spans":[${span}]}]}]}`)
      const facts = (await published("alk.traces")).filter((fact) => fact.includes(trace)).join()
      assert.include(facts, `"name":"the name of span ${n}"`)
      assert.include(facts, `"kept${n}":"v"`)
      assert.include(facts, "2026-01-01T00:00:00.000000Z")
    }
  })
})

describe("a request whose own fields are written with an escape", () => {
  it("makes the tenant, the key, the link and the erasure that it asks for", async () => {
    const asAdmin = async (path: string, raw: string): Promise<Answer> => {
      // The same form for another tenant: this one's is not to exist already.
      await admin().call(path, { raw: armingFor(raw).replace('"named"', '"misleading"') })
      return sent(path, raw, {}, admin())
    }
    const tenant = await asAdmin("/v1/admin/tenants", '{"id":"named","n\\u0061me":"The Name"}')
    assert.include(tenant.text, '"name":"The Name"')
    const keys = "/v1/admin/tenants/named/keys"
    const key = await asAdmin(keys, '{"scopes":["read"],"l\\u0061bel":"the label"}')
    assert.include(key.text, '"label":"the label"')
    const link = await attacked("/v1/share/links", '{"max_uses":3,"l\\u0061bel":"the label"}')
    assert.include(link.text, '"label":"the label"')
    await attacked("/v1/events/single0/erase", '{"re\\u0061son":"request 7"}')
    assert.include((await stored()).at(-1), '"reason":"request 7"')
  })
})

describe("the start", () => {
  it("says whether this runtime has the mistake, once, and that alk is not affected", () => {
    const said = linesOf(running.output()).filter((line) => line.includes("nodejs/node#63785"))
    assert.strictEqual(said.length, engineConfusesKeys() ? 1 : 0, running.output())
    for (const line of said) {
      assert.include(line, '"level":"info"')
      assert.include(line, process.version)
    }
  })
})
