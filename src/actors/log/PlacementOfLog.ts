/**
 * Reads from `alk.registry` where tenants are, for who does not follow it: before a process starts its
 * parts, and where one meets a partition or a tenant that it does not know. What was read before is not
 * read again.
 */
import { Effect } from "effect"
import type { Placement } from "../../domain/registry/Placement.ts"
import type { EventLog, LogRecord } from "../../ports/EventLog.ts"
import { scan, scanAll } from "./PartitionScan.ts"
import { REGISTRY, registryChangeIn } from "./RegistryChanges.ts"

/** The next offset of the registry, by what its records were taken into. */
const nextOffsets = new WeakMap<Placement, number>()

/** Take everything that the registry says now. `log` checks who has written a record. */
export const readPlacement = Effect.fn("Placement.read")(function* (log: EventLog["Service"]) {
  const placement = yield* log.placement
  const next = nextOffsets.get(placement)
  if (next !== undefined) {
    const [end = 0] = yield* log.ends([REGISTRY])
    if (end <= next) return placement
  }
  const reader = yield* log.reader
  const take = (records: ReadonlyArray<LogRecord>) => {
    for (const record of records) {
      const change = registryChangeIn(record)
      if (change !== undefined) placement.take(change)
    }
  }
  const whole = scanAll(log, reader, REGISTRY, take).pipe(Effect.map(({ end }) => end))
  const read = Effect.suspend(() => {
    if (next === undefined) return whole
    return Effect.flatMap(log.ends([REGISTRY]), ([end = next]) =>
      Effect.as(scan(reader, { ...REGISTRY, offset: next }, end, take), end)
    ).pipe(Effect.catchTag("OffsetOutOfRange", () => whole))
  })
  nextOffsets.set(placement, yield* read)
  return placement
}, Effect.scoped)
