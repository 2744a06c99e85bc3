/**
 * A digest of the ends of many chains: no other ends have the same one. It is of their sum, from which
 * an end that moves is taken out and to which it is added anew: the others are not looked at.
 */
import { hash } from "node:crypto"
import { sha256Hex } from "../Identifiers.ts"
import { type Chain, type Head, treeNameOf } from "./Chains.ts"

/** A sum of fewer bits can be hit by making up many chains. */
const SUM_BITS = 2_048

type End = Pick<Head, "sequence_number" | "hash">
type Ends = ReadonlyMap<string, End>

const summandOf = (name: string, end: End): bigint => {
  const text = `${end.sequence_number} ${end.hash} ${name}`
  return BigInt(`0x${hash("shake256", text, { outputLength: SUM_BITS / 8 })}`)
}

/** The sum once chains end with `ends`, and no more as they did before. By tenant. */
export const movedSum = (sum: bigint, chain: Chain, ends: Ends, before: Ends): bigint => {
  let moved = sum
  for (const [tenantId, end] of ends) {
    const name = treeNameOf(tenantId, chain)
    const known = before.get(tenantId)
    if (known !== undefined) moved -= summandOf(name, known)
    moved += summandOf(name, end)
  }
  return BigInt.asUintN(SUM_BITS, moved)
}

const NONE: Ends = new Map()

/** The sum of all ends of both chains. */
export const sumOfHeads = (heads: Ends, traceHeads: Ends): bigint =>
  movedSum(movedSum(0n, "events", heads, NONE), "traces", traceHeads, NONE)

/** 64 hex digits. */
export const digestOfSum = (sum: bigint): string => sha256Hex(sum.toString(16))
