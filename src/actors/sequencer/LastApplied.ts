/**
 * Which command was the last one that was applied, where the changelog does not say it any more: what
 * answers commands tells, and what the changelog still says of their writers.
 */
import { Effect } from "effect"
import type { Head } from "../../domain/chain/Chains.ts"
import { readWriterPosition } from "../../domain/records/CommandWriter.ts"
import { readReceipt } from "../../domain/records/Receipt.ts"
import { commandOffsetOf, KIND_HEADER, WRITER_HEADER } from "../../domain/records/RecordHeaders.ts"
import { microsOf } from "../../domain/Timestamp.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import { type Bounds, scanAll } from "../log/PartitionScan.ts"
import { giveUp, type Restoring } from "./Restoring.ts"
import type { Replay } from "./SequencerState.ts"

/** When the command of a receipt was received; 0 for other records. */
const receivedOf = ({ headers, refused, value }: LogRecord): number => {
  if (refused !== undefined || value === null) return 0
  if (headers[KIND_HEADER]?.toString() === "verdict") return 0
  try {
    const received = microsOf(readReceipt(value).received_at)
    return Number.isSafeInteger(received) ? received : 0
  } catch {
    return 0
  }
}

/**
 * The last command that the records of a topic answer, -1 if they answer none, and when the newest one
 * of them was received.
 */
const readAnswers = Effect.fnUntraced(function* (
  { log, partition, reader }: Restoring,
  topic: "receipts" | "quarantine"
) {
  let answered = -1
  let receivedUpTo = 0
  yield* scanAll(log, reader, { topic, partition }, (records) => {
    for (const record of records) {
      answered = Math.max(answered, commandOffsetOf(record))
      if (topic === "receipts") receivedUpTo = Math.max(receivedUpTo, receivedOf(record))
    }
  })
  return { answered, receivedUpTo }
})

/**
 * Offset up to which all commands that are left were applied, as the numbers of their writers say.
 * What was applied behind it is known by the same numbers when it is read again.
 */
const appliedByWriters = Effect.fnUntraced(function* (
  { log, partition, reader }: Restoring,
  writers: ReadonlyMap<string, number>,
  { start }: Bounds
) {
  let applied = start - 1
  let isReached = false
  const isApplied = ({ headers }: LogRecord): boolean => {
    const position = readWriterPosition(headers[WRITER_HEADER]?.toString() ?? "")
    return position !== undefined && position.number <= (writers.get(position.writer) ?? 0)
  }
  yield* scanAll(log, reader, { topic: "commands", partition }, (records) => {
    for (const record of records) {
      isReached ||= record.refused === undefined && !isApplied(record)
      if (!isReached) applied = record.offset
    }
  })
  return applied
})

/**
 * Offset of the last command whose outcome is in the topics; -1 if none ever did. Every command that was
 * applied has a receipt; one that was set aside says nothing of those after it. Without receipts it may
 * be too small, where the numbers of the writers tell what was applied.
 */
const lastApplied = Effect.fnUntraced(function* (
  restoring: Restoring,
  { acceptsLoss, state: { writers } }: Replay,
  answered: number
) {
  const { log, partition } = restoring
  const commands = yield* log.bounds("commands", partition)
  const receipts = yield* log.bounds("receipts", partition)
  if (answered < 0 && receipts.start > 0 && commands.start === commands.end) return commands.end - 1
  const aside = yield* readAnswers(restoring, "quarantine")
  const applied = Math.max(answered, aside.answered)
  if (answered >= 0 || receipts.start === 0) {
    // Nothing of the topic has expired, and none of it answers a command.
    return applied >= 0 ? applied : commands.start - 1
  }
  if (writers.size === 0) {
    yield* giveUp(
      partition,
      acceptsLoss,
      `alk.state is lost and the receipts that name the commands applied have expired, while `
        + `alk.commands still holds ${commands.end - commands.start} commands: those that were `
        + "received before the newest record of the chains are set aside"
    )
  }
  return Math.max(applied, yield* appliedByWriters(restoring, writers, commands))
})

/**
 * The offset as the commands have it: the next one must still be there, and must not be after the end of
 * the log.
 */
export const placeIn = Effect.fnUntraced(function* (
  { log, partition }: Restoring,
  acceptsLoss: boolean,
  applied: number
) {
  const { end, start } = yield* log.bounds("commands", partition)
  const next = applied + 1
  if (next >= start && next <= end) return applied
  yield* giveUp(
    partition,
    acceptsLoss,
    next < start
      ? `alk.commands starts at offset ${start}, but ${next} is the next to apply: `
          + `${start - next} acknowledged commands have expired unread`
      : `alk.commands ends at offset ${end}, but ${applied} was applied already: the topic `
          + "has lost records"
  )
  return start - 1
})

/**
 * What the changelog says of the last command, or the topics where that is gone; without receipts
 * the time is that of the newest head, which is later than that of its command.
 */
export const readApplied = Effect.fnUntraced(function* (
  restoring: Restoring,
  gathered: Replay,
  heads: Iterable<Head>
) {
  const { applied, receivedUpTo } = gathered.state
  const { acceptsLoss } = gathered
  if (gathered.progress !== undefined) {
    return { applied: yield* placeIn(restoring, acceptsLoss, applied), receivedUpTo }
  }
  const answers = yield* readAnswers(restoring, "receipts")
  let newest = answers.receivedUpTo
  if (newest === 0) {
    for (const { created_at } of heads) newest = Math.max(newest, microsOf(created_at))
  }
  const last = yield* lastApplied(restoring, gathered, answers.answered)
  return { applied: yield* placeIn(restoring, acceptsLoss, last), receivedUpTo: newest }
})
