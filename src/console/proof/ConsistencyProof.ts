/**
 * Recomputes in the browser that a signed tree only added to an older one (RFC 9162, 2.1.4.2), and
 * that published keys have signed both. Takes over no hash but those of the proof itself.
 */
import type { ConsistencyProof, PublicKeys } from "../../client/gen/Api.d.ts"
import { bytesOfHex, INNER, type Step, sha256, signatureSteps, step } from "./EventProof.ts"

export interface Consistency {
  readonly steps: ReadonlyArray<Step>
  readonly isTrue: boolean
}

/** Roots of both trees as the proof leads to them; undefined if it has not the length for the sizes. */
interface Roots {
  readonly first: string
  readonly second: string
}

const inner = (left: string, right: string): Promise<string> =>
  sha256(INNER, bytesOfHex(left), bytesOfHex(right))

const isPowerOfTwo = (size: number): boolean => Number.isInteger(Math.log2(size))

const half = (index: number): number => Math.floor(index / 2)

/**
 * The roots that a proof leads to. `firstRoot` is where it begins when the older tree is complete:
 * its root is then a node of the newer tree, and the proof does not repeat it.
 */
export const rootsOf = async (
  sizes: readonly [first: number, second: number],
  firstRoot: string,
  proof: ReadonlyArray<string>
): Promise<Roots | undefined> => {
  const [firstSize, secondSize] = sizes
  if (firstSize < 1 || firstSize > secondSize) return undefined
  if (firstSize === secondSize) {
    return proof.length === 0 ? { first: firstRoot, second: firstRoot } : undefined
  }
  const path = isPowerOfTwo(firstSize) ? [firstRoot, ...proof] : proof
  const [start, ...siblings] = path
  if (start === undefined) return undefined
  let [node, last] = [firstSize - 1, secondSize - 1]
  while (node % 2 === 1) [node, last] = [half(node), half(last)]
  let [first, second] = [start, start]
  for (const sibling of siblings) {
    if (last === 0) return undefined
    if (node % 2 === 1 || node === last) {
      ;[first, second] = [await inner(sibling, first), await inner(sibling, second)]
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)]
    } else {
      second = await inner(second, sibling)
    }
    ;[node, last] = [half(node), half(last)]
  }
  return last === 0 ? { first, second } : undefined
}

const named = (which: string, steps: ReadonlyArray<Step>): ReadonlyArray<Step> =>
  steps.map((one) => ({ ...one, name: `${which}: ${one.name}` }))

/** `tree` is the name that both notes have to be about: tenant, or tenant and `/traces`. */
export const proveConsistency = async (
  tree: string,
  { first, proof, second }: ConsistencyProof,
  keys: PublicKeys
): Promise<Consistency> => {
  const roots = await rootsOf([first.tree_size, second.tree_size], first.root_hash, proof)
  const wrong = "a proof of another length"
  const steps = [
    step("path to the older root", roots?.first ?? wrong, first.root_hash),
    step("path to the newer root", roots?.second ?? wrong, second.root_hash),
    ...named(
      "older",
      await signatureSteps({ checkpoint: first, tenant_id: tree }, first.root_hash, keys)
    ),
    ...named(
      "newer",
      await signatureSteps({ checkpoint: second, tenant_id: tree }, second.root_hash, keys)
    )
  ]
  return { steps, isTrue: steps.every(({ isTrue }) => isTrue) }
}
