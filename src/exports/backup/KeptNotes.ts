/**
 * Checkpoints that were kept outside of the service, as `alk chain keep` writes them, a line of
 * JSON each, or as the signed notes themselves.
 */
import type { KeptCheckpoint } from "../../domain/backup/BackupGap.ts"
import { chainOfTree } from "../../domain/chain/Chains.ts"
import { type OpenedCheckpoint, openNote } from "../../domain/chain/Checkpoint.ts"
import { isObject, parseJson } from "../../domain/json/Json.ts"
import { RecordUnreadable } from "../../domain/json/RecordFields.ts"

const noteOfLine = (line: string): string | undefined => {
  try {
    const value = parseJson(line)
    const note = isObject(value) ? value["note"] : undefined
    return typeof note === "string" ? note : undefined
  } catch {
    // A line that a crash has cut off.
    return undefined
  }
}

/** The notes in a text: of lines of JSON, or of one note. */
export const notesIn = (text: string): ReadonlyArray<string> =>
  text.trimStart().startsWith("{")
    ? text.split("\n").flatMap((line) => noteOfLine(line) ?? [])
    : [text]

/** Whose tree it is, by the origin: `<service>/<tree>`. */
const keptOf = (
  serviceName: string,
  { origin, rootHash, treeSize }: OpenedCheckpoint
): KeptCheckpoint => {
  if (!origin.startsWith(`${serviceName}/`)) {
    throw new RecordUnreadable(
      `the checkpoint is of ${origin}, but the backup is of the service ${serviceName}`
    )
  }
  const { chain, tenantId } = chainOfTree(origin.slice(serviceName.length + 1))
  return { tenantId, chain, treeSize, rootHash }
}

/**
 * The checkpoints of a kept file.
 * @throws RecordUnreadable if there is none, or one that no known key has signed
 */
export const keptCheckpoints = (
  text: string,
  serviceName: string,
  vkeys: ReadonlyArray<string>
): ReadonlyArray<KeptCheckpoint> => {
  const notes = notesIn(text)
  if (notes.length === 0) throw new RecordUnreadable("it holds no checkpoint")
  return notes.map((note) => {
    const opened = openNote(note, vkeys)
    if ("refusal" in opened) throw new RecordUnreadable(`a checkpoint in it: ${opened.message}`)
    return keptOf(serviceName, opened.checkpoint)
  })
}
