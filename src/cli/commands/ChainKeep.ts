/**
 * `alk chain keep`: a witness. Fetches the newest signed checkpoint of each chain, checks it against
 * what was kept before, and appends it. Trusts the keys that it saw first, and those they endorsed.
 */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { ApiFailure } from "../../client/ApiFailure.ts"
import type { Client } from "../../client/Client.ts"
import { openNote } from "../../domain/chain/Checkpoint.ts"
import { keyLine } from "../../domain/chain/KeyLine.ts"
import { type CheckedKey, isTrusted, type LineKey } from "../../domain/chain/KeyStandings.ts"
import { verifyConsistency } from "../../domain/chain/MerkleTree.ts"
import { parseJson } from "../../domain/json/Json.ts"
import type { Choice } from "../Contexts.ts"
import { CommandFailure, EXIT } from "../Failure.ts"
import { connect } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { signerRefusal, type Witnessed } from "../WitnessedKeys.ts"

const CHAINS = ["events", "traces"] as const
type ChainName = (typeof CHAINS)[number]

/** A checkpoint as it is kept, a line each. */
interface Kept {
  readonly kept_at: string
  readonly origin: string
  readonly tree_size: number
  readonly root_hash: string
  readonly note: string
}

const inconsistent = (message: string): CommandFailure =>
  new CommandFailure(
    EXIT.failed,
    message,
    "keep the folder as it is: its notes are signed evidence; ask who runs the service"
  )

const logOf = (folder: string, chain: ChainName): string => join(folder, `${chain}.ndjson`)

/** The checkpoint that was kept last; a line that a crash has cut off is not one. */
export const lastKept = (file: string): Kept | undefined => {
  if (!existsSync(file)) return undefined
  for (const line of readFileSync(file, "utf8").split("\n").reverse()) {
    try {
      if (line !== "") return parseJson(line) as Kept
    } catch {}
  }
  return undefined
}

/** Published keys with their endorsements. */
const publishedKeys = async (client: Client): Promise<ReadonlyArray<LineKey>> => {
  const { keys, vkeys } = await client.request("GET /.well-known/alk-keys.json")
  return vkeys.map((vkey) => {
    const endorsement = keys.find(({ kid }) => vkey.includes(`+${kid}+`))?.endorsement
    return endorsement === undefined ? { vkey } : { vkey, endorsement }
  })
}

/** The keys of the first time; written then, and never changed. */
const pinnedKeys = (folder: string, published: ReadonlyArray<LineKey>): ReadonlyArray<string> => {
  const file = join(folder, "keys.json")
  if (existsSync(file)) return parseJson(readFileSync(file, "utf8")) as ReadonlyArray<string>
  const vkeys = published.map(({ vkey }) => vkey)
  writeFileSync(`${file}.part`, `${JSON.stringify(vkeys, null, 2)}\n`)
  renameSync(`${file}.part`, file)
  return vkeys
}

const newest = async (client: Client, chain: ChainName): Promise<string | undefined> => {
  try {
    const answer = await client.request("GET /v1/chain/checkpoints/latest", { query: { chain } })
    return answer.note
  } catch (error) {
    // Nothing of this chain is signed yet.
    if (error instanceof ApiFailure && error.status === 404) return undefined
    throw error
  }
}

/** The checkpoint of a note that a key has signed which may. Throws CommandFailure. */
const opened = async (client: Client, witnessed: Witnessed, note: string): Promise<Kept> => {
  const { chain, line } = witnessed
  const trusted = line.filter(isTrusted).map(({ vkey }) => vkey)
  const found = openNote(note, trusted)
  if ("refusal" in found) throw inconsistent(`${chain}: ${found.message}`)
  const refusal = await signerRefusal(client, witnessed, note, found.checkpoint)
  if (refusal !== undefined) throw inconsistent(`${chain}: the newest checkpoint: ${refusal}`)
  const { origin, rootHash, treeSize } = found.checkpoint
  const kept_at = new Date().toISOString()
  return { kept_at, origin, tree_size: treeSize, root_hash: rootHash, note }
}

const bytesOf = (hex: string): Buffer => Buffer.from(hex, "hex")

/** Throws CommandFailure unless the new tree only adds to the one that was kept. */
const checkGrowth = async (client: Client, chain: ChainName, last: Kept, next: Kept) => {
  if (last.origin !== next.origin) {
    throw inconsistent(`${chain}: is the tree ${next.origin}, but ${last.origin} was kept`)
  }
  if (next.tree_size < last.tree_size) {
    throw inconsistent(`${chain}: has ${next.tree_size} leaves, but ${last.tree_size} were signed`)
  }
  const proof =
    next.tree_size === last.tree_size || last.tree_size === 0
      ? []
      : await client
          .request("GET /v1/chain/proofs/consistency", {
            query: { chain, first: last.tree_size, second: next.tree_size }
          })
          .then((answer) => answer.proof)
  const holds = verifyConsistency({
    first: last.tree_size,
    firstRoot: bytesOf(last.root_hash),
    second: next.tree_size,
    secondRoot: bytesOf(next.root_hash),
    proof: proof.map(bytesOf)
  })
  if (holds) return
  throw inconsistent(
    `${chain}: the tree of ${next.tree_size} does not add to the tree of ${last.tree_size} that was `
      + "kept: the history was rewritten"
  )
}

/** What was found of one chain; a checkpoint that does not fit is kept apart, as evidence. */
const keepOne = async (
  client: Client,
  folder: string,
  chain: ChainName,
  line: ReadonlyArray<CheckedKey>
): Promise<Kept | undefined> => {
  const note = await newest(client, chain)
  const last = lastKept(logOf(folder, chain))
  if (note === undefined) {
    if (last === undefined) return undefined
    throw inconsistent(`${chain}: has no checkpoint, but ${last.tree_size} leaves were signed`)
  }
  try {
    const next = await opened(client, { chain, line, last }, note)
    if (last !== undefined) await checkGrowth(client, chain, last, next)
    if (last?.tree_size !== next.tree_size) {
      // A crash may have cut the last line off.
      appendFileSync(logOf(folder, chain), `\n${JSON.stringify(next)}\n`, { flush: true })
    }
    return next
  } catch (error) {
    if (error instanceof CommandFailure) {
      writeFileSync(join(folder, `${chain}.inconsistent-${Date.now()}.txt`), note)
    }
    throw error
  }
}

/** `alk chain keep`. */
export const keepChain = async (folder: string, options: OutputOptions & Choice): Promise<void> => {
  const client = await connect(options)
  await withOutput(options, async (output) => {
    mkdirSync(folder, { recursive: true })
    const keys = await publishedKeys(client)
    const line = keyLine({ keys, pinned: pinnedKeys(folder, keys), believesRoots: false })
    for (const chain of CHAINS) {
      const kept = await keepOne(client, folder, chain, line)
      if (kept === undefined) output.note(`${chain}: nothing is signed yet`)
      else if (output.isHuman) await output.write(`${chain}: ${kept.tree_size} leaves kept\n`)
      else await output.document({ chain, ...kept })
    }
  })
}
