/**
 * Recomputes in the browser that an event is in the signed tree: details, content and link of the
 * event, the path through the Merkle tree, and the signature of the checkpoint. Nothing that the
 * service says about its own hashes is taken over; WebCrypto computes all of them.
 *
 * The rules are those of schemas/vectors/alk-chain-v1.json (chain), RFC 9162, section 2.1.3.2 (path)
 * and C2SP signed-note and tlog-checkpoint (signature).
 */

import type { AuditEvent, InclusionProof, PublicKeys } from "../../client/gen/Api.d.ts"
import { recompute, toRecord } from "../../client/verify/Recompute.ts"

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

const encoder = new TextEncoder()

const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

export const bytesOfHex = (hex: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))

const bytesOfBase64 = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (character) => character.charCodeAt(0))

export const sha256 = async (...parts: ReadonlyArray<Uint8Array>): Promise<string> => {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return hexOf(new Uint8Array(await crypto.subtle.digest("SHA-256", all)))
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

const LEAF = Uint8Array.of(0)
/** What the hash of two subtrees begins with. */
export const INNER = Uint8Array.of(1)

/** The way from a leaf to the root of a tree (RFC 9162, 2.1.3.2); undefined if it has no such length. */
const climb = async (
  leaf: string,
  leafIndex: number,
  treeSize: number,
  siblings: ReadonlyArray<string>
): Promise<ReadonlyArray<Level> | undefined> => {
  const levels: Array<Level> = []
  let [node, last, hash] = [leafIndex, treeSize - 1, leaf]
  for (const sibling of siblings) {
    if (last === 0) return undefined
    const isRight = node % 2 === 1 || node === last
    const pair = isRight ? [sibling, hash] : [hash, sibling]
    hash = await sha256(INNER, ...pair.map(bytesOfHex))
    levels.push({ side: isRight ? "left" : "right", sibling, hash })
    if (isRight && node % 2 === 0) {
      while (node % 2 === 0 && node !== 0) [node, last] = [node / 2, Math.floor(last / 2)]
    }
    ;[node, last] = [Math.floor(node / 2), Math.floor(last / 2)]
  }
  return last === 0 ? levels : undefined
}

const SIGNATURE = /^— (\S+) (\S+)$/

/**
 * Whether a key that the service publishes has signed the note, and for what tree. `tenant_id` is the
 * name of the tree: that of the tenant, with `/traces` after it for trace facts.
 */
export const signatureSteps = async (
  { checkpoint, tenant_id }: Pick<InclusionProof, "checkpoint" | "tenant_id">,
  root: string,
  keys: PublicKeys
): Promise<ReadonlyArray<Step>> => {
  const end = checkpoint.note.indexOf("\n\n") + 1
  const body = checkpoint.note.slice(0, end)
  const [origin = "", size = "", rootText = ""] = body.split("\n")
  const said = [
    step("signed log", tenant_id, origin.slice(origin.indexOf("/") + 1)),
    step("signed size", String(checkpoint.tree_size), size),
    step("signed root", root, hexOf(bytesOfBase64(rootText)))
  ]
  for (const line of checkpoint.note.slice(end + 1).split("\n")) {
    const [, , signature] = SIGNATURE.exec(line) ?? []
    if (signature === undefined) continue
    const bytes = bytesOfBase64(signature)
    const keyId = hexOf(bytes.slice(0, 4))
    const key = keys.keys.find(({ kid }) => kid === keyId)
    if (key === undefined || key.trusted === "unendorsed") continue
    const { crv, kty, x } = key
    const algorithm = { name: "Ed25519" }
    const imported = await crypto.subtle.importKey("jwk", { crv, kty, x }, algorithm, false, [
      "verify"
    ])
    const isValid = await crypto.subtle.verify(
      algorithm,
      imported,
      bytes.slice(4),
      encoder.encode(body)
    )
    return [...said, step("signature", isValid ? keyId : "is not valid", keyId)]
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
  const leaf = await sha256(LEAF, bytesOfHex(event.hash))
  const index = event.sequence_number - 1
  const levels = await climb(leaf, index, proof.checkpoint.tree_size, proof.proof)
  const root = levels === undefined ? "a path of another length" : (levels.at(-1)?.hash ?? leaf)
  const path = step("path", root, proof.checkpoint.root_hash)
  const steps = [...content, chained, path, ...(await signatureSteps(proof, root, keys))]
  return { steps, leaf, levels: levels ?? [], root, isTrue: steps.every(({ isTrue }) => isTrue) }
}
