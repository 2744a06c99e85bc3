/**
 * Recomputes in the browser that an event is in the signed tree: details, content and link of the
 * event, the path through the Merkle tree, and the signature of the checkpoint. Nothing that the
 * service says about its own hashes is taken over.
 *
 * The rules are those of schemas/vectors/alk-chain-v1.json (chain), RFC 9162, section 2.1.3.2 (path)
 * and C2SP signed-note and tlog-checkpoint (signature).
 */

import type { AuditEvent, InclusionProof, PublicKeys } from "../../client/gen/Api.d.ts"
import { recompute, toRecord } from "../../client/verify/Recompute.ts"
import { bytesOfHex, hexOf, utf8 } from "../../domain/Bytes.ts"
import { claimIn } from "../../domain/chain/NoteText.ts"
import { rootOfProof } from "../../domain/chain/TreeShape.ts"
import { verifyEd25519 } from "../../exports/checker/Ed25519ByHand.ts"
import { rawOfJwk } from "../../exports/checker/Keys.ts"
import { noteOf } from "../../exports/checker/Notes.ts"
import { leafHash, nodeHash } from "../../exports/checker/Tree.ts"

export interface Step {
  readonly name: string
  readonly isTrue: boolean
  /** What was computed, and what the record says; the same if it is true. */
  readonly computed: string
  readonly stated: string
}

/** A hash on the way up, and the one beside it. */
export interface Level {
  readonly side: "left" | "right"
  readonly sibling: string
  readonly hash: string
}

export interface EventProof {
  readonly steps: ReadonlyArray<Step>
  readonly leaf: string
  readonly levels: ReadonlyArray<Level>
  readonly root: string
  readonly isTrue: boolean
}

export const step = (name: string, computed: string, stated: string): Step => ({
  name,
  computed,
  stated,
  isTrue: computed === stated
})

const contentSteps = async (event: AuditEvent): Promise<ReadonlyArray<Step>> => {
  const found = await recompute(toRecord(event))
  const { contentHash, detailsHash, hasDetails, hash } = found
  return [
    ...(hasDetails ? [step("details", detailsHash ?? "none", event.details_hash ?? "none")] : []),
    step("content", contentHash, event.content_hash),
    step("link", hash, event.hash)
  ]
}

/** The hash of two subtrees, in hex digits. */
export const nodeOf = (left: string, right: string): string =>
  hexOf(nodeHash(bytesOfHex(left), bytesOfHex(right)))

/**
 * Whether a key that the service publishes has signed the note, and for what tree. `tenant_id` is the
 * name of the tree: that of the tenant, with `/traces` after it for trace facts.
 */
export const signatureSteps = async (
  { checkpoint, tenant_id }: Pick<InclusionProof, "checkpoint" | "tenant_id">,
  root: string,
  keys: PublicKeys
): Promise<ReadonlyArray<Step>> => {
  const note = noteOf(checkpoint.note)
  const { origin = "", rootHash = "", treeSize = "" } = (note && claimIn(note.text)) ?? {}
  const said = [
    step("signed log", tenant_id, origin.slice(origin.indexOf("/") + 1)),
    step("signed size", String(checkpoint.tree_size), String(treeSize)),
    step("signed root", root, rootHash)
  ]
  for (const { bytes, id } of note?.signatures ?? []) {
    const key = keys.keys.find(({ kid }) => kid === id)
    const raw = key === undefined || key.trusted === "unendorsed" ? undefined : rawOfJwk(key.x)
    if (note === undefined || raw === undefined) continue
    const isValid = await verifyEd25519(raw, utf8.encode(note.text), bytes)
    return [...said, step("signature", isValid ? id : "is not valid", id)]
  }
  return [...said, step("signature", "no key that counts", checkpoint.key_id)]
}

/** True where this browser can compute at all: WebCrypto is for https and loopback only. */
export const canProve = (): boolean => globalThis.crypto?.subtle !== undefined

/**
 * Recomputes everything. `previous` is the event before it, undefined for the first. Rejects where
 * the browser has no WebCrypto or no Ed25519.
 */
export const proveEvent = async (
  event: AuditEvent,
  previous: AuditEvent | undefined,
  proof: InclusionProof,
  keys: PublicKeys
): Promise<EventProof> => {
  const content = await contentSteps(event)
  const before = previous === undefined ? "0".repeat(64) : previous.hash
  const chained = step("event before", event.prev_hash, before)
  const leaf = hexOf(leafHash(event.hash))
  const levels: Array<Level> = []
  const root = rootOfProof(
    {
      leaf,
      index: event.sequence_number - 1,
      size: proof.checkpoint.tree_size,
      proof: proof.proof
    },
    (left, right) => {
      const isRight = right === (levels.at(-1)?.hash ?? leaf)
      const hash = nodeOf(left, right)
      levels.push({ side: isRight ? "left" : "right", sibling: isRight ? left : right, hash })
      return hash
    }
  )
  const reached = root ?? "a path of another length"
  const path = step("path", reached, proof.checkpoint.root_hash)
  const steps = [...content, chained, path, ...(await signatureSteps(proof, reached, keys))]
  return {
    steps,
    leaf,
    levels: root === undefined ? [] : levels,
    root: reached,
    isTrue: steps.every(({ isTrue }) => isTrue)
  }
}
