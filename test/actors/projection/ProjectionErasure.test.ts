/** What the projection erases before which record, and which stored rows a record has become. */
import { assert, describe, it } from "@effect/vitest"
import {
  erasedTargetOf,
  isEventOf,
  isFactOf
} from "../../../src/actors/projection/ProjectionErasure.ts"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { eraseEvent } from "../../../src/domain/events/HashChain.ts"
import { eraseFact, parseFact } from "../../../src/domain/traces/FactText.ts"
import { bodies, FactChain } from "../../adapters/clickhouse/support/StoredFacts.ts"
import { Chain } from "../../verify/support/Chains.ts"

const bodyOf = (chain: Chain, sequence: number): string => chain.bodies[sequence - 1]!

const targetOf = (chain: Chain, sequence: number) =>
  erasedTargetOf(Buffer.from(bodyOf(chain, sequence)))

describe("an event that erases another one", () => {
  it("names it, and when", () => {
    const chain = new Chain("acme").extend(3)
    chain.erase(2)
    assert.deepStrictEqual(targetOf(chain, 4), {
      sequenceNumber: 2,
      erasedAt: chain.head!.created_at
    })
  })

  it("is no event of a client that only speaks of one", () => {
    const chain = new Chain("acme")
    const metadata = { reason: "r", sequence_number: 1, content_hash: "f".repeat(64) }
    chain.append({ metadata })
    chain.append({ metadata: { action: "alk.event.erased", ...metadata } })
    chain.append({ resource: { id: '"action":"alk.event.erased"', type: "audit_event" }, metadata })
    for (const sequence of [1, 2, 3]) assert.isUndefined(targetOf(chain, sequence))
  })
})

describe("a stored row", () => {
  const chain = new Chain("acme").extend(2)
  const record = bodyOf(chain, 1)
  const erasedAt = "2026-11-21T12:00:00.000000Z"
  const event = JSON.parse(record) as AuditEvent

  it("is its record, or what erasing leaves of it", () => {
    assert.isTrue(isEventOf(record, record))
    assert.isTrue(isEventOf(record, eraseEvent(event, erasedAt)))
    assert.isTrue(isEventOf(record, eraseEvent(event, "2026-11-22T12:00:00.000000Z")))
  })

  it("is nothing else, erased or not", () => {
    const changed = { ...event, outcome: "failure" } as const
    assert.isFalse(isEventOf(record, JSON.stringify(changed)))
    assert.isFalse(isEventOf(record, eraseEvent(changed, erasedAt)))
    assert.isFalse(isEventOf(record, bodyOf(chain, 2)))
    assert.isFalse(isEventOf(record, eraseEvent(JSON.parse(bodyOf(chain, 2)), erasedAt)))
    assert.isFalse(isEventOf(record, "no JSON"))
    assert.isFalse(isEventOf("no JSON", eraseEvent(event, erasedAt)))
    assert.isFalse(isEventOf("{}", eraseEvent(event, erasedAt)))
    // The topic has forgotten what the store has yet to erase.
    assert.isTrue(isEventOf(eraseEvent(event, erasedAt), record))
    assert.isTrue(isEventOf(eraseEvent(event, erasedAt), eraseEvent(event, erasedAt)))
    assert.isFalse(isEventOf(eraseEvent(event, erasedAt), bodyOf(chain, 2)))
    assert.isFalse(isEventOf(eraseEvent(changed, erasedAt), record))
    assert.isFalse(isEventOf(eraseEvent(event, erasedAt), "no JSON"))
  })

  it("of a trace fact may be erased too", () => {
    const facts = new FactChain("acme")
    facts.start("x")
    facts.span("x", "s")
    facts.event("x", "s", 1, { prompt: "secret" })
    facts.endSpan("x", "s")
    for (const body of bodies(facts.all)) {
      const fact = parseFact(body)!
      assert.isTrue(isFactOf(body, body))
      assert.isTrue(isFactOf(body, eraseFact(fact, erasedAt)))
      assert.isFalse(isFactOf(body, eraseFact({ ...fact, hash: "0".repeat(64) }, erasedAt)))
      assert.isFalse(isFactOf("no JSON", eraseFact(fact, erasedAt)))
      assert.isTrue(isFactOf(eraseFact(fact, erasedAt), body))
      assert.isFalse(isFactOf(eraseFact({ ...fact, hash: "0".repeat(64) }, erasedAt), body))
    }
  })
})
