/**
 * Sessions of the console: what may be done to them, and when they end. One that has ended leaves
 * the registry a day later, of very many the oldest sooner; each sign-in and sign-out is in the
 * chain of the system tenant.
 */
import { formatMicros, microsOf } from "../Timestamp.ts"
import type { RegistryEntry, RegistryRemoval, Session } from "./RegistryEntry.ts"

/** Sessions of one tenant that are open at the same time. */
export const SESSIONS_MAX = 1_000

/** Why a session over the limit is refused; `limit` is SESSIONS_MAX. */
export const tooManySessions = (limit: number): string =>
  `this tenant has ${limit} open sessions, the most allowed; sign some out`

const KEPT_MICROS = 86_400_000_000
/** Sessions of one tenant that have ended and are kept, the newest of them. */
export const ENDED_SESSIONS_MAX = 1_000
/** A sign-in code, which is the id of one session, is valid for less: so long each is kept. */
const CODE_MICROS = 900_000_000

export const isOpen = ({ ended_at, expires_at }: Session, now: string): boolean =>
  ended_at === undefined && expires_at > now

/** How many of these are open. */
export const openSessions = (sessions: Iterable<Session>, now: string): number => {
  let count = 0
  for (const session of sessions) if (isOpen(session, now)) count++
  return count
}

/**
 * Sessions that ended more than a day ago, or are not among the newest ENDED_SESSIONS_MAX ended ones of
 * their tenant: at most `limit` of them.
 */
export const sessionsToPurge = (
  sessions: ReadonlyMap<string, Session>,
  now: string,
  limit: number
): ReadonlyArray<RegistryRemoval> => {
  const ago = (micros: number) => formatMicros(microsOf(now) - micros)
  const [before, notBefore] = [ago(KEPT_MICROS), ago(CODE_MICROS)]
  const leaving: Array<Session> = []
  const kept: Array<Session> = []
  for (const session of sessions.values()) {
    if (isOpen(session, now)) continue
    const { created_at, ended_at, expires_at } = session
    if ((ended_at ?? expires_at) <= before) leaving.push(session)
    else if (created_at <= notBefore) kept.push(session)
  }
  for (const own of Map.groupBy(kept, ({ tenant_id }) => tenant_id).values()) {
    if (own.length <= ENDED_SESSIONS_MAX) continue
    own.sort((left, right) => (left.created_at < right.created_at ? -1 : 1))
    leaving.push(...own.slice(0, own.length - ENDED_SESSIONS_MAX))
  }
  return leaving.slice(0, limit).map(({ id }) => ({ kind: "removed", key: `session/${id}` }))
}

/** The entry of a session that is open until now, or undefined. */
export const endedSession = (
  session: Session | undefined,
  endedAt: string
): RegistryEntry | undefined =>
  session === undefined || !isOpen(session, endedAt)
    ? undefined
    : { kind: "session", session: { ...session, ended_at: endedAt } }
