/**
 * What one kind of record on one topic is: key, headers and value as schemas, and the words around
 * them. Contracts describe what the program writes; they check nothing while it runs.
 */
import type { Schema } from "effect"
import type { TopicKind } from "../domain/records/Topics.ts"

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

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/**
 * The schema as it is, if its type is A to the last optional member. With any other schema the
 * program does not compile, so a record can't change without its contract.
 */
export const exactly =
  <A>() =>
  <S extends Schema.Constraint>(
    schema: S & (Same<S["Type"], A> extends true ? unknown : never)
  ): S =>
    schema
