/** How long erased details stay on the topics. */
import { COMMANDS_RETENTION_DAYS } from "../../domain/records/Topics.ts"
import { formatMicros, microsOf } from "../../domain/Timestamp.ts"

const DAY_MS = 86_400_000

/**
 * Until when the topics keep what was written to them at a time: the public one for its retention,
 * and the request that brought it for as long as commands are kept.
 */
export const topicCopyUntil = (since: string, retentionMs: number | "forever"): string | null => {
  if (retentionMs === "forever") return null
  const longest = Math.max(retentionMs, COMMANDS_RETENTION_DAYS * DAY_MS)
  return formatMicros(microsOf(since) + longest * 1_000)
}
