/**
 * Recomputes in the browser that a signed tree only added to an older one (RFC 9162, 2.1.4.2), and
 * that published keys have signed both. Takes over no hash but those of the proof itself.
 */
import type { ConsistencyProof, PublicKeys } from "../../client/gen/Api.d.ts"
import { rootsOfProof } from "../../domain/chain/TreeShape.ts"
import { nodeOf, type Step, signatureSteps, step } from "./EventProof.ts"

export interface Consistency {
  readonly steps: ReadonlyArray<Step>
  readonly isTrue: boolean
}

const named = (which: string, steps: ReadonlyArray<Step>): ReadonlyArray<Step> =>
  steps.map((one) => ({ ...one, name: `${which}: ${one.name}` }))

/** `tree` is the name that both notes have to be about: tenant, or tenant and `/traces`. */
export const proveConsistency = async (
  tree: string,
  { first, proof, second }: ConsistencyProof,
  keys: PublicKeys
): Promise<Consistency> => {
  const sizes = { first: first.tree_size, second: second.tree_size }
  const roots = rootsOfProof({ ...sizes, firstRoot: first.root_hash, proof }, nodeOf)
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
