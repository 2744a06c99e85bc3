/** Commands as they are on `alk.quarantine`, for tests below the log. */
import { COMMAND_FORMAT, type Command } from "../../src/domain/records/Command.ts"
import { encodeCommand } from "../../src/domain/records/CommandBytes.ts"
import type { QuarantinedBytes } from "../../src/services/administration/QuarantineTopic.ts"
import { ingestCommand } from "./Events.ts"

/** A command of the tenant acme with two events that failed, unless told otherwise. */
export const quarantined = (
  partition: number,
  commandOffset: number,
  more: Partial<QuarantinedBytes> = {},
  command: Command = ingestCommand("acme", 2)
): QuarantinedBytes => {
  const bytes = encodeCommand(command)
  return {
    id: `${partition}-${commandOffset}`,
    partition,
    commandOffset,
    quarantinedAt: "2026-11-21T12:00:00.000000Z",
    kind: "failed",
    reason: "no time: yesterday",
    bytes: bytes.length,
    format: COMMAND_FORMAT,
    value: bytes,
    command,
    ...more
  }
}
