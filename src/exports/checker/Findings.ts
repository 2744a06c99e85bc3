/** What a check found, and how values of a pack are shown in it. */
import { canonical } from "./Lines.ts"
import type { PackProblem } from "./Report.ts"

/** Problems that a report lists; it counts them all. */
const PROBLEMS_MAX = 100

/** What is wrong with a record. */
export interface Fault {
  readonly reason: string
  readonly expected: string
  readonly actual: string
}

export const shown = (value: unknown): string => {
  if (value === undefined || value === null) return "none"
  return typeof value === "string" ? value : canonical(value)
}

export const fault = (reason: string, expected: string, actual: string): Fault => ({
  reason,
  expected,
  actual
})

export const wrong = (what: string, expected: unknown, actual: unknown): Fault =>
  fault("content_mismatch", `${what} ${shown(expected)}`, `${what} ${shown(actual)}`)

/** A record in other bytes than those of its writer. */
export const otherBytes = (noun: string): Fault =>
  fault(
    "content_mismatch",
    `the bytes that the service writes for this ${noun}`,
    `the same ${noun} in other bytes, or with members that no hash covers`
  )

export const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : "s"}`

export const range = (first: number, last: number): string =>
  first === last ? `sequence ${first}` : `sequences ${first} to ${last}`

export class Findings {
  readonly problems: Array<PackProblem> = []
  total = 0
  readonly checked: Array<string> = []
  /** What these files can't show. */
  readonly open: Array<string> = []

  problem(
    file: string,
    sequence: number | null,
    reason: string,
    expected: string,
    actual: string
  ): void {
    this.total += 1
    if (this.problems.length >= PROBLEMS_MAX) return
    this.problems.push({ file, sequence_number: sequence, reason, expected, actual })
  }

  fault(file: string, sequence: number | null, { actual, expected, reason }: Fault): void {
    this.problem(file, sequence, reason, expected, actual)
  }

  /** What a file says of the pack against what was read. */
  differs(file: string, what: string, read: unknown, said: unknown): void {
    if ((read ?? null) === (said ?? null)) return
    const texts = [`${what} ${shown(read)}`, `${what} ${shown(said)}`] as const
    this.problem(file, null, "report_mismatch", ...texts)
  }

  /** Something is in the place of what a file has to hold. */
  mismatch(file: string, sequence: number | null, expected: string, actual = "something else") {
    this.problem(file, sequence, "content_mismatch", expected, actual)
  }
}
