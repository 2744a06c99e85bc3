/**
 * The log line and the metric of items that were rejected although their request was answered with
 * 2xx: a client that only looks at statuses misses them. Codes and numbers, never ids, keys or
 * anything that was sent.
 */
import { Effect, Metric } from "effect"
import { counterOf } from "../../domain/metrics/Metrics.ts"

const rejectedItems = counterOf("alk_ingest_rejected_items_total")

/** How many errors there are of each code. */
export const countByCode = (
  errors: Iterable<{ readonly code: string }>
): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const { code } of errors) counts.set(code, (counts.get(code) ?? 0) + 1)
  return counts
}

/** Count rejected items and say so in the log, once for all of them; nothing without any. */
export const itemsRejected = (
  counts: ReadonlyMap<string, number>,
  more: Readonly<Record<string, unknown>> = {}
): Effect.Effect<void> => {
  if (counts.size === 0) return Effect.void
  const rejected = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const counted = Effect.forEach(
    counts,
    ([code, count]) => Metric.update(Metric.withAttributes(rejectedItems, { code }), count),
    { discard: true }
  )
  return Effect.andThen(
    counted,
    Effect.logWarning("items were rejected").pipe(
      Effect.annotateLogs({ ...more, rejected, codes: Object.fromEntries(counts) })
    )
  )
}
