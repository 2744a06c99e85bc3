/**
 * File descriptor 0 on the null device. An INSERT through chDB also reads the process's standard
 * input into the table, so nothing that could be read may be there.
 */
import * as fs from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { Schema } from "effect"

/** Standard input can't be put on the null device, so the embedded store must not be opened. */
export class StandardInputOpen extends Schema.TaggedError<StandardInputOpen>()(
  "StandardInputOpen",
  { cause: Schema.Defect() }
) {
  override get message(): string {
    return (
      "The embedded store would read this process's standard input into its tables:"
      + " start it with `< /dev/null`, or set CLICKHOUSE_URL to a ClickHouse server"
    )
  }
}

const STANDARD_INPUT = 0
const NULL_DEVICE = "/dev/null"
/** Looks at the descriptor at most, and milliseconds between two of them. */
const LOOKS_MAX = 200
const LOOK_AGAIN_MS = 10

const statOf = (descriptor: number): fs.Stats | undefined => {
  try {
    return fs.fstatSync(descriptor)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EBADF") return undefined
    throw cause
  }
}

const isNullDevice = (found: fs.Stats): boolean =>
  found.isCharacterDevice() && found.rdev === fs.statSync(NULL_DEVICE).rdev

/** The system gives a new file the lowest free number, so a closed 0 is taken first. */
const takePlace = (): void => {
  const opened = fs.openSync(NULL_DEVICE, "r")
  if (opened !== STANDARD_INPUT) fs.closeSync(opened)
}

/**
 * Puts file descriptor 0 on the null device, for good. Where another thread of this process opens a
 * file at the very same moment, that file is in the place and must be left alone: it is waited for.
 * @throws StandardInputOpen
 */
export const closeStandardInput = async (): Promise<void> => {
  try {
    const given = statOf(STANDARD_INPUT)
    if (given !== undefined) {
      if (isNullDevice(given)) return
      fs.closeSync(STANDARD_INPUT)
    }
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      takePlace()
      const found = statOf(STANDARD_INPUT)
      if (found !== undefined && isNullDevice(found)) return
      await sleep(LOOK_AGAIN_MS)
    }
    throw new Error("another file of this process has its number")
  } catch (cause) {
    throw new StandardInputOpen({ cause })
  }
}
