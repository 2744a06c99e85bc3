/**
 * The lines of the repository by room, held against the budget in docs/size.json. A raise there is a
 * line of a diff, with its reason.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join, relative, sep } from "node:path"
import { parseJson } from "../domain/json/Json.ts"

/** What is written by hand, or made by a program, and counted. */
const COUNTED = /\.(?:ts|tsx|mts|mjs|js|css|py|html|java|go)$/
const GENERATED = `${sep}gen${sep}`
/** In no commit. */
const API_TYPES = join("src", "client", "gen")
const VERIFIERS = join("src", "exports", "verifiers")

/** The most lines of a room, and why there are so many where the reason is not its name. */
interface Budget {
  readonly lines: number
  readonly reason?: string
}

/** By room. */
export type Budgets = Readonly<Record<string, Budget>>

const repository = join(import.meta.dirname, "..", "..")

export const readBudgets = (): Budgets =>
  parseJson(readFileSync(join(repository, "docs", "size.json"), "utf8")) as Budgets

/** `src/<folder>`, `src` for the files beside them, `generated`, `verifiers`, or `test`. */
const roomOf = (file: string): string => {
  if (file.includes(GENERATED)) return "generated"
  if (file.startsWith(VERIFIERS)) return "verifiers"
  const [top, folder, ...rest] = file.split(sep)
  return top === "src" && rest.length > 0 ? `src/${folder}` : top!
}

const linesOf = (file: string): number => readFileSync(file, "utf8").split("\n").length - 1

/** Lines by room. */
export const sizes = (): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const top of ["src", "test"]) {
    const entries = readdirSync(join(repository, top), { recursive: true, withFileTypes: true })
    for (const entry of entries) {
      if (!entry.isFile() || !COUNTED.test(entry.name)) continue
      const file = join(entry.parentPath, entry.name)
      const path = relative(repository, file)
      if (path.startsWith(API_TYPES)) continue
      const room = roomOf(path)
      counts.set(room, (counts.get(room) ?? 0) + linesOf(file))
    }
  }
  return counts
}

/** One line for each room that is above its budget, or has none, or no files. */
export const overruns = (
  counts: ReadonlyMap<string, number>,
  budgets: Budgets
): ReadonlyArray<string> =>
  [...new Set([...counts.keys(), ...Object.keys(budgets)])].sort().flatMap((room) => {
    const [lines, budget] = [counts.get(room), budgets[room]?.lines]
    if (budget === undefined) return [`${room}: ${lines} lines, and no budget in docs/size.json`]
    if (lines === undefined) return [`${room}: it has a budget in docs/size.json, and no files`]
    return lines > budget ? [`${room}: ${lines} lines, ${lines - budget} above its budget`] : []
  })

/** A table for people. */
export const sizeTable = (counts: ReadonlyMap<string, number>, budgets: Budgets): string => {
  const row = (room: string, lines: number, budget: number) =>
    `  ${room.padEnd(16)}${String(lines).padStart(8)} of ${String(budget).padStart(7)}\n`
  const rooms = [...counts.keys()].sort()
  const sum = (of: (room: string) => number) => rooms.reduce((total, room) => total + of(room), 0)
  const linesIn = (room: string) => counts.get(room) ?? 0
  const budgetOf = (room: string) => budgets[room]?.lines ?? 0
  const rows = rooms.map((room) => row(room, linesIn(room), budgetOf(room)))
  return `lines\n${rows.join("")}${row("all", sum(linesIn), sum(budgetOf))}`
}

if (import.meta.main) {
  const [counts, budgets] = [sizes(), readBudgets()]
  process.stdout.write(sizeTable(counts, budgets))
  const found = overruns(counts, budgets)
  for (const line of found) process.stderr.write(`${line}\n`)
  if (found.length > 0) process.exitCode = 1
}
