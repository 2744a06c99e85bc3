/**
 * Sessions of the console: what may be done to them, and when they end. One that has ended leaves
 * the registry a day later; each sign-in and sign-out is in the chain of the system tenant.
 */
import { formatMicros, microsOf } from "../Timestamp.ts"
import type { RegistryEntry, RegistryRemoval, Session } from "./RegistryEntry.ts"

/** Sessions of one tenant that are open at the same time. */
export const SESSIONS_MAX = 1_000

/** Why a session over the limit is refused; `limit` is SESSIONS_MAX. */
export const tooManySessions = (limit: number): string =>
  `this tenant has ${limit} open sessions, the most allowed; sign some out`

const KEPT_MICROS = 86_400_000_000

export const isOpen = ({ ended_at, expires_at }: Session, now: string): boolean =>
  ended_at === undefined && expires_at > now

/** How many of these are open. */
export const openSessions = (sessions: Iterable<Session>, now: string): number => {
  let count = 0
  for (const session of sessions) if (isOpen(session, now)) count++
  return count
}

/** Sessions that ended more than a day ago: at most `limit` of them. */
export const sessionsToPurge = (
  sessions: ReadonlyMap<string, Session>,
  now: string,
  limit: number
): ReadonlyArray<RegistryRemoval> => {
  const before = formatMicros(microsOf(now) - KEPT_MICROS)
  const leaving: Array<RegistryRemoval> = []
  for (const { ended_at, expires_at, id } of sessions.values()) {
    if (leaving.length >= limit) break
    if ((ended_at ?? expires_at) <= before) leaving.push({ kind: "removed", key: `session/${id}` })
  }
  return leaving
}

/** The entry of a session that is open until now, or undefined. */
export const endedSession = (
  session: Session | undefined,
  endedAt: string
): RegistryEntry | undefined =>
  session === undefined || !isOpen(session, endedAt)
    ? undefined
    : { kind: "session", session: { ...session, ended_at: endedAt } }
