/**
 * The answer of every verification, and the words it is made of. Shapes only: what is found, others
 * find.
 */
export type BreakReason =
  | "content_mismatch"
  | "hash_mismatch"
  | "prev_hash_mismatch"
  | "sequence_gap"
  | "duplicate_sequence"
  | "tail_missing"
  | "checkpoint_mismatch"

export interface Break {
  readonly sequence_number: number
  readonly event_id: string | null
  readonly reason: BreakReason
  readonly expected: string
  readonly actual: string
}

/** A break of an execution. */
export interface TraceBreak extends Break {
  /** Place among the execution's own facts, where there is one. */
  readonly fact_number: number | null
}

/** Breaks that a report lists; it counts them all. */
export const BREAKS_MAX = 100

/** The whole supported history: what bounds mean when they are left out. */
export const HISTORY_FROM = "1970-01-01T00:00:00.000000Z"
export const HISTORY_TO = "2261-12-31T23:59:59.999999Z"

export interface VerifyReport {
  readonly valid: boolean
  readonly status: "valid" | "broken" | "incomplete" | "empty"
  readonly tenant_id: string
  /** `alk-chain-v1` of events, `alk-trace-v1` of trace facts. */
  readonly scheme: string
  readonly bounds: {
    readonly from: string
    readonly to: string
    readonly from_sequence: number | null
    readonly to_sequence: number | null
  }
  readonly events_checked: number
  readonly events_in_bounds: number
  readonly first_sequence_number: number | null
  readonly last_sequence_number: number | null
  readonly head: {
    readonly sequence_number: number
    readonly hash: string
    readonly created_at: string
  } | null
  readonly erased_events: number
  readonly assurance: "self_attested" | "signed" | "timestamped"
  /** Present where the chain leads to a checkpoint that the caller kept. */
  readonly origin?: "checked"
  /** What is no break, and a reader should know all the same. */
  readonly notices?: ReadonlyArray<string>
  readonly breaks: ReadonlyArray<Break>
  readonly breaks_total: number
  /** Members of what a caller kept that nothing here could be compared with; absent without any. */
  readonly unchecked?: ReadonlyArray<string>
  readonly verified_at: string
  readonly duration_ms: number
}

/**
 * The report on a tenant: `valid` is true only if both chains are valid, all other fields are about
 * the events, and the trace facts have a report of their own.
 */
export interface TenantReport extends VerifyReport {
  readonly traces?: VerifyReport
}

/** The report on both chains. */
export const bothOf = (events: VerifyReport, traces: VerifyReport): TenantReport => ({
  ...events,
  valid: events.valid && traces.valid,
  traces
})

/** A status, and whether it is valid. An incomplete check that found a break is broken. */
export const verdictOf = (
  breaksTotal: number,
  eventsChecked: number,
  isComplete: boolean
): Pick<VerifyReport, "status" | "valid"> => {
  if (breaksTotal > 0) return { status: "broken", valid: false }
  if (!isComplete) return { status: "incomplete", valid: false }
  return { status: eventsChecked === 0 ? "empty" : "valid", valid: true }
}

/** Breaks as they are found; the first ones by sequence number are kept. */
export class Breaks {
  readonly #found: Array<Break> = []
  #total = 0

  add(found: Break): void {
    this.#total += 1
    this.#found.push(found)
    if (this.#found.length < 2 * BREAKS_MAX) return
    this.#sort()
    this.#found.length = BREAKS_MAX
  }

  get total(): number {
    return this.#total
  }

  list(): ReadonlyArray<Break> {
    this.#sort()
    return this.#found.slice(0, BREAKS_MAX)
  }

  #sort(): void {
    this.#found.sort((left, right) => left.sequence_number - right.sequence_number)
  }
}
