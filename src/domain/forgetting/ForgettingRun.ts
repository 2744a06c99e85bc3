/** What one rewriting of a broker's files has done: counts, and nothing of what the records say. */
import { Schema } from "effect"

export const RewrittenSegment = Schema.Struct({
  topic: Schema.String,
  partition: Schema.Int,
  base_offset: Schema.Int,
  /** False from before the file is replaced until after it was. */
  is_replaced: Schema.Boolean,
  records_replaced: Schema.Int,
  records_removed: Schema.Int,
  bytes_before: Schema.Int,
  bytes_after: Schema.Int,
  /** Of the new file. */
  sha256: Schema.String
})
export type RewrittenSegment = typeof RewrittenSegment.Type

export const ForgettingRun = Schema.Struct({
  id: Schema.String,
  started_at: Schema.String,
  /** null until everything is rewritten. */
  ended_at: Schema.NullOr(Schema.String),
  segments: Schema.Array(RewrittenSegment)
})
export type ForgettingRun = typeof ForgettingRun.Type

/** The counts of a topic. */
export interface ForgottenTopic {
  readonly topic: string
  readonly partitions: number
  readonly segments: number
  readonly records_replaced: number
  readonly records_removed: number
  readonly bytes_before: number
  readonly bytes_after: number
}

const sum = (values: ReadonlyArray<number>): number =>
  values.reduce((total, value) => total + value, 0)

/** Topic by topic, in the order of their names, what was replaced for certain. */
export const forgottenTopics = ({ segments }: ForgettingRun): ReadonlyArray<ForgottenTopic> => {
  const certain = segments.filter(({ is_replaced }) => is_replaced)
  const byTopic = [...Map.groupBy(certain, ({ topic }) => topic)]
  return byTopic
    .map(([topic, of]) => ({
      topic,
      partitions: new Set(of.map(({ partition }) => partition)).size,
      segments: of.length,
      records_replaced: sum(of.map((one) => one.records_replaced)),
      records_removed: sum(of.map((one) => one.records_removed)),
      bytes_before: sum(of.map((one) => one.bytes_before)),
      bytes_after: sum(of.map((one) => one.bytes_after))
    }))
    .sort((left, right) => (left.topic < right.topic ? -1 : 1))
}
