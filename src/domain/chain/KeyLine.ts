/** The line of signing keys with its signatures: statements and hand-overs, made and opened. */
import type { Chain } from "./Chains.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  type OpenedCheckpoint,
  openNote,
  openText,
  type Signer,
  signNote,
  vkeyParts
} from "./Checkpoint.ts"
import {
  type CheckedKey,
  ENDORSEMENT_FORMAT,
  type Endorsement,
  endorsementIn,
  type LineInput,
  NEXT_KEY,
  refusalOf,
  standingsOf,
  type TreeOfKeys
} from "./KeyStandings.ts"
import type { Frontier } from "./MerkleTree.ts"

/** The statement of a key that the next one is its successor: a C2SP signed note. */
export const endorse = (signer: Signer, nextVkey: string, time: string): string =>
  signNote(
    signer,
    [ENDORSEMENT_FORMAT, signer.name, signer.keyId, nextVkey, time]
      .map((line) => `${line}\n`)
      .join("")
  )

/** What a statement says; undefined unless this key signed it and it names the key. */
export const openEndorsement = (note: string, vkey: string): Endorsement | undefined => {
  const opened = openText(note, [vkey])
  if ("refusal" in opened) return undefined
  const { keyId, name } = vkeyParts(vkey)
  const said = endorsementIn(opened.text)
  return said?.serviceName === name && said.keyId === keyId ? said : undefined
}

/** The last checkpoint of a tree by this key: it names the key that goes on. */
export const handOver = (
  signer: Signer,
  serviceName: string,
  tenantId: string,
  tree: Frontier,
  createdAt: string,
  nextVkey: string,
  chain: Chain = "events"
): CheckpointRecord => {
  const extensions = [`${NEXT_KEY} ${nextVkey}`]
  return makeCheckpoint(signer, serviceName, tenantId, tree, createdAt, chain, extensions)
}

/**
 * The standing of each key, in the order given, pinned keys that are not listed last.
 * @throws VkeyInvalid if one of the keys is none
 */
export const keyLine = (input: LineInput): ReadonlyArray<CheckedKey> => {
  for (const vkey of [...input.keys.map(({ vkey }) => vkey), ...input.pinned]) vkeyParts(vkey)
  return standingsOf(input, openEndorsement)
}

/** The checkpoints by a key among notes with which keys have handed a tree over. */
export const handOversIn =
  (notes: ReadonlyArray<string>): TreeOfKeys["handOversBy"] =>
  (vkey) =>
    notes.flatMap((note) => {
      const opened = openNote(note, [vkey])
      return "refusal" in opened ? [] : [opened.checkpoint]
    })

/** Why none of the keys that signed a checkpoint may have; undefined if one of them may. */
export const checkpointRefusal = (
  line: ReadonlyArray<CheckedKey>,
  tree: TreeOfKeys,
  { keyIds, rootHash, treeSize }: OpenedCheckpoint
): string | undefined => {
  let refusal: string | undefined = "its key is not published"
  for (const { keyId, vkey } of line) {
    if (!keyIds.includes(keyId)) continue
    refusal = refusalOf(line, tree, { vkey, treeSize, rootHash })
    if (refusal === undefined) return undefined
  }
  return refusal
}
