/** How long the HTTP server waits for its clients, in milliseconds. */
import { Context } from "effect"

export interface ServerTimes {
  /** That the head of a request may take to arrive. */
  readonly headMs: number
  /** Between two looks for connections that are over their time. */
  readonly lookMs: number
  /**
   * After which a connection is cut whose client takes nothing of what waits for it. Longer than the
   * time between two keep-alive comments of a stream.
   */
  readonly stalledMs: number
  /**
   * That idle connections stay open when the server goes down: what a client's pool has sent on one
   * of them meanwhile is answered, and the answer says that the connection ends.
   */
  readonly idleGraceMs: number
  /** That replies in flight have when the server goes down; then they are refused. */
  readonly shutdownMs: number
}

export const SERVER_TIMES: ServerTimes = {
  headMs: 15_000,
  lookMs: 5_000,
  stalledMs: 60_000,
  idleGraceMs: 500,
  shutdownMs: 10_000
}

/** What the server of this process goes by. */
export const CurrentServerTimes: Context.Reference<ServerTimes> = Context.Reference<ServerTimes>(
  "alk/http/CurrentServerTimes",
  { defaultValue: () => SERVER_TIMES }
)
