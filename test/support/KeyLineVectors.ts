/**
 * The cases of `schemas/vectors/key-line.json`: keys made of fixed seeds, what they sign, and the
 * verdicts as they were written down by hand. Ed25519 is deterministic, so the file is too.
 */
import { makeCheckpoint, type Signer, signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { endorse, handOver } from "../../src/domain/chain/KeyLine.ts"
import type { KeyTrust, LineKey } from "../../src/domain/chain/KeyStandings.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"

export const KEY_LINE_VECTORS = "key-line.json"

const SERVICE = "alk"
const TENANT = "acme"
const ORIGIN = `${SERVICE}/${TENANT}`

export interface KeyLineCase {
  readonly name: string
  /** As the registry or `alk-keys.json` lists them, in this order. */
  readonly keys: ReadonlyArray<LineKey>
  readonly pinned: ReadonlyArray<string>
  readonly believes_roots: boolean
  /** Notes of the checkpoints of this tree that name a next key. */
  readonly hand_overs: ReadonlyArray<string>
  /** vkey of the key that signs the tree now; null: not known. */
  readonly signer: string | null
  readonly standings: ReadonlyArray<{
    readonly vkey: string
    readonly trusted: KeyTrust
    readonly endorsed_by: string | null
    readonly retired_at: string | null
  }>
  readonly checkpoints: ReadonlyArray<{
    readonly note: string
    readonly vkey: string
    readonly tree_size: number
    readonly root_hash: string
    readonly allowed: boolean
  }>
}

export interface KeyLineVectors {
  readonly scheme: "alk-key-line-v1"
  readonly origin: string
  readonly cases: ReadonlyArray<KeyLineCase>
}

const keyOf = (seed: number, name = SERVICE): Signer => signerOf(name, Buffer.alloc(32, seed))
const [a, b, c, x] = [keyOf(1), keyOf(2), keyOf(3), keyOf(9)] as const
const T1 = "2026-11-01T00:00:00.000000Z"
const T2 = "2026-12-01T00:00:00.000000Z"

/** A tree of so many leaves; `salt` makes another one of the same size. */
const treeOf = (size: number, salt = "0"): Frontier => {
  const tree = Frontier.empty()
  for (let leaf = 1; leaf <= size; leaf++) tree.append(`${salt}${leaf}`.padStart(64, "0"))
  return tree
}

const checkpoint = (signer: Signer, size: number, allowed: boolean, salt?: string) => {
  const made = makeCheckpoint(signer, SERVICE, TENANT, treeOf(size, salt), T2)
  const { note, root_hash, tree_size } = made
  return { note, vkey: signer.vkey, tree_size, root_hash, allowed }
}

const handedOver = (signer: Signer, next: Signer, size: number, tenant = TENANT): string =>
  handOver(signer, SERVICE, tenant, treeOf(size), T1, next.vkey).note

const standing = (
  { vkey }: Signer,
  trusted: KeyTrust,
  endorsedBy: Signer | null = null,
  retiredAt: string | null = null
) => ({ vkey, trusted, endorsed_by: endorsedBy?.keyId ?? null, retired_at: retiredAt })

const root = ({ vkey }: Signer): LineKey => ({ vkey, root: true })
const plain = ({ vkey }: Signer): LineKey => ({ vkey })
const endorsed = ({ vkey }: Signer, by: Signer, time = T1): LineKey => ({
  vkey,
  endorsement: endorse(by, vkey, time)
})

type Given = Pick<KeyLineCase, "name" | "keys" | "standings" | "checkpoints"> & Partial<KeyLineCase>

const caseOf = (given: Given): KeyLineCase => ({
  pinned: [],
  believes_roots: true,
  hand_overs: [],
  signer: null,
  ...given
})

const rotated = [root(a), endorsed(b, a)]
const rotatedStandings = [standing(a, "root", null, T1), standing(b, "endorsed", a)]

export const keyLineVectors: KeyLineVectors = {
  scheme: "alk-key-line-v1",
  origin: ORIGIN,
  cases: [
    caseOf({
      name: "the first key signs every size",
      keys: [root(a)],
      standings: [standing(a, "root")],
      checkpoints: [checkpoint(a, 1, true), checkpoint(a, 9, true)]
    }),
    caseOf({
      name: "after a rotation the old key signs up to the tree that it handed over",
      keys: rotated,
      hand_overs: [handedOver(a, b, 5)],
      standings: rotatedStandings,
      checkpoints: [
        checkpoint(a, 4, true),
        checkpoint(a, 5, true),
        checkpoint(a, 5, false, "7"),
        checkpoint(a, 6, false),
        checkpoint(b, 5, true),
        checkpoint(b, 6, true)
      ]
    }),
    caseOf({
      name: "a retired key signs no tree that began after it",
      keys: rotated,
      standings: rotatedStandings,
      checkpoints: [checkpoint(a, 1, false), checkpoint(b, 1, true)]
    }),
    caseOf({
      name: "until the next key signs a tree, the retired one still does",
      keys: rotated,
      signer: a.vkey,
      standings: rotatedStandings,
      checkpoints: [checkpoint(a, 7, true)]
    }),
    caseOf({
      name: "once the next key signs a tree, the retired one does not",
      keys: rotated,
      signer: b.vkey,
      standings: rotatedStandings,
      checkpoints: [checkpoint(a, 7, false), checkpoint(b, 7, true)]
    }),
    caseOf({
      name: "the smallest tree handed over counts, and only of this tree and to the successor",
      keys: rotated,
      hand_overs: [
        handedOver(a, b, 8),
        handedOver(a, b, 5),
        handedOver(a, b, 3, "other"),
        handedOver(a, x, 2),
        handedOver(x, b, 1)
      ],
      standings: rotatedStandings,
      checkpoints: [checkpoint(a, 5, true), checkpoint(a, 6, false)]
    }),
    caseOf({
      name: "two rotations",
      keys: [root(a), endorsed(b, a), endorsed(c, b, T2)],
      hand_overs: [handedOver(a, b, 3), handedOver(b, c, 6)],
      standings: [
        standing(a, "root", null, T1),
        standing(b, "endorsed", a, T2),
        standing(c, "endorsed", b)
      ],
      checkpoints: [
        checkpoint(a, 3, true),
        checkpoint(a, 4, false),
        checkpoint(b, 6, true),
        checkpoint(b, 7, false),
        checkpoint(c, 7, true)
      ]
    }),
    caseOf({
      name: "a key without an endorsement counts for nothing",
      keys: [root(a), plain(x)],
      standings: [standing(a, "root"), standing(x, "unendorsed")],
      checkpoints: [checkpoint(a, 2, true), checkpoint(x, 2, false)]
    }),
    caseOf({
      name: "a key that the verifier lists counts without an endorsement",
      keys: [root(a), plain(x)],
      pinned: [x.vkey],
      standings: [standing(a, "root"), standing(x, "listed")],
      checkpoints: [checkpoint(x, 2, true)]
    }),
    caseOf({
      name: "a key endorses one successor: the first that is listed",
      keys: [root(a), endorsed(b, a), endorsed(x, a)],
      standings: [
        standing(a, "root", null, T1),
        standing(b, "endorsed", a),
        standing(x, "unendorsed")
      ],
      checkpoints: [checkpoint(b, 2, true), checkpoint(x, 2, false)]
    }),
    caseOf({
      name: "an unendorsed key endorses nothing, and neither does a key itself",
      keys: [root(a), endorsed(x, x), endorsed(c, x)],
      standings: [standing(a, "root"), standing(x, "unendorsed"), standing(c, "unendorsed")],
      checkpoints: [checkpoint(x, 2, false), checkpoint(c, 2, false)]
    }),
    caseOf({
      name: "a statement for another key endorses nothing",
      keys: [root(a), { vkey: x.vkey, endorsement: endorse(a, b.vkey, T1) }],
      standings: [standing(a, "root"), standing(x, "unendorsed")],
      checkpoints: [checkpoint(a, 2, true), checkpoint(x, 2, false)]
    }),
    caseOf({
      name: "where roots are not believed, only pinned keys and what they endorse count",
      keys: [root(x), root(a), endorsed(b, a)],
      pinned: [a.vkey],
      believes_roots: false,
      hand_overs: [handedOver(a, b, 5)],
      standings: [
        standing(x, "unendorsed"),
        standing(a, "listed", null, T1),
        standing(b, "endorsed", a)
      ],
      checkpoints: [
        checkpoint(x, 2, false),
        checkpoint(a, 5, true),
        checkpoint(a, 6, false),
        checkpoint(b, 6, true)
      ]
    }),
    caseOf({
      name: "a pinned key that is not listed counts",
      keys: [],
      pinned: [a.vkey],
      believes_roots: false,
      standings: [standing(a, "listed")],
      checkpoints: [checkpoint(a, 3, true), checkpoint(b, 3, false)]
    })
  ]
}
