/** What operators ask of the projection on `alk.progress`, told to those who do it. */
import { Effect, Queue, Schedule } from "effect"
import { LastRebuild, type ViewRebuild } from "../../domain/records/ViewRebuild.ts"
import { EventLog, type Fetched, type LogReader } from "../../ports/EventLog.ts"
import { reportMalformed, takeEach } from "../log/Malformed.ts"

const FETCH_LIMITS = { waitMs: 5_000, maxBytes: 1_048_576 }
const RETRY_INTERVAL = "1 second"

/** The requests of one partition. */
class Requests extends LastRebuild {
  readonly open: Queue.Queue<ViewRebuild>
  /** Of the last request that was handed on. */
  #handedOn: string | undefined

  constructor(open: Queue.Queue<ViewRebuild>) {
    super()
    this.open = open
  }

  /** Everything is read: what was asked for and is not done has to be. */
  handOn(): void {
    const { asked, rebuilt } = this
    if (asked === undefined || asked.id === this.#handedOn || rebuilt?.done === true) return
    this.#handedOn = asked.id
    Queue.offerUnsafe(this.open, asked)
  }
}

const follow = Effect.fnUntraced(function* (
  reader: LogReader,
  requests: ReadonlyMap<number, Requests>
) {
  const log = yield* EventLog
  const offsets = new Map<number, number>()
  for (const partition of requests.keys()) {
    offsets.set(partition, (yield* log.bounds("progress", partition)).start)
  }
  const take = (one: Fetched) => {
    const own = requests.get(one.partition)!
    const malformed = takeEach(one, one.records, (record) => own.take(record))
    offsets.set(one.partition, one.nextOffset)
    if (one.nextOffset >= one.stableEnd) own.handOn()
    return malformed
  }
  const positions = () =>
    [...offsets].map(([partition, offset]) => ({ topic: "progress" as const, partition, offset }))
  return yield* Effect.forever(
    Effect.flatMap(
      Effect.suspend(() => reader.fetch(positions(), FETCH_LIMITS)),
      (fetched) => reportMalformed(fetched.flatMap(take))
    )
  )
})

/** The open requests of each partition, for as long as the scope is open. */
export const watchRequests = Effect.fnUntraced(function* (partitions: ReadonlyArray<number>) {
  const log = yield* EventLog
  const reader = yield* log.reader
  const requests = new Map<number, Requests>()
  for (const partition of partitions) {
    requests.set(partition, new Requests(yield* Queue.sliding<ViewRebuild>(1)))
  }
  if (requests.size === 0) return new Map<number, Queue.Queue<ViewRebuild>>()
  yield* follow(reader, requests).pipe(
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.retry(Schedule.spaced(RETRY_INTERVAL)),
    Effect.forkScoped
  )
  return new Map([...requests].map(([partition, { open }]) => [partition, open]))
})
