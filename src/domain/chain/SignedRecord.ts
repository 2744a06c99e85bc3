/** A record of a checkpoint beside the signed note in it: only what the note says is signed. */
import {
  type CheckpointRecord,
  type OpenedCheckpoint,
  openNote,
  treeOfCheckpoint
} from "./Checkpoint.ts"

/** True if a record of this tree repeats what its signed note says. */
export const matchesNote = (
  serviceName: string,
  tree: string,
  record: CheckpointRecord,
  note: OpenedCheckpoint
): boolean =>
  note.origin === `${serviceName}/${tree}`
  && treeOfCheckpoint(record) === tree
  && record.tree_size === note.treeSize
  && record.root_hash === note.rootHash
  && note.keyIds.includes(record.key_id)

/**
 * What the note of a record says; undefined unless one of the keys signed it and it says the same.
 */
export const openRecord = (
  serviceName: string,
  tree: string,
  record: CheckpointRecord,
  vkeys: ReadonlyArray<string>
): OpenedCheckpoint | undefined => {
  const opened = openNote(record.note, vkeys)
  return "checkpoint" in opened && matchesNote(serviceName, tree, record, opened.checkpoint)
    ? opened.checkpoint
    : undefined
}
