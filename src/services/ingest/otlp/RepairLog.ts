/** The repairs of one span, resource or scope: a few by name, all of them by number. */
import { finish, type Sliced } from "../../../domain/Slices.ts"
import {
  REPAIRS_NAMED_MAX,
  type Repair,
  type RepairCode,
  repairRules
} from "../../../domain/traces/Repairs.ts"
import { hashAsSent, isBroken, mended, mendedInSteps } from "./BrokenText.ts"

/** Characters of a path, and of what was sent. */
const TEXT_LENGTH_MAX = 256

/** Where something is: written only for what is repaired, since most is not. */
export type Path = () => string

const shortened = (text: string): string =>
  mended(text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}…` : text)

/** A repair that is named, and the text as sent whose hash it does not have yet. */
interface Named {
  repair: Repair
  unhashed: string | undefined
}

export class RepairLog {
  readonly #named: Array<Named> = []
  /** Those that are not named one by one. */
  readonly #counted = new Map<RepairCode, { readonly path: string; count: number }>()

  /** A repair; of `sent` its text is kept if that is short, else the beginning and a hash. */
  add(code: RepairCode, path: Path, sent?: string): void {
    const isLong = sent !== undefined && sent.length > TEXT_LENGTH_MAX
    this.#add(code, path, sent, isLong ? sent : undefined)
  }

  /** A text that can be stored. */
  *text(text: string, path: Path): Sliced<string> {
    if (!isBroken(text)) return text
    this.#add("broken_text", path, undefined, text)
    return yield* mendedInSteps(text)
  }

  /** Makes the hashes that are missing, which is done at once where it was not done in steps. */
  *hashed(): Sliced<void> {
    for (const named of this.#named) {
      if (named.unhashed === undefined) continue
      named.repair = { ...named.repair, sha256: yield* hashAsSent(named.unhashed) }
      named.unhashed = undefined
    }
  }

  /** In the order in which they were made; undefined if there are none. */
  get all(): ReadonlyArray<Repair> | undefined {
    if (this.#named.length === 0) return undefined
    finish(this.hashed())
    const counted = [...this.#counted].map(([code, rest]): Repair => ({ code, ...rest }))
    return [...this.#named.map(({ repair }) => repair), ...counted]
  }

  /** How many there are, by code. */
  counts(): ReadonlyMap<RepairCode, number> {
    const counts = new Map<RepairCode, number>()
    for (const { code, count = 1 } of this.all ?? []) {
      counts.set(code, (counts.get(code) ?? 0) + count)
    }
    return counts
  }

  /** Those of something that this is a part of. */
  inherit(other: RepairLog): void {
    for (const repair of other.all ?? []) this.#take(repair)
  }

  #add(code: RepairCode, path: Path, sent?: string, unhashed?: string): void {
    const known = this.#counted.get(code)
    if (known !== undefined) known.count += 1
    else {
      const said = sent === undefined ? {} : { sent: shortened(sent) }
      this.#take({ code, path: shortened(path()), ...said }, unhashed)
    }
  }

  #take(repair: Repair, unhashed?: string): void {
    const { code, count = 1, path } = repair
    const known = this.#counted.get(code)
    if (known !== undefined) known.count += count
    else if (this.#named.length < REPAIRS_NAMED_MAX && count === 1) {
      this.#named.push({ repair, unhashed })
    } else this.#counted.set(code, { path, count })
  }
}

/** What was repaired, for people. */
export const describeRepairs = (repairs: ReadonlyArray<Repair>, most: number): string => {
  const named = repairs
    .slice(0, most)
    .map(({ code, path }) => `${path}: ${code}: ${repairRules[code]}`)
  const all = repairs.reduce((sum, { count = 1 }) => sum + count, 0)
  return [...named, ...(all > named.length ? [`and ${all - named.length} more`] : [])].join(" ")
}
