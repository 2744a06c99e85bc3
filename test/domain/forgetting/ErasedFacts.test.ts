/** Which facts lose their details, and which commands go with them. */
import { assert, describe, it } from "vitest"
import { GENESIS_HASH } from "../../../src/domain/chain/Chains.ts"
import { ErasedCommands } from "../../../src/domain/forgetting/ErasedCommands.ts"
import { ErasedEvents } from "../../../src/domain/forgetting/ErasedEvents.ts"
import { ErasedFacts } from "../../../src/domain/forgetting/ErasedFacts.ts"
import { COMMAND_FORMAT, type Command } from "../../../src/domain/records/Command.ts"
import { encodeCommand } from "../../../src/domain/records/CommandBytes.ts"
import { EMPTY_BATCH } from "../../../src/domain/records/EventBatch.ts"
import { FORMAT_HEADER } from "../../../src/domain/records/Topics.ts"
import {
  factDetailsHash,
  parseFact,
  recomputeFact,
  storeFact
} from "../../../src/domain/traces/FactText.ts"
import type { FactCore } from "../../../src/domain/traces/TraceFact.ts"
import type { TraceOperation } from "../../../src/domain/traces/TraceOperation.ts"

const NOW = "2026-11-21T12:00:00.000000Z"
const LATER = "2026-11-22T12:00:00.000000Z"
const SALT = "00112233445566778899aabbccddeeff"

const record = (value: string | Buffer, offset = 0, headers: Record<string, Buffer> = {}) => ({
  offset,
  key: Buffer.from("acme"),
  value: Buffer.from(value),
  headers
})

/** A chain of facts that grows. */
class Facts {
  readonly bodies: Array<string> = []
  #prevHash = GENESIS_HASH

  append(core: FactCore, details?: object, createdAt = NOW): string {
    const text = details && JSON.stringify(details)
    const prepared =
      text === undefined ? undefined : { text, salt: SALT, hash: factDetailsHash(SALT, text) }
    const chainSequence = this.bodies.length + 1
    const place = { tenantId: "acme", chainSequence, createdAt, prevHash: this.#prevHash }
    const { body, hash } = storeFact(core, prepared, place)
    this.#prevHash = hash
    this.bodies.push(body)
    return body
  }
}

const started = (execution: string, fact_number = 1): FactCore => ({
  type: "execution.started",
  execution_id: execution,
  fact_number,
  agent_id: "agent",
  root_span_id: `${execution}-root`,
  source: "api",
  started_at: NOW,
  started_at_given: true
})
const span = (execution: string, fact_number: number): FactCore => ({
  type: "span.started",
  execution_id: execution,
  fact_number,
  span_id: `${execution}-span`,
  caused_by_span_ids: [],
  span_type: "LLM_CALL",
  started_at: NOW,
  started_at_given: true
})
const payload = (execution: string, fact_number: number): FactCore => ({
  type: "span.payload",
  execution_id: execution,
  fact_number,
  span_id: `${execution}-span`
})
const erased = (execution: string, fact_number: number): FactCore => ({
  type: "execution.erased",
  execution_id: execution,
  fact_number,
  reason: "asked for",
  erased_by: "key_1"
})

/** Two executions, of which the first is erased, goes on, and is erased again. */
const twoExecutions = () => {
  const facts = new Facts()
  facts.append(started("secret"), { metadata: { note: "geheim" } })
  facts.append(started("other"), { metadata: { note: "offen" } })
  facts.append(span("secret", 2), { name: "geheim" })
  facts.append(payload("secret", 3), { payload: { text: "geheim" } })
  facts.append(erased("secret", 4), undefined, NOW)
  facts.append(span("secret", 5), { name: "geheim" })
  facts.append(erased("secret", 6), undefined, LATER)
  facts.append(payload("secret", 7), { payload: { text: "danach" } })
  return facts.bodies
}

const learned = (bodies: ReadonlyArray<string>): ErasedFacts => {
  const topic = new ErasedFacts(false)
  for (const body of bodies) topic.learn(record(body))
  return topic
}

const forgottenOf = (topic: ErasedFacts, body: string): string => {
  const fate = topic.fateOf(record(body), "committed")
  return typeof fate === "object" ? fate.value.toString() : fate
}

describe("facts of an erased execution", () => {
  it("lose their details up to the erasure that comes next, and keep their hashes", () => {
    const bodies = twoExecutions()
    const topic = learned(bodies)
    assert.strictEqual(topic.erasures, 2)
    const times = bodies.map((body) => {
      const value = forgottenOf(topic, body)
      if (value === "keep") return "keep"
      const found = recomputeFact(value)!
      assert.isTrue(found.exact)
      assert.strictEqual(found.fact.hash, parseFact(body)!.hash)
      assert.strictEqual(found.hash, found.fact.hash)
      assert.notInclude(value, "geheim")
      return found.fact.erased_at
    })
    // The first erasure is itself a fact before the second.
    assert.deepStrictEqual(times, [NOW, "keep", NOW, NOW, LATER, LATER, "keep", "keep"])
  })

  it("are left as they are once they are without details", () => {
    const bodies = twoExecutions()
    const topic = learned(bodies)
    const forgotten = forgottenOf(topic, bodies[0]!)
    assert.strictEqual(topic.fateOf(record(forgotten), "committed"), "keep")
  })

  it("go where a transaction that was aborted had tried to write them", () => {
    const bodies = twoExecutions()
    const topic = learned(bodies)
    assert.strictEqual(topic.fateOf(record(bodies[0]!), "aborted"), "drop")
    assert.strictEqual(topic.fateOf(record(bodies[1]!), "aborted"), "keep")
  })

  it("stay where the erasure does not continue its chain, or does not recompute", () => {
    const bodies = twoExecutions()
    assert.strictEqual(learned([...bodies.slice(0, 3), bodies[4]!]).erasures, 0)
    const forged = bodies[4]!.replace('"execution_id":"secret"', '"execution_id":"other1"')
    assert.strictEqual(learned([...bodies.slice(0, 4), forged]).erasures, 0)
  })
})

describe("commands with operations on an erased execution", () => {
  const details = { text: '{"name":"x"}', salt: SALT, hash: "ab".repeat(32) }
  const endSpan = (spanId: string): TraceOperation => ({
    op: "span.end",
    index: 0,
    spanId,
    status: "COMPLETED",
    endedAt: NOW,
    endedAtGiven: true,
    details
  })
  const erase: TraceOperation = {
    op: "execution.erase",
    index: 0,
    executionId: "secret",
    reason: "asked for",
    erasedBy: "key_1"
  }
  const commandOf = (...traces: ReadonlyArray<TraceOperation>) => {
    const command: Command = {
      kind: "trace",
      tenantId: "acme",
      receiptId: "r",
      attempt: "a",
      receivedAt: NOW,
      errors: [],
      warnings: [],
      events: EMPTY_BATCH,
      traces
    }
    const format = Buffer.from(String(COMMAND_FORMAT))
    return record(encodeCommand(command), 3, { [FORMAT_HEADER]: format })
  }

  it("go if they were applied, also those that name a span only; an erasure itself stays", () => {
    const bodies = twoExecutions()
    const topic = learned(bodies)
    for (const body of bodies) topic.fateOf(record(body), "committed")
    const applied = new ErasedCommands(3, new ErasedEvents(false), topic)
    assert.strictEqual(applied.fateOf(commandOf(endSpan("secret-span"))), "drop")
    assert.strictEqual(applied.fateOf(commandOf(endSpan("secret-root"))), "drop")
    assert.strictEqual(applied.fateOf(commandOf(endSpan("other-root"))), "keep")
    assert.strictEqual(applied.fateOf(commandOf(erase)), "keep")
    assert.strictEqual(
      applied.fateOf(commandOf(endSpan("other-root"), endSpan("secret-span"))),
      "drop"
    )
    const waiting = new ErasedCommands(2, new ErasedEvents(false), topic)
    assert.strictEqual(waiting.fateOf(commandOf(endSpan("secret-span"))), "keep")
    assert.strictEqual(applied.fateOf(record("no command", 3)), "keep")
  })
})
