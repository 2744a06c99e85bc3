/**
 * What a check of an evidence pack has found so far: problems, what was checked and held, and what
 * the files can't show. Words and places only; the checks themselves are elsewhere.
 */

/** Problems that a report lists; it counts them all. */
export const PROBLEMS_MAX = 100

/** The names of the files of a pack that the checks look into. */
export const packFiles = {
  manifest: "manifest.json",
  signature: "manifest.sig",
  sums: "sha256sums.txt",
  verification: "verification.json",
  events: "events.ndjson",
  links: "links.ndjson",
  erasures: "erasures.ndjson",
  tree: "checkpoints/tree.json",
  proofs: "checkpoints/erasure-proofs.ndjson",
  keys: "keys/vkeys.txt"
} as const

/** Something in the pack that does not hold. */
export interface PackProblem {
  /** Name of the file, or of the checkpoint that was given. */
  readonly file: string
  /** The event that it is about; null if it is about a file as a whole. */
  readonly sequence_number: number | null
  readonly reason: string
  readonly expected: string
  readonly actual: string
}

/** Something wrong with one event or link. */
export interface Wrongness {
  readonly reason: string
  readonly expected: string
  readonly actual: string
}

/** The answer of a check, in every verifier the same. */
export interface PackReport {
  readonly verdict: "intact" | "tampered"
  readonly tenant_id: string | null
  readonly generated_at: string | null
  readonly bounds: unknown
  readonly events: number
  readonly links: number
  readonly first_sequence_number: number | null
  readonly last_sequence_number: number | null
  readonly head_hash: string | null
  /** The first PROBLEMS_MAX, by sequence. */
  readonly problems: ReadonlyArray<PackProblem>
  readonly problems_total: number
  readonly checked: ReadonlyArray<string>
  readonly not_established: ReadonlyArray<string>
}

/** A check that came to no verdict. */
export interface UnreadablePack {
  readonly verdict: "unreadable"
  readonly message: string
  readonly problems: readonly []
  readonly problems_total: 0
  readonly checked: readonly []
  readonly not_established: readonly []
}

export const unreadablePack = (message: string): UnreadablePack => ({
  verdict: "unreadable",
  message,
  problems: [],
  problems_total: 0,
  checked: [],
  not_established: []
})

export const mismatch = (
  what: string,
  expected: string | number | undefined,
  actual: string | number | undefined
): Wrongness => ({
  reason: "content_mismatch",
  expected: `${what} ${expected ?? "none"}`,
  actual: `${what} ${actual ?? "none"}`
})

/** "1 event", "2 events". */
export const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : "s"}`

/** "sequence 3", "sequences 3 to 5". */
export const sequences = (first: number, last: number): string =>
  first === last ? `sequence ${first}` : `sequences ${first} to ${last}`

export class PackFindings {
  readonly checked: Array<string> = []
  readonly open: Array<string> = []
  readonly #problems: Array<PackProblem> = []
  #total = 0

  get total(): number {
    return this.#total
  }

  problem(
    file: string,
    sequence: number | null,
    reason: string,
    expected: string,
    actual: string
  ): void {
    this.#total += 1
    if (this.#problems.length >= PROBLEMS_MAX) return
    this.#problems.push({ file, sequence_number: sequence, reason, expected, actual })
  }

  wrong(file: string, sequence: number | null, { actual, expected, reason }: Wrongness): void {
    this.problem(file, sequence, reason, expected, actual)
  }

  /** By sequence; what is about whole files first. */
  problems(): ReadonlyArray<PackProblem> {
    return [...this.#problems].sort(
      (left, right) => (left.sequence_number ?? 0) - (right.sequence_number ?? 0)
    )
  }
}
