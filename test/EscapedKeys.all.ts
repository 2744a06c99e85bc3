/**
 * Nothing of the program gives a text to an engine's JSON.parse that may have a key with an escape
 * (nodejs/node#63785), read off the source; and what reads texts back is asked with an engine that
 * was misled before.
 */

import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Logger } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { erasedTargetOf } from "../src/actors/projection/ProjectionErasure.ts"
import { emptyReplay, replay } from "../src/actors/sequencer/SequencerState.ts"
import { noteKeyConfusion } from "../src/cli/RuntimeNotice.ts"
import { linkOf } from "../src/domain/chain/ChainLink.ts"
import { ERASURE_ACTION } from "../src/domain/events/Erasure.ts"
import { tableFields } from "../src/domain/events/EventFields.ts"
import { recompute } from "../src/domain/events/HashChain.ts"
import { canonicalize } from "../src/domain/json/CanonicalJson.ts"
import { type JsonObject, parseJson, parseJsonWith } from "../src/domain/json/Json.ts"
import { decodeCommand } from "../src/domain/records/CommandBytes.ts"
import { readRegistryRecord } from "../src/domain/registry/RegistryEntry.ts"
import { finish } from "../src/domain/Slices.ts"
import {
  factDetailsHash,
  parseFact,
  recomputeFact,
  storeFact
} from "../src/domain/traces/FactText.ts"
import { decodeOperation } from "../src/domain/traces/TraceOperation.ts"
import { eventLine, readEvent } from "../src/exports/report/EventLine.ts"
import { selectedTable } from "../src/http/events/SelectedFields.ts"
import { oneOrSeveralEvents } from "../src/http/traces/TraceRequest.ts"
import { clientEvidenceOf } from "../src/http/verification/ClientEvidenceBody.ts"
import { TestChain } from "./exports/support/Chains.ts"
import { PackWorld, signer } from "./exports/support/PackWorld.ts"
import { problemsOf, Verifiers } from "./exports/support/Verifiers.ts"
import { arm, armingFor, freshName, respelled, victims } from "./support/EscapedKeys.ts"
import { commandWithHead } from "./support/Events.ts"
import { storedProgress } from "./support/StoredProgress.ts"

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesBelow(path) : [path]
  })

/** Places of a file that read JSON by other means than parseJson. */
const places = (pattern: RegExp): Record<string, number> => {
  const found: Record<string, number> = {}
  for (const file of filesBelow("src")) {
    if (!/\.(?:[cm]?[jt]sx?|html)$/.test(file)) continue
    const code = readFileSync(file, "utf8").replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "")
    const count = code.match(pattern)?.length ?? 0
    if (count > 0) found[file] = count
  }
  return found
}

describe("src", () => {
  it("calls JSON.parse in the one reader alone", () => {
    assert.deepStrictEqual(places(/\bJSON\s*\.\s*parse\b|\bJSON\s*\[|=\s*JSON\s*$/gm), {
      // The words of a message.
      "src/cli/RuntimeNotice.ts": 1,
      // A text without escaped keys, one string of a text, and the question about the engine.
      "src/domain/json/Json.ts": 4
    })
  })

  it("lets nobody else parse JSON but what it has written itself or named the keys of", () => {
    const pattern = /fromJsonString|UnknownFromJson|\.json(?:<[^()]*>)?\(|schemaBodyJson|bodyJson/g
    assert.deepStrictEqual(places(pattern), {
      // The keys are columns that the statements name.
      "src/adapters/clickhouse/Migrations.ts": 3,
      "src/adapters/clickhouse/events/ReadingProbe.ts": 1,
      // Files of this machine that this program writes, with fixed keys.
      "src/adapters/embedded/broker/BrokerRecord.ts": 1,
      "src/adapters/embedded/broker/KafkaJars.ts": 1
    })
  })

  it("reads every body by a raw handler: the framework's decoder is JSON.parse", () => {
    const texts = filesBelow("src/http").map((file) => readFileSync(file, "utf8"))
    const withBody = texts.flatMap((text) =>
      text
        .split("HttpApiEndpoint.")
        .filter((part) => /^\s*payload:/m.test(part))
        .flatMap((part) => /^\w+\(\s*"(\w+)"/.exec(part)?.[1] ?? [])
    )
    const raw = texts.flatMap((text) =>
      [...text.matchAll(/handleRaw\(\s*"(\w+)"/g)].map(([, name]) => name!)
    )
    assert.isAbove(withBody.length, 5)
    assert.deepStrictEqual(
      withBody.filter((name) => !raw.includes(name)),
      []
    )
  })
})

const MIDNIGHT = "2026-01-01T00:00:00.000000Z"
const head = { sequence_number: 7, hash: "a".repeat(64), created_at: MIDNIGHT, tree: null }
const checkpoint = {
  tenant_id: "acme",
  tree_size: 3,
  root_hash: "a".repeat(64),
  key_id: "0a0a0a0a",
  note: "n",
  created_at: MIDNIGHT
}
const state = (key: string) => (text: string) => {
  const into = emptyReplay(0, 1, { dedup: 10, idempotency: 10 })
  replay(into, key, Buffer.from(text))
  return into
}

const command = JSON.stringify({
  kind: "ingest",
  tenantId: "acme",
  receiptId: "r",
  attempt: "a",
  receivedAt: MIDNIGHT,
  errors: [{ index: 0, code: "c", message: "m" }],
  warnings: [{ index: 1, field: "x" }]
})
const owned = { id: "x", tenant_id: "acme", hash: "a".repeat(64), created_at: MIDNIGHT }
const entries = {
  "tenant/x": { id: "x", created_at: MIDNIGHT },
  "key/x": { ...owned, hint: "h", label: "l", scopes: ["read"] },
  "link/x": {
    ...owned,
    created_by: "k",
    expires_at: MIDNIGHT,
    uses: 1,
    filter: { metadata: [{ path: "p", value: "v" }] }
  },
  "signing_key/0a0a0a0a": {
    key_id: "0a0a0a0a",
    vkey: "v",
    public_key: "AA==",
    added_at: MIDNIGHT
  }
}

/** What reads a text of one object, and such a text. */
const readers: ReadonlyArray<readonly [string, (text: string) => unknown, string]> = [
  ["the head of a command", (text) => decodeCommand(commandWithHead(text)), command],
  ["an operation on a trace", decodeOperation, '{"index":0,"op":"span.end","spanId":"s"}'],
  ...Object.entries(entries).map(
    ([key, entry]) =>
      [
        `the registry's ${key}`,
        (text: string) => readRegistryRecord(Buffer.from(key), Buffer.from(text)),
        JSON.stringify(entry)
      ] as const
  ),
  ["a head", state("head/acme"), JSON.stringify(head)],
  ["a trace head", state("trace-head/acme"), JSON.stringify(head)],
  ["a checkpoint", state("checkpoint/acme"), JSON.stringify(checkpoint)],
  [
    "the last command",
    state("applied"),
    JSON.stringify(storedProgress({ command_offset: 3, events_next: 4 }))
  ],
  ["the owner", state("owner"), JSON.stringify({ owner: "o" })],
  ["the partitions", state("meta"), JSON.stringify({ partitions: 4 })]
]

describe("an engine that was misled does not change", () => {
  it.each(readers)("%s", (_name, read, object) => {
    const plain = object.replace("{", `{"${freshName()}":1,`)
    const text = respelled(plain).replace('"\\u0021first', '"!first')
    arm(text, JSON.stringify(parseJson(plain)))
    assert.deepStrictEqual(read(text), read(plain))
  })

  it("a body with trace events, whose name may be written so too", () => {
    const text = '{"\\u0065vents":[{"id":"a"},{"id":"b"}]}'
    JSON.parse(armingFor(text))
    const { items, kind } = finish(oneOrSeveralEvents(Buffer.from(text)))
    assert.deepStrictEqual([kind, items.length], ["several", 2])
  })

  it("a stored event, wherever it is read back", () => {
    for (const { canonical, name, text } of victims()) {
      const chain = new TestChain("acme")
      chain.add({ metadata: parseJson(text) as object })
      const [body] = chain.bodies
      assert.include(body, `"metadata":${canonical},`, name)
      // As it is stored, and as somebody else may write the same.
      for (const spelling of [body!, body!.replace(canonical, () => text)]) {
        JSON.parse(armingFor(spelling))
        assert.strictEqual(recompute(body!)?.exact, true, name)
        const line = eventLine(readEvent(spelling)!, { metadata: true })
        assert.strictEqual(line.metadata?.text, canonical, name)
        assert.include(
          selectedTable(tableFields).line(body!),
          `"${canonical.replaceAll('"', '""')}"`,
          name
        )
        const kept = finish(clientEvidenceOf(Buffer.from(`{"events":[${spelling}]}`)))
        assert("events" in kept)
        assert.strictEqual(canonicalize(kept.events[0]!.metadata as JsonObject), canonical, name)
      }
    }
  })

  it("an erasure", () => {
    const first = freshName()
    const chain = new TestChain("acme", 1)
    chain.add({
      action: ERASURE_ACTION,
      metadata: { [first]: 1, reason: "r", sequence_number: 1, content_hash: chain.event(1).hash }
    })
    const body = chain.bodies[1]!
    const names = `"content_hash":"${chain.event(1).hash}","reason"`
    const text = body.replace(names, names.replace("content", "\\u0063ontent"))
    assert.notStrictEqual(text, body)
    arm(text, body)
    assert.deepStrictEqual(erasedTargetOf(Buffer.from(text)), erasedTargetOf(Buffer.from(body)))
  })

  it("the end of a stored event", () => {
    const first = freshName()
    const [body] = new TestChain("acme", 1).bodies
    const plain = body!.replace('"tenant_id":"acme",', `"tenant_id":"acme","${first}":1,`)
    const text = plain.replace('"created_at"', '"\\u0063reated_at"')
    const suffix = `{${text.slice(text.lastIndexOf('"tenant_id"'))}`
    arm(suffix, `{${plain.slice(plain.lastIndexOf('"tenant_id"'))}`)
    assert.deepStrictEqual(linkOf(Buffer.from(text)), linkOf(Buffer.from(plain)))
  })

  it("a stored fact of a trace", () => {
    for (const { canonical, name, text } of victims()) {
      const said = `{"payload":${canonical}}`
      const salt = "0".repeat(32)
      const { body } = storeFact(
        {
          type: "span.event",
          execution_id: "e",
          fact_number: 1,
          span_id: "s",
          event_id: "i",
          event_type: "t",
          timestamp: "2026-01-01T00:00:00.000000Z",
          sequence_number: 1
        },
        { text: said, salt, hash: factDetailsHash(salt, said) },
        {
          tenantId: "acme",
          chainSequence: 1,
          createdAt: "2026-01-01T00:00:00.000000Z",
          prevHash: "0".repeat(64)
        }
      )
      assert.include(body, canonical, name)
      for (const spelling of [body, body.replace(canonical, () => text)]) {
        JSON.parse(armingFor(spelling))
        const { payload } = parseFact(spelling)!.details!
        assert.strictEqual(canonicalize(payload as JsonObject), canonical, name)
      }
      assert.strictEqual(recomputeFact(body)?.exact, true, name)
    }
  })
})

describe("a pack whose own events mislead", () => {
  let verifiers: Verifiers
  beforeAll(async () => {
    verifiers = await Verifiers.open()
  })
  afterAll(() => verifiers.close())

  it("is authentic for every verifier, those that run on this runtime included", async () => {
    const chain = new TestChain("acme")
    for (const { canonical } of victims()) {
      for (const text of [armingFor(canonical), canonical]) {
        chain.add({ metadata: parseJsonWith(text, Number) as object })
      }
    }
    const zip = await new PackWorld(chain).pack()
    const report = await verifiers.check(zip, { key: signer.vkey })
    assert.deepStrictEqual(problemsOf(report), [])
    const pack = verifiers.file("misleading.zip", zip)
    for (const program of [[join(verifiers.folder, "verify.mjs")], ["src/main.ts", "verify"]]) {
      const { status, stdout } = spawnSync(process.execPath, [...program, pack, "--json"])
      assert.strictEqual(status, 0, `${program}: ${stdout}`)
    }
  })
})

describe("noteKeyConfusion", () => {
  const linesOf = (isConfused: boolean): ReadonlyArray<string> => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      lines.push(`${logLevel} ${JSON.stringify(message)}`)
    })
    Effect.runSync(noteKeyConfusion(isConfused).pipe(Effect.provide(Logger.layer([logger]))))
    return lines
  }

  it("names the mistake and the runtime in one line at info", () => {
    const [line, ...others] = linesOf(true)
    assert.deepStrictEqual(others, [])
    assert.match(line!, /^Info /)
    for (const text of ["nodejs/node#63785", process.version, process.versions.v8]) {
      assert.include(line, text)
    }
  })

  it("says nothing of a runtime that is mended", () => {
    assert.deepStrictEqual(linesOf(false), [])
  })
})
