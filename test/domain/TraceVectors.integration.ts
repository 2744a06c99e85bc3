/**
 * The vectors of `alk-trace-v1`, which the Python implementation has computed: TypeScript makes the
 * same bytes and hashes of the same facts, and finds the same faults.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { GENESIS_HASH } from "../../src/domain/chain/Chains.ts"
import { canonicalize } from "../../src/domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../src/domain/json/Json.ts"
import {
  eraseFact,
  factCoreText,
  factTypes,
  parseFact,
  recomputeFact,
  storeFact,
  TRACE_SCHEME
} from "../../src/domain/traces/FactText.ts"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import { faultInValue } from "../contracts/Published.ts"
import { readVectors, vectorsPath } from "../support/Independent.ts"
import { runIndependentTrace, TRACE_VECTORS } from "../support/IndependentTrace.ts"

const vectors = readVectors(TRACE_VECTORS) as {
  readonly scheme: string
  readonly tenant_id: string
  readonly chain: ReadonlyArray<{
    readonly stored: string
    readonly core_jcs: string
    readonly details_jcs: string | null
  }>
  readonly erased: ReadonlyArray<string>
  readonly broken: ReadonlyArray<{
    readonly name: string
    readonly at_sequence: number
    readonly stored: ReadonlyArray<string>
  }>
}

const stored = vectors.chain.map((vector) => vector.stored)
const factOf = (text: string): TraceFact => parseFact(text)!

/** Sequence of the first fact with which a chain is no longer what it should be. */
const firstBreak = (texts: ReadonlyArray<string>): number | undefined => {
  const numbers = new Map<string, number>()
  const all = texts.map(factOf)
  let before: TraceFact | undefined
  for (const [place, text] of texts.entries()) {
    const recomputed = recomputeFact(text)!
    const { fact } = recomputed
    const number = (numbers.get(fact.execution_id) ?? 0) + 1
    numbers.set(fact.execution_id, number)
    const isExcused = all.some(
      (other) =>
        other.type === "execution.erased"
        && other.execution_id === fact.execution_id
        && other.fact_number > fact.fact_number
        && other.created_at === fact.erased_at
    )
    const isWhole =
      recomputed.contentHash === fact.content_hash
      && recomputed.hash === fact.hash
      && (fact.details === undefined || recomputed.detailsHash === fact.details_hash)
      && (fact.details_hash === undefined || fact.details !== undefined || isExcused)
      && fact.chain_sequence === place + 1
      && fact.fact_number === number
      && fact.prev_hash === (before?.hash ?? GENESIS_HASH)
    if (!isWhole) return fact.chain_sequence
    before = fact
  }
  return undefined
}

describe("the vectors of traces", () => {
  it("hold facts of every type, with details and without", () => {
    assert.strictEqual(vectors.scheme, TRACE_SCHEME)
    const types = new Set(stored.map((text) => factOf(text).type))
    assert.sameMembers([...types], [...factTypes])
    assert.isTrue(vectors.chain.some(({ details_jcs }) => details_jcs === null))
  })

  it.each(vectors.chain)("are what is hashed and stored here: $stored", (vector) => {
    const { details_hash, details_salt, ...fact } = factOf(vector.stored)
    const details = fact.details as JsonObject | undefined
    const text = details === undefined ? null : canonicalize(details)
    assert.strictEqual(text, vector.details_jcs)
    assert.strictEqual(factCoreText(fact as TraceFact, details_hash), vector.core_jcs)
    const recomputed = recomputeFact(vector.stored)!
    assert.isTrue(recomputed.exact)
    assert.strictEqual(recomputed.detailsHash, details_hash)
    const { body, hash } = storeFact(
      fact as TraceFact,
      text === null ? undefined : { text, salt: details_salt!, hash: details_hash! },
      {
        tenantId: vectors.tenant_id,
        chainSequence: fact.chain_sequence,
        createdAt: fact.created_at,
        prevHash: fact.prev_hash
      }
    )
    assert.strictEqual(body, vector.stored)
    assert.strictEqual(hash, fact.hash)
    assert.isUndefined(faultInValue("trace-fact", Buffer.from(vector.stored)))
  })

  it("hold a chain that is whole, and one that is when its details are gone", () => {
    assert.isUndefined(firstBreak(stored))
    assert.isUndefined(firstBreak(vectors.erased))
    for (const [place, erased] of vectors.erased.entries()) {
      const told = stored[place]!
      const { erased_at } = factOf(erased)
      assert.strictEqual(
        erased,
        erased_at === undefined ? told : eraseFact(factOf(told), erased_at)
      )
      assert.isTrue(recomputeFact(erased)!.exact)
    }
    assert.isAbove(vectors.erased.filter((text) => factOf(text).erased_at !== undefined).length, 5)
  })

  it.each(vectors.broken)("break where it is said: $name", ({ at_sequence, stored }) => {
    assert.strictEqual(firstBreak(stored), at_sequence)
  })

  it("are what the independent implementation makes and reproduces", () => {
    const path = vectorsPath(TRACE_VECTORS)
    const made = runIndependentTrace(["make"])
    assert.strictEqual(made.status, 0)
    assert.strictEqual(made.output, readFileSync(path, "utf8"))
    const checked = runIndependentTrace(["vectors", path])
    assert.strictEqual(checked.status, 0, checked.output)
  })

  it("are refused by the independent implementation when something in them is changed", () => {
    const text = readFileSync(vectorsPath(TRACE_VECTORS), "utf8")
    const changed = text.replace('\\"status\\":\\"FAILED\\"', '\\"status\\":\\"COMPLETED\\"')
    assert.notStrictEqual(changed, text)
    const { status } = runIndependentTrace(["vectors", "-"], changed)
    assert.strictEqual(status, 1)
  })
})
