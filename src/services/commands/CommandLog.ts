/**
 * Where accepted requests become durable: one bounded queue before `alk.commands`. What it has
 * acknowledged is written with acks=all; what it refuses was not written, and what times out while
 * it is on its way may be.
 */
import { Context, Effect, Latch, Layer, Schema } from "effect"
import { nextTurn } from "../../domain/InSlices.ts"
import { COMMAND_FORMAT, type Command } from "../../domain/records/Command.ts"
import { encodeCommand } from "../../domain/records/CommandBytes.ts"
import { CommandWriter } from "../../domain/records/CommandWriter.ts"
import { RECEIPT_HEADER, TENANT_HEADER, WRITER_HEADER } from "../../domain/records/RecordHeaders.ts"
import {
  FORMAT_HEADER,
  MESSAGE_BYTES_MAX,
  SEND_BYTES_MAX,
  SEND_RECORDS_MAX
} from "../../domain/records/Topics.ts"
import { nowMicros } from "../../domain/Timestamp.ts"
import {
  EventLog,
  type LogAppender,
  type LogUnavailable,
  type NewRecord
} from "../../ports/EventLog.ts"

/** The queue is full or the log did not acknowledge in time. */
export class CommandLogBusy extends Schema.TaggedError<CommandLogBusy>()("CommandLogBusy", {
  message: Schema.String,
  /** False if it is certain that nothing was written. */
  maybeWritten: Schema.Boolean
}) {}

/** The command is larger than the log takes in one record. Nothing was written. */
export class CommandTooLarge extends Schema.TaggedError<CommandTooLarge>()("CommandTooLarge", {
  bytes: Schema.Int,
  limit: Schema.Int
}) {}

/** Commands and bytes that wait for the log at most: a few seconds of full load. */
const QUEUE_COMMANDS_MAX = 10_000
const QUEUE_BYTES_MAX = 128 * 1_048_576
/** Bytes of a send before which others have a turn: each of them was encoded, and gets a MAC. */
const LARGE_BYTES = 1_048_576
/** Milliseconds until a write that the log has not acknowledged fails. */
const ACKNOWLEDGE_TIMEOUT_MS = 10_000

export class CommandLog extends Context.Service<
  CommandLog,
  {
    /** Succeeds when the command is written to all replicas. */
    submit(
      command: Command,
      /** A partition other than the tenant's, for probes. */
      partition?: number
    ): Effect.Effect<void, CommandLogBusy | CommandTooLarge | LogUnavailable>
  }
>()("alk/CommandLog") {}

interface Waiting {
  readonly record: NewRecord
  readonly bytes: number
  sent: boolean
  readonly resume: (result: Effect.Effect<void, LogUnavailable>) => void
}

/** The queue. The writing loop takes from its front; callers that give up leave it. */
class Mailbox {
  readonly arrived = Latch.makeUnsafe(false)
  #waiting: Array<Waiting> = []
  #bytes = 0

  isFull(more: number): boolean {
    return (
      this.#waiting.length >= QUEUE_COMMANDS_MAX
      || (this.#waiting.length > 0 && this.#bytes + more > QUEUE_BYTES_MAX)
    )
  }

  put(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#bytes += waiting.bytes
    this.arrived.openUnsafe()
  }

  leave(waiting: Waiting): void {
    if (waiting.sent) return
    this.#waiting = this.#waiting.filter((entry) => entry !== waiting)
    this.#bytes -= waiting.bytes
  }

  /** The next send, as much as one send should carry. */
  take(): ReadonlyArray<Waiting> {
    let count = 0
    let bytes = 0
    for (const waiting of this.#waiting) {
      if (count >= SEND_RECORDS_MAX || (count > 0 && bytes + waiting.bytes > SEND_BYTES_MAX)) break
      waiting.sent = true
      count += 1
      bytes += waiting.bytes
    }
    const batch = this.#waiting.slice(0, count)
    this.#waiting = this.#waiting.slice(count)
    this.#bytes -= bytes
    if (this.#waiting.length === 0) this.arrived.closeUnsafe()
    return batch
  }
}

/** Numbered as they are written: in the order of the log. */
const numbered = (writer: CommandWriter, { record }: Waiting): NewRecord => ({
  ...record,
  headers: { ...record.headers, [WRITER_HEADER]: writer.next(nowMicros()) }
})

const write = Effect.fnUntraced(function* (
  mailbox: Mailbox,
  appender: LogAppender,
  writer: CommandWriter
) {
  yield* mailbox.arrived.await
  const batch = mailbox.take()
  if (batch.length === 0) return
  if (batch.reduce((sum, { bytes }) => sum + bytes, 0) > LARGE_BYTES) yield* nextTurn
  const records = batch.map((waiting) => numbered(writer, waiting))
  const result = yield* Effect.exit(appender.append(records))
  for (const { resume } of batch) resume(result)
})

const wait = (mailbox: Mailbox, record: NewRecord, bytes: number) =>
  Effect.suspend(() => {
    if (mailbox.isFull(bytes)) {
      const message = "too many requests wait for the log"
      return Effect.fail(new CommandLogBusy({ message, maybeWritten: false }))
    }
    let waiting: Waiting | undefined
    return Effect.callback<void, LogUnavailable>((resume) => {
      waiting = { record, bytes, sent: false, resume }
      mailbox.put(waiting)
      return Effect.sync(() => mailbox.leave(waiting!))
    }).pipe(
      Effect.timeoutOrElse({
        duration: ACKNOWLEDGE_TIMEOUT_MS,
        orElse: () =>
          Effect.fail(
            new CommandLogBusy({
              message: "the log did not acknowledge in time",
              maybeWritten: waiting?.sent ?? false
            })
          )
      })
    )
  })

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const appender = yield* log.appender
  const mailbox = new Mailbox()
  const writer = new CommandWriter()
  yield* Effect.forkScoped(Effect.forever(write(mailbox, appender, writer)))
  return CommandLog.of({
    submit: (command, partition = log.partitionOf(command.tenantId)) => {
      const value = encodeCommand(command)
      const bytes = value.length
      if (bytes > MESSAGE_BYTES_MAX) {
        return Effect.fail(new CommandTooLarge({ bytes, limit: MESSAGE_BYTES_MAX }))
      }
      const headers = {
        [FORMAT_HEADER]: String(COMMAND_FORMAT),
        [RECEIPT_HEADER]: command.receiptId,
        [TENANT_HEADER]: command.tenantId
      }
      const key = command.tenantId
      return wait(mailbox, { topic: "commands", partition, key, value, headers }, bytes)
    }
  })
})

export const layerCommandLog: Layer.Layer<CommandLog, LogUnavailable, EventLog> = Layer.effect(
  CommandLog,
  make
)
