/**
 * File descriptor 0 on the null device. An INSERT through chDB also reads the process's standard
 * input into the table, so nothing that could say something may stand there. Knows nothing of
 * chDB itself.
 */
import { Schema } from "effect"
import * as fs from "node:fs"

/** Standard input can't be put on the null device, so the embedded store must not be opened. */
export class StandardInputOpen extends Schema.TaggedError<StandardInputOpen>()(
  "StandardInputOpen",
  { cause: Schema.Defect() }
) {
  override get message(): string {
    return "The embedded store would read this process's standard input into its tables:"
      + " start it with `< /dev/null`, or set CLICKHOUSE_URL to a ClickHouse server"
  }
}

const STANDARD_INPUT = 0

const isNullDevice = (descriptor: number): boolean => {
  const found = fs.fstatSync(descriptor)
  return found.isCharacterDevice() && found.rdev === fs.statSync("/dev/null").rdev
}

/**
 * Puts file descriptor 0 on the null device, for good. The system gives the lowest free number to
 * the next file opened, so closing 0 makes room for exactly it; what came of that is looked at.
 * @throws StandardInputOpen
 */
export const closeStandardInput = (): void => {
  try {
    if (isNullDevice(STANDARD_INPUT)) return
    fs.closeSync(STANDARD_INPUT)
    const opened = fs.openSync("/dev/null", "r")
    if (opened !== STANDARD_INPUT) throw new Error(`the null device became descriptor ${opened}`)
    if (!isNullDevice(STANDARD_INPUT)) throw new Error("descriptor 0 is another device")
  } catch (cause) {
    throw new StandardInputOpen({ cause })
  }
}
