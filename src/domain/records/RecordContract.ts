/**
 * One kind of record on one topic: key, headers and value as schemas, and the texts of its
 * documentation, which is generated from it.
 */
import type { Schema } from "effect"
import type { TopicKind } from "./Topics.ts"

export interface RecordContract {
  /** `schemas/json/<name>.schema.json`. */
  readonly name: string
  readonly topic: TopicKind
  readonly title: string
  readonly description: string
  readonly key: Schema.Constraint
  /** Every header as text; Kafka itself knows them as bytes. */
  readonly headers: Schema.Constraint
  /** The JSON of the value, or a description of it where the value is not JSON. */
  readonly value: Schema.Constraint
  /** Further definitions that the description refers to, by name. */
  readonly parts?: Readonly<Record<string, Schema.Constraint>>
}
