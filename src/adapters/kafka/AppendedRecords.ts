/** What this process has appended, passed on to listeners in the same process. */
import { Effect, type Scope } from "effect"
import type { TopicKind } from "../../domain/records/Topics.ts"
import type { AppendedListener, NewRecord } from "../../ports/EventLog.ts"

export class AppendedRecords {
  readonly #listeners = new Map<TopicKind, Set<AppendedListener>>()

  listen(topic: TopicKind, listener: AppendedListener): Effect.Effect<void, never, Scope.Scope> {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners)
    return Effect.acquireRelease(
      Effect.sync(() => void listeners.add(listener)),
      () => Effect.sync(() => void listeners.delete(listener))
    )
  }

  /** Records of one partition, the first at this offset; -1 if the broker has not said where. */
  written(records: ReadonlyArray<NewRecord>, firstOffset: number): void {
    const [first] = records
    const listeners = first && this.#listeners.get(first.topic)
    if (listeners === undefined || firstOffset < 0) return
    for (const listener of listeners) {
      for (const [index, record] of records.entries()) listener(record, firstOffset + index)
    }
  }
}
