/**
 * One stored trace fact as an example of the published contracts: the first of its chain, with
 * details, all hashes true. Made by the functions that make the real ones.
 */
import { GENESIS_HASH } from "../domain/chain/Chains.ts"
import { canonicalize } from "../domain/json/CanonicalJson.ts"
import { factDetailsHash, storeFact } from "../domain/traces/FactText.ts"

const text = canonicalize({ agent_name: "Research agent", metadata: { model: "large" } })
const salt = "000102030405060708090a0b0c0d0e0f"

const place = {
  tenantId: "acme",
  chainSequence: 1,
  createdAt: "2026-11-21T10:00:01.204711Z",
  prevHash: GENESIS_HASH
}

/** The value of the record, byte for byte. */
export const exampleFactValue: string = storeFact(
  {
    type: "execution.started",
    execution_id: "019aa5b1-7c00-7000-8000-000000000001",
    fact_number: 1,
    agent_id: "agent_1",
    root_span_id: "019aa5b1-7c00-7000-8000-000000000002",
    source: "api",
    started_at: "2026-11-21T10:00:01.000001Z",
    started_at_given: true
  },
  { text, salt, hash: factDetailsHash(salt, text) },
  place
).body

/** What its headers are made from. */
export const exampleFactPlace = place
