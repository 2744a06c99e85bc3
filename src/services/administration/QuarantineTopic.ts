/**
 * What is on `alk.quarantine`, read from its start each time it is asked for: it is short, and
 * asked for by people.
 */
import { Context, Effect, Layer } from "effect"
import { scanAll } from "../../actors/log/PartitionScan.ts"
import type { Command } from "../../domain/records/Command.ts"
import { decodeCommand, formatIn } from "../../domain/records/CommandBytes.ts"
import { type QuarantineKind, quarantineKinds } from "../../domain/records/Quarantine.ts"
import { KIND_HEADER, REASON_HEADER } from "../../domain/records/RecordHeaders.ts"
import { FORMAT_HEADER } from "../../domain/records/Topics.ts"
import { formatMicros } from "../../domain/Timestamp.ts"
import {
  EventLog,
  type LogRecord,
  type LogUnavailable,
  type OffsetOutOfRange
} from "../../ports/EventLog.ts"

/** Commands that are listed at most, the newest of each partition: 2 MB of memory. */
export const QUARANTINE_LISTED_MAX = 10_000

const MICROS_OF_MILLISECOND = 1_000

/** A command on `alk.quarantine`, without its bytes. */
export interface Quarantined {
  /** `<partition>-<offset>` on `alk.commands`. */
  readonly id: string
  readonly partition: number
  /** Offset of the command on `alk.commands`. */
  readonly commandOffset: number
  readonly quarantinedAt: string
  /** Undefined where an earlier version, or another program, has written the record. */
  readonly kind: QuarantineKind | undefined
  readonly reason: string
  readonly bytes: number
}

/** A command on `alk.quarantine` with its bytes. */
export interface QuarantinedBytes extends Quarantined {
  readonly format: number
  readonly value: Buffer
  /** What the bytes are, or why they can't be read. */
  readonly command: Command | { readonly unreadable: string }
}

export class QuarantineTopic extends Context.Service<
  QuarantineTopic,
  {
    /** By partition and offset; `left` counts older ones beyond QUARANTINE_LISTED_MAX. */
    readonly all: Effect.Effect<
      { readonly commands: ReadonlyArray<Quarantined>; readonly left: number },
      LogUnavailable
    >
    /** Undefined if nothing of this partition and offset is there. */
    find(
      partition: number,
      commandOffset: number
    ): Effect.Effect<QuarantinedBytes | undefined, LogUnavailable>
  }
>()("alk/QuarantineTopic") {}

const OFFSET = /^(?:0|[1-9][0-9]{0,15})$/u

/** Undefined for the marker, and for what no sequencer has written. */
const commandOffsetOf = ({ key }: LogRecord): number | undefined => {
  const text = key?.toString() ?? ""
  return OFFSET.test(text) ? Number(text) : undefined
}

const kindOf = ({ headers, refused }: LogRecord): QuarantineKind | undefined => {
  const kind = headers[KIND_HEADER]?.toString()
  return refused === undefined ? quarantineKinds.find((known) => known === kind) : undefined
}

const quarantinedOf = (
  record: LogRecord,
  partition: number,
  commandOffset: number
): Quarantined => ({
  id: `${partition}-${commandOffset}`,
  partition,
  commandOffset,
  quarantinedAt: formatMicros(record.timestamp * MICROS_OF_MILLISECOND),
  kind: kindOf(record),
  reason: record.headers[REASON_HEADER]?.toString() ?? "",
  bytes: record.value?.length ?? 0
})

const decoded = (value: Buffer, format: number): QuarantinedBytes["command"] => {
  try {
    return decodeCommand(value, format)
  } catch (error) {
    return { unreadable: error instanceof Error ? error.message : String(error) }
  }
}

/**
 * Of several records with the offset of one command the first that a sequencer of this service has
 * written counts; without such a one the first.
 */
const counts = (
  known: Pick<Quarantined, "kind"> | undefined,
  next: Pick<Quarantined, "kind">
): boolean => known === undefined || (known.kind === undefined && next.kind !== undefined)

/** Records can't disappear from a topic that keeps them for ever: an offset is there or was never. */
const asUnavailable = <A, R>(scan: Effect.Effect<A, LogUnavailable | OffsetOutOfRange, R>) =>
  Effect.catchTag(scan, "OffsetOutOfRange", (cause) => Effect.die(cause))

const make = Effect.gen(function* () {
  const log = yield* EventLog

  const scanning = Effect.fnUntraced(function* (
    partition: number,
    each: (record: LogRecord, commandOffset: number) => void
  ) {
    const reader = yield* log.reader
    yield* scanAll(log, reader, { topic: "quarantine", partition }, (records) => {
      for (const record of records) {
        const offset = commandOffsetOf(record)
        if (offset !== undefined) each(record, offset)
      }
    })
  }, asUnavailable)

  const listed = Effect.fnUntraced(function* (partition: number, limit: number) {
    const found = new Map<number, Quarantined>()
    let left = 0
    yield* scanning(partition, (record, offset) => {
      const next = quarantinedOf(record, partition, offset)
      if (counts(found.get(offset), next)) found.set(offset, next)
      if (found.size <= limit) return
      found.delete(found.keys().next().value!)
      left += 1
    })
    return { commands: [...found.values()], left }
  })

  return QuarantineTopic.of({
    all: Effect.gen(function* () {
      const partitions = Array.from({ length: log.partitions }, (_, partition) => partition)
      const limit = Math.ceil(QUARANTINE_LISTED_MAX / log.partitions)
      const lists = yield* Effect.forEach(partitions, (one) => listed(one, limit))
      return {
        commands: lists.flatMap(({ commands }) => commands),
        left: lists.reduce((sum, one) => sum + one.left, 0)
      }
    }).pipe(Effect.scoped),
    find: Effect.fnUntraced(function* (partition: number, commandOffset: number) {
      if (partition >= log.partitions) return undefined
      let found: QuarantinedBytes | undefined
      yield* scanning(partition, (record, offset) => {
        if (offset !== commandOffset) return
        const next = quarantinedOf(record, partition, offset)
        if (!counts(found, next)) return
        const value = record.value ?? Buffer.alloc(0)
        const format = formatIn(record.headers[FORMAT_HEADER])
        found = { ...next, format, value, command: decoded(value, format) }
      })
      return found
    }, Effect.scoped)
  })
})

export const layerQuarantineTopic: Layer.Layer<QuarantineTopic, never, EventLog> = Layer.effect(
  QuarantineTopic,
  make
)
