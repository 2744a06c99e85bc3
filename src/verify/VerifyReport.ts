/** The report of every verification: its schemas, and how it is put together. */
import { Clock, Effect, Schema } from "effect"
import { SCHEME } from "../domain/events/HashChain.ts"
import { currentTime, HISTORY_FROM, HISTORY_TO } from "../domain/Timestamp.ts"
import { TRACE_SCHEME } from "../domain/traces/FactText.ts"

/** A report repeats stored values whatever they are, so times are texts of any form. */
export const Timestamp = Schema.String.annotate({
  description: "RFC 3339, UTC, microseconds.",
  format: "date-time",
  examples: ["2026-01-31T12:00:00.123456Z"]
})

export const Sequence = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
  description: "Place in the tenant's chain, from 1 without gaps.",
  format: "int64"
})

/** A bound as it was asked for, which may be before the first event. */
export const AskedSequence = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
  description: "As it was asked for.",
  format: "int64"
})

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const Scheme = Schema.Literals([SCHEME, TRACE_SCHEME]).annotate({
  description: `\`${SCHEME}\` of events, \`${TRACE_SCHEME}\` of trace facts.`
})

const BreakReason = Schema.Literals([
  "content_mismatch",
  "hash_mismatch",
  "prev_hash_mismatch",
  "sequence_gap",
  "duplicate_sequence",
  "tail_missing",
  "checkpoint_mismatch"
])
export type BreakReason = typeof BreakReason.Type

const breakFields = {
  event_id: Schema.NullOr(Schema.String),
  reason: BreakReason,
  expected: Schema.String,
  actual: Schema.String
}

export const Break = Schema.Struct({
  sequence_number: Count.annotate({
    description: "0 of what is stored below the first sequence.",
    format: "int64"
  }),
  ...breakFields
}).annotate({ identifier: "Break" })
export type Break = typeof Break.Type

/** A break of an execution. */
export const TraceBreak = Schema.Struct({
  sequence_number: Sequence,
  fact_number: Schema.NullOr(Sequence).annotate({
    description: "Place among the execution's own facts."
  }),
  ...breakFields
}).annotate({ identifier: "TraceBreak" })
export type TraceBreak = typeof TraceBreak.Type

/** Breaks that a report lists; it counts them all. */
export const BREAKS_MAX = 100

/** What a break says in the place of something that is missing. */
export const ABSENT = "none"

/** The end of a chain. */
export const Head = Schema.Struct({
  sequence_number: Sequence,
  hash: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u)).annotate({
    description: "SHA-256, 64 lower-case hex digits."
  }),
  created_at: Timestamp
})

const chainFields = {
  valid: Schema.Boolean,
  status: Schema.Literals(["valid", "broken", "incomplete", "empty"]).annotate({
    description: "An empty range is valid, an incomplete one is not."
  }),
  tenant_id: Schema.String,
  scheme: Scheme,
  bounds: Schema.Struct({
    from: Timestamp,
    to: Timestamp,
    from_sequence: Schema.NullOr(AskedSequence),
    to_sequence: Schema.NullOr(AskedSequence)
  }),
  events_checked: Count.annotate({ description: "The whole span that covers the bounds." }),
  events_in_bounds: Count,
  first_sequence_number: Schema.NullOr(Sequence),
  last_sequence_number: Schema.NullOr(Sequence),
  head: Schema.NullOr(Head),
  erased_events: Count,
  assurance: Schema.Literals(["self_attested", "signed", "timestamped"]),
  breaks: Schema.Array(Break).annotate({ description: "The first 100." }),
  breaks_total: Count,
  verified_at: Timestamp,
  duration_ms: Schema.Finite
}

const Pruned = Schema.Struct({
  up_to_sequence: Sequence.annotate({ description: "Records up to this one were removed." }),
  root_hash: Schema.String.annotate({ description: "Root over them, as it was signed." }),
  checkpoint: Schema.String.annotate({ description: "The signed checkpoint that proves it." }),
  pruned_at: Timestamp
})
export type Pruned = typeof Pruned.Type

const reportFields = {
  ...chainFields,
  origin: Schema.optionalKey(Schema.Literal("checked")).annotateKey({
    description:
      "Authentic: the chain leads to a checkpoint that the caller kept. Without it a valid answer "
      + "says that the chain is consistent, its origin not checked."
  }),
  pruned: Schema.optionalKey(Pruned).annotateKey({
    description:
      "The beginning of the chain was removed by the retention of the tenant: what is left links to "
      + "the signed checkpoint, and extends its tree. Absent if the chain is whole."
  }),
  notices: Schema.optionalKey(Schema.Array(Schema.String)).annotateKey({
    description: "What is no break of the chain, and worth knowing all the same."
  }),
  unchecked: Schema.optionalKey(Schema.Array(Schema.String)).annotateKey({
    description:
      "Only for a receipt that the caller kept: its members that could not be compared with "
      + "anything, because the service has no such receipt (any more)."
  })
}

/** The report on one chain. */
export const VerifyReport = Schema.Struct(reportFields).annotate({
  identifier: "ChainReport",
  description: "The same about one chain; `events` in its fields are its records."
})
export type VerifyReport = typeof VerifyReport.Type

/** The report on a tenant. */
export const TenantReport = Schema.Struct({
  ...reportFields,
  traces: Schema.optionalKey(VerifyReport).annotateKey({
    description:
      "The tenant's chain of trace facts, where both chains were asked for: `valid` is true only "
      + "if both are. All other fields, `status` too, are about the events."
  })
}).annotate({ identifier: "VerifyReport", description: "A finished check, whatever it found." })
export type TenantReport = typeof TenantReport.Type

/** The report on one execution. Sequences are those of the tenant's chain of facts. */
export const TraceVerifyReport = Schema.Struct({
  ...chainFields,
  scheme: Schema.Literal(TRACE_SCHEME),
  execution_id: Schema.String,
  facts_checked: Count.annotate({ description: "Facts of every type." }),
  events_checked: Count.annotate({ description: "The same as `facts_checked`." }),
  head: Schema.NullOr(Head).annotate({
    description: "The end of the tenant's chain of facts, as the log has it."
  }),
  erased_events: Count.annotate({ description: "Facts whose details were erased." }),
  breaks: Schema.Array(TraceBreak).annotate({ description: "The first 100." })
}).annotate({
  identifier: "TraceVerifyReport",
  description: "A finished check of one execution, whatever it found."
})
export type TraceVerifyReport = typeof TraceVerifyReport.Type

/** The report for those who may not see every event of the span: it names none. */
export const withoutEventIds = (report: TenantReport): TenantReport => {
  const nameless = <R extends VerifyReport>(one: R): R => ({
    ...one,
    breaks: one.breaks.map((broken) => ({ ...broken, event_id: null }))
  })
  const { traces } = report
  return { ...nameless(report), ...(traces === undefined ? {} : { traces: nameless(traces) }) }
}

/** What reports on a tenant say beside the breaks, with what it is said of. */
export const noticesOf = (report: TenantReport): ReadonlyArray<string> => [
  ...(report.notices ?? []).map((notice) => `of the events: ${notice}`),
  ...(report.traces?.notices ?? []).map((notice) => `of the facts: ${notice}`)
]

/** The report on both chains. */
export const bothOf = (events: VerifyReport, traces: VerifyReport): TenantReport => ({
  ...events,
  valid: events.valid && traces.valid,
  traces
})

/** A status, and whether it is valid. An incomplete check that found a break is broken. */
const verdictOf = (
  breaksTotal: number,
  eventsChecked: number,
  isComplete: boolean
): Pick<VerifyReport, "status" | "valid"> => {
  if (breaksTotal > 0) return { status: "broken", valid: false }
  if (!isComplete) return { status: "incomplete", valid: false }
  return { status: eventsChecked === 0 ? "empty" : "valid", valid: true }
}

/** What a check has found. */
interface Checked<Scheme, OfBreak, Remarks> {
  readonly tenantId: string
  readonly scheme: Scheme
  /** As they were asked for; what is left out is the whole history. */
  readonly bounds?: {
    readonly from?: string | undefined
    readonly to?: string | undefined
    readonly fromSequence?: number | undefined
    readonly toSequence?: number | undefined
  }
  readonly eventsChecked: number
  /** All of those checked, if it is left out. */
  readonly eventsInBounds?: number
  readonly first: number | undefined
  readonly last: number | undefined
  readonly head: typeof Head.Type | undefined
  readonly erased: number
  readonly breaks: ReadonlyArray<OfBreak>
  readonly breaksTotal: number
  readonly isComplete: boolean
  readonly isSigned?: boolean
  /** Further members. */
  readonly remarks: Remarks
  /** Clock time at which the check began, milliseconds. */
  readonly started: number
}

/** What every report says, as of now. */
export const reportOf = <Scheme extends string, OfBreak, Remarks>(
  checked: Checked<Scheme, OfBreak, Remarks>
) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const { bounds = {}, breaksTotal, eventsChecked } = checked
    return {
      ...verdictOf(breaksTotal, eventsChecked, checked.isComplete),
      tenant_id: checked.tenantId,
      scheme: checked.scheme,
      bounds: {
        from: bounds.from ?? HISTORY_FROM,
        to: bounds.to ?? HISTORY_TO,
        from_sequence: bounds.fromSequence ?? null,
        to_sequence: bounds.toSequence ?? null
      },
      events_checked: eventsChecked,
      events_in_bounds: checked.eventsInBounds ?? eventsChecked,
      first_sequence_number: checked.first ?? null,
      last_sequence_number: checked.last ?? null,
      head: checked.head ?? null,
      erased_events: checked.erased,
      assurance: checked.isSigned === true ? ("signed" as const) : ("self_attested" as const),
      ...checked.remarks,
      breaks: checked.breaks,
      breaks_total: breaksTotal,
      verified_at: currentTime(),
      duration_ms: now - checked.started
    }
  })

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
