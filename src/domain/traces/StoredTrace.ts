/** Executions and spans as the changelog of the sequencers has them. */
import { Schema } from "effect"
import { hex16, natural, sha256, text, time } from "../Forms.ts"
import { executionStatuses, spanFields } from "./TraceFact.ts"
import { side } from "./TraceOperation.ts"

const status = (description: string) => Schema.Literals(executionStatuses).annotate({ description })

/** The record `x/<tenant>/<execution>`. */
export const StoredExecution = Schema.Struct({
  status: status("Of the execution."),
  source: Schema.Literals(["api", "otlp"]),
  provisional: Schema.Boolean.annotate({
    description: "Made by OpenTelemetry spans whose root has not arrived."
  }),
  root_span_id: text("Its root span."),
  started_at: time("When it started."),
  started_at_given: Schema.Boolean.annotate({ description: "The client said so." }),
  starts: Schema.optionalKey(natural("Its facts that say how it started; absent for one.")),
  ended_at: Schema.NullOr(time("When it ended.")),
  ended_by_client: Schema.Boolean.annotate({
    description: "A client ended it, not the ends of its OpenTelemetry spans."
  }),
  end_is_open: Schema.optionalKey(
    Schema.Literal(true).annotate({
      description:
        "It has ended, and whether that stays with what has come since is not counted yet."
    })
  ),
  fact_count: natural("Its facts so far."),
  event_count: natural("Its trace events so far."),
  last_event_at: Schema.optionalKey(
    time("Of its trace events the latest, as long as it has no spans.")
  ),
  erased_through: natural("fact_number of its last erasure; 0 without one."),
  last_offset: natural("Offset on alk.traces of its last fact."),
  touched_at: natural("Microseconds since 1970 when it was last named."),
  partial: Schema.Boolean.annotate({
    description: "There are spans in the store that have no record of their own."
  })
})
export type StoredExecution = typeof StoredExecution.Type

const mark = { salt: hex16("Salt of details_hash."), hash: sha256("details_hash.") }

const shown = {
  parent_span_id: Schema.NullOr(text("Its parent; null for a root.")),
  ...spanFields,
  status: status("Of the span."),
  ended_at: Schema.NullOr(time("When it ended."))
}

/** The record `s/<tenant>/<execution>/<span>`. */
export const StoredSpan = Schema.Struct({
  ...shown,
  side: Schema.optionalKey(side),
  shared: Schema.optionalKey(
    Schema.Literal(true).annotate({ description: "Another span was sent under its id." })
  ),
  parent_is_remote: Schema.Boolean.annotate({
    description: "The parent is of another process, and may never come."
  }),
  started_at_given: Schema.Boolean.annotate({ description: "The client said so." }),
  fact_number: natural("Of its span.started."),
  details: Schema.NullOr(
    Schema.Struct({ ...mark, bytes: natural("Of its details, in UTF-8.") })
  ).annotate({ description: "By which a repetition is recognised; null once erased." }),
  others: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        ...mark,
        was: Schema.optionalKey(
          Schema.Struct({
            place: sha256("Of its start, parent, type and causes."),
            status: shown.status,
            ended_at: shown.ended_at
          }).annotate({
            description: "What it was with these details; absent for what a span.amended has."
          })
        )
      })
    ).annotate({ description: "Other contents that it was sent with, the last of them." })
  )
})
export type StoredSpan = typeof StoredSpan.Type
