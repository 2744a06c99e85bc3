/**
 * Why the embedded broker did not start or ended, as one line with the way out. It reads what the
 * broker's log and Java's output say.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { brokerPaths } from "./BrokerSettings.ts"

const reasons = [
  "port_taken",
  "folder_locked",
  "disk_full",
  "not_writable",
  "damaged",
  "out_of_memory",
  "no_answer",
  "ended"
] as const
type Reason = (typeof reasons)[number]

/** The broker is not there; the message is one line that says what to do. */
export class BrokerNotStarted extends Schema.TaggedError<BrokerNotStarted>()("BrokerNotStarted", {
  reason: Schema.Literals(reasons),
  message: Schema.String
}) {}

/** What is read of the end of a log. */
const LOG_BYTES_MAX = 131_072
const LINE_CHARACTERS_MAX = 300
/** Shells report the end by a signal as 128 and the signal's number. */
const SIGNAL_EXIT_CODE = 128

const symptoms: ReadonlyArray<readonly [Reason, RegExp]> = [
  ["disk_full", /No space left on device|Disk quota exceeded/],
  ["port_taken", /Address already in use|BindException/],
  ["folder_locked", /Failed to acquire lock on file/],
  ["not_writable", /Permission denied|AccessDeniedException|Read-only file system/],
  ["out_of_memory", /OutOfMemoryError|insufficient memory|Could not reserve enough space/],
  ["damaged", /InconsistentClusterId|meta\.properties|CorruptRecordException|KafkaStorageException/]
]

/** Where the logs end now: what is written later is about the start that follows. */
export type LogPositions = Readonly<Record<string, number>>

/** Java's own lines first: they carry no time, so they would read as part of an entry. */
const logs = [brokerPaths.console, brokerPaths.log]

const sizeOf = (path: string): number => fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0

export const logPositions = (folder: string): LogPositions =>
  Object.fromEntries(logs.map((log) => [log, sizeOf(join(folder, log))]))

const writtenSince = (folder: string, log: string, position: number): string => {
  const path = join(folder, log)
  const size = sizeOf(path)
  const start = Math.max(size < position ? 0 : position, size - LOG_BYTES_MAX)
  if (size === start) return ""
  const descriptor = fs.openSync(path, "r")
  try {
    const bytes = Buffer.alloc(size - start)
    return bytes.toString("utf8", 0, fs.readSync(descriptor, bytes, 0, bytes.length, start))
  } finally {
    fs.closeSync(descriptor)
  }
}

/** Begins an entry of the log; its other lines (traces, settings) follow without a time. */
const entryLevel = /^\d{4}-\d\d-\d\dT\S+ ([A-Z]+) /
/** What Java prints that explains nothing. */
const harmless = /^\s*$|^WARNING: |^Picked up /

/** The errors of the log with their traces, and what Java itself complained of before it. */
const complaintsIn = (said: string): ReadonlyArray<string> => {
  let complains = true
  return said.split("\n").filter((line) => {
    const level = entryLevel.exec(line)?.[1]
    if (level !== undefined) complains = level === "ERROR" || level === "FATAL"
    return complains && !harmless.test(line)
  })
}

/** The cause of a trace says more than the line that announces it. */
const tellingLine = (complaints: ReadonlyArray<string>): string | undefined => {
  const heads = complaints.filter((line) => !/^\s+at |^\s+\.\.\. \d+ more/.test(line))
  const line = heads.findLast((line) => /Exception|Error/.test(line)) ?? heads.at(-1)
  return line?.slice(0, LINE_CHARACTERS_MAX)
}

/** One line for a reason; `detail` is used where the reason alone does not say enough. */
export const brokerNotStarted = (
  reason: Reason,
  folder: string,
  detail: string
): BrokerNotStarted => {
  const log = join(folder, brokerPaths.log)
  const messages: Readonly<Record<Reason, string>> = {
    port_taken:
      `The embedded Kafka broker found its port taken (${detail}): stop what listens`
      + " there, or set ALK_KAFKA_PORT to another port",
    folder_locked:
      `The log in ${folder} is in use by another Kafka process that alk did not`
      + " start: stop it, or set ALK_DATA_DIR to another folder",
    disk_full:
      `The disk of ${folder} is full: free some space, or set ALK_DATA_DIR to a folder on`
      + " another disk",
    not_writable:
      `The embedded Kafka broker may not write in ${folder} (${detail}): give this user`
      + " the right to, or set ALK_DATA_DIR to another folder",
    damaged:
      `The log in ${folder} is damaged (${detail}): restore the folder from a backup, or`
      + " move it away to start with an empty log",
    out_of_memory:
      "The embedded Kafka broker ran out of memory; it needs 1 GB:"
      + " free some, or set KAFKA_BROKERS to a Kafka cluster",
    no_answer: `The embedded Kafka broker did not answer in time (${detail}): look into ${log}`,
    ended: `The embedded Kafka broker ended (${detail}): look into ${log}`
  }
  return new BrokerNotStarted({ reason, message: messages[reason] })
}

/** What the broker and Java logged since `positions`. */
export const loggedSince = (folder: string, positions: LogPositions): string =>
  logs.map((log) => writtenSince(folder, log, positions[log] ?? 0)).join("\n")

/** Explains an end by what was said before it. */
export const explainEnd = (folder: string, said: string, exitCode: number): BrokerNotStarted => {
  const complaints = complaintsIn(said)
  const text = complaints.join("\n")
  const reason = symptoms.find(([, pattern]) => pattern.test(text))?.[0] ?? "ended"
  const byItself =
    exitCode > SIGNAL_EXIT_CODE ? `signal ${exitCode - SIGNAL_EXIT_CODE}` : `exit code ${exitCode}`
  return brokerNotStarted(reason, folder, tellingLine(complaints) ?? byItself)
}

/** Works on files of the broker's folder; what the system refuses becomes one line. */
export const inFolder = <A>(folder: string, run: () => A): Effect.Effect<A, BrokerNotStarted> =>
  Effect.try({
    try: run,
    catch: (cause) => {
      const { code, message } = cause as NodeJS.ErrnoException
      return brokerNotStarted(code === "ENOSPC" ? "disk_full" : "not_writable", folder, message)
    }
  })
