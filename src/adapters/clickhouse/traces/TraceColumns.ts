/**
 * What each column of the `facts` table says about the stored bytes, as ClickHouse expressions over
 * them: verification computes every column again and names those that differ. The table's defaults
 * in schemas/clickhouse are the same expressions; a test compares the two.
 */
import {
  disagreementOf,
  field,
  type NamedExpression,
  temporariesOf
} from "../client/JsonColumns.ts"
import { summaryColumn, summaryTemporaries } from "./SummaryColumn.ts"

/** The members of a stored fact that columns are made of. */
const FIELDS = [
  "type String",
  "execution_id String",
  "fact_number UInt64",
  "span_id String",
  "root_span_id String",
  "sequence_number UInt64",
  "agent_id String",
  "status String",
  "started_at DateTime64(6, 'UTC')",
  "ended_at DateTime64(6, 'UTC')",
  "tenant_id String",
  "chain_sequence UInt64",
  "prev_hash String",
  "hash String",
  "erased_at String",
  "span_type String",
  "details Tuple(agent_name String)"
]

/**
 * Facts of the execution itself, facts of spans, events of spans, values that have no room in their
 * span: what `scope` says.
 */
export const Scope = { execution: 0, span: 1, event: 2, payload: 3 } as const

export const temporaries = [...temporariesOf(FIELDS), ...summaryTemporaries]

/** A column that is a member of the fact. */
const column = (name: string): NamedExpression => [name, field(name)]

/** The columns and what they hold. */
export const columns: ReadonlyArray<NamedExpression> = [
  ["version", `${field("erased_at")} != ''`],
  column("tenant_id"),
  [
    "scope",
    `multiIf(startsWith(${field("type")}, 'execution.'), ${Scope.execution},`
      + ` ${field("type")} = 'span.event', ${Scope.event},`
      + ` ${field("type")} = 'span.payload', ${Scope.payload}, ${Scope.span})`
  ],
  column("execution_id"),
  column("fact_number"),
  column("hash"),
  column("chain_sequence"),
  column("type"),
  // A root that has not arrived is a span too, and its id is in the execution's fact only.
  ["span_id", `if(${field("span_id")} = '', ${field("root_span_id")}, ${field("span_id")})`],
  column("sequence_number"),
  column("agent_id"),
  column("status"),
  column("started_at"),
  column("ended_at"),
  // In the order of the table. Only these facts are read for it: others may be large.
  [
    "payload_hash",
    "if(type = 'span.payload', JSONExtractString(body, 'details', 'payload', 'sha256'), '')"
  ],
  summaryColumn
]

/** For verification: `WITH …` list and the names of the columns that differ from the bytes. */
export const disagreement = disagreementOf(temporaries, columns)
