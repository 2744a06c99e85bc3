/** The report of a check, in every verifier the same. */

/** Something in the pack that does not agree. */
export interface PackProblem {
  /** Name of the file, or of the checkpoint that was given. */
  readonly file: string
  /** The event, fact or tree size that it is about; null if it is about a file as a whole. */
  readonly sequence_number: number | null
  readonly reason: string
  readonly expected: string
  readonly actual: string
}

/** A key of the line of signing keys, as far as the pack and what was given show it. */
export interface PackKey {
  readonly name: string
  /** 8 hex digits. */
  readonly key_id: string
  readonly vkey: string
  /**
   * Why it counts: `root` the pack begins with it, `listed` it is known from elsewhere, `endorsed` by
   * a key that counts itself.
   */
  readonly trusted: "root" | "endorsed" | "listed" | "unendorsed"
  /** True if it was given, or has signed a checkpoint that was given. */
  readonly pinned: boolean
  /** Key id of the key before it. */
  readonly endorsed_by: string | null
  /** Key id of the key that it endorsed. */
  readonly next: string | null
  readonly retired_at: string | null
  /** Leaves of each tree when it was handed over to the next key; null: not known. */
  readonly handed_over: { readonly events: number | null; readonly traces: number | null }
  readonly signs_manifest: boolean
}

/** The answer of a check, in every verifier the same. */
export interface PackReport {
  readonly verdict: "authentic" | "consistent" | "tampered"
  readonly tenant_id: string | null
  readonly generated_at: string | null
  readonly bounds: unknown
  readonly events: number
  readonly links: number
  readonly first_sequence_number: number | null
  readonly last_sequence_number: number | null
  readonly head_hash: string | null
  /** Facts of execution traces, and links of their chain. */
  readonly facts: number
  readonly trace_links: number
  /** In the order of the line: keys that were given first. */
  readonly keys: ReadonlyArray<PackKey>
  /** The first 100, by sequence. */
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
