/** Changes of what a pack says that it holds, at random. */
import { HISTORY_FROM, HISTORY_TO } from "../../../src/domain/Timestamp.ts"
import type { TestChain } from "./Chains.ts"
import type { Dice } from "./Dice.ts"
import type { PackEditor } from "./PackEditor.ts"
import { checkpointOf } from "./PackWorld.ts"

const times: ReadonlyArray<string> = [HISTORY_FROM, HISTORY_TO, "2029-01-01T00:00:00.000000Z"]

/** What the manifest and the report say that the pack holds. */
export const changeClaims = (dice: Dice, pack: PackEditor, chain: TestChain): string => {
  const name = dice.one([
    "from",
    "to",
    "from_sequence",
    "to_sequence",
    "to_trace_sequence",
    "pruned",
    "head"
  ])
  const isTime = name === "from" || name === "to"
  const size = 1 + dice.below(chain.length)
  const { note, root_hash } = checkpointOf(chain, size)
  const value = isTime ? dice.one(times) : dice.one([null, size, size, 0, "1", true])
  const said: Record<string, unknown> = {
    pruned: { up_to_sequence: size, root_hash, checkpoint: note },
    head: chain.event(size),
    to_trace_sequence: value
  }
  try {
    for (const file of ["manifest.json", "verification.json"]) {
      pack.json(file, (told) => {
        if (name in said) told[name] = said[name]
        else told["bounds"][name] = value
      })
    }
    return `${name} is ${String(value)} or of ${size}`
  } catch {
    return `${name} can't be changed`
  }
}
