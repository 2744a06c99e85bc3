/**
 * What one kind of record on one topic is: key, headers and value as schemas, and the words around
 * them. The documents for readers are made from it.
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
  /** The JSON of the value, or what stands for it where the value is not JSON. */
  readonly value: Schema.Constraint
  /** Further definitions that the description speaks of, by name. */
  readonly parts?: Readonly<Record<string, Schema.Constraint>>
}
