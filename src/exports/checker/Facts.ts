/** Facts of execution traces of a pack by themselves: their JSON and their hashes. */
import { faultOf } from "../../domain/events/HashChain.ts"
import { isObject } from "../../domain/json/Json.ts"
import { isFact, recomputedFact } from "../../domain/traces/FactText.ts"
import type { TraceFact } from "../../domain/traces/TraceFact.ts"
import { type Fault, otherBytes, wrong } from "./Findings.ts"
import { isSequence, jsonOfLine } from "./Lines.ts"

const isStringOrAbsent = (value: unknown): boolean =>
  value === undefined || typeof value === "string"

const areDetails = (value: unknown): boolean =>
  isObject(value)
  && [value["agent_name"], value["name"], value["trigger"]].every(isStringOrAbsent)
  && (value["metadata"] === undefined || isObject(value["metadata"]))

const WITH_START = ["execution.started", "span.started"]

/** The types that the check needs; `isFact` has those that hashing needs. */
const isPlacedFact = (value: unknown): value is TraceFact => {
  if (!isFact(value)) return false
  const said: Readonly<Record<string, unknown>> = { ...value }
  return (
    isSequence(value.fact_number)
    && isSequence(value.chain_sequence)
    && (value.type !== "span.event" || isSequence(value.sequence_number))
    && (!WITH_START.includes(value.type) || typeof said["started_at_given"] === "boolean")
    && (said["provisional"] === undefined || said["provisional"] === true)
    && (value.details === undefined || areDetails(value.details))
  )
}

/** The fact of a line, or undefined if it is not one. */
export const factOf = (line: string): TraceFact | undefined => jsonOfLine(line, isPlacedFact)

/** What is wrong with a fact by itself, or undefined. If its details may be gone is seen later. */
export const factFault = (line: string, fact: TraceFact, tenant: string): Fault | undefined => {
  if (fact.tenant_id !== tenant) return wrong("tenant", tenant, fact.tenant_id)
  const recomputed = recomputedFact(fact, line)
  const found = faultOf({ ...recomputed, event: fact }, undefined, fact.erased_at !== undefined)
  return found ?? (recomputed.exact ? undefined : otherBytes("fact"))
}
