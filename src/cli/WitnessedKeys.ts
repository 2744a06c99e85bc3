/**
 * Whether the key of a new checkpoint may have signed it, by what a witness can know: the notes that it
 * kept, and those that the service lists. The rule is that of verifiers; nothing here keeps or writes.
 */
import type { Client } from "../client/Client.ts"
import { type OpenedCheckpoint, openNote } from "../domain/chain/Checkpoint.ts"
import { checkpointRefusal, handOversIn } from "../domain/chain/KeyLine.ts"
import type { CheckedKey } from "../domain/chain/KeyStandings.ts"

/** Checkpoints of a page: the most that the service gives. */
const PAGE = 100

export interface Witnessed {
  readonly chain: "events" | "traces"
  /** All keys that are known, with what each counts for. */
  readonly line: ReadonlyArray<CheckedKey>
  /** The checkpoint that was kept last. */
  readonly last: { readonly note: string; readonly tree_size: number } | undefined
}

/** Listed notes of trees that are larger than what was kept last. */
const newerNotes = async (
  client: Pick<Client, "request">,
  { chain, last }: Witnessed
): Promise<ReadonlyArray<string>> => {
  const notes: Array<string> = []
  let page = {}
  for (;;) {
    const { checkpoints } = await client.request("GET /v1/chain/checkpoints", {
      query: { chain, limit: PAGE, ...page }
    })
    const newer = checkpoints.filter(({ tree_size }) => tree_size > (last?.tree_size ?? 0))
    notes.push(...newer.map(({ note }) => note))
    if (newer.length < PAGE) return notes
    page = { before_size: newer.at(-1)!.tree_size }
  }
}

/** The key furthest from `first` along the line that has signed one of the notes. */
const newestSigner = (
  line: ReadonlyArray<CheckedKey>,
  first: CheckedKey,
  notes: ReadonlyArray<string>
): string => {
  let newest = first.vkey
  const seen = new Set<string>()
  for (let at = first.next; at !== undefined && !seen.has(at); ) {
    const vkey = at
    seen.add(vkey)
    if (notes.some((note) => "checkpoint" in openNote(note, [vkey]))) newest = vkey
    at = line.find((one) => one.vkey === vkey)?.next
  }
  return newest
}

/**
 * Why none of its keys may have signed the newest checkpoint; undefined if one may. The service is
 * asked for other notes only where a key that was replaced has signed it.
 */
export const signerRefusal = async (
  client: Pick<Client, "request">,
  witnessed: Witnessed,
  note: string,
  opened: OpenedCheckpoint
): Promise<string | undefined> => {
  const { last, line } = witnessed
  const { origin } = opened
  const signers = line.filter(({ keyId }) => opened.keyIds.includes(keyId))
  const retired = signers.find(({ next }) => next !== undefined)
  if (retired === undefined)
    return checkpointRefusal(line, { origin, handOversBy: () => [] }, opened)
  const kept = last === undefined ? [] : [last.note]
  const notes = [...kept, note, ...(await newerNotes(client, witnessed))]
  const signer = newestSigner(line, retired, notes)
  return checkpointRefusal(line, { origin, handOversBy: handOversIn(notes), signer }, opened)
}
