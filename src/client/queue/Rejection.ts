/** What a client says of an item that the service has not, and of what delays the others. */
import type { ApiFailure } from "../ApiFailure.ts"

/** An event or operation that is not stored. */
export interface Rejection {
  readonly id: string
  /**
   * The service's code (`missing_field`, `id_conflict`, …), or one of the client: `queue_full`,
   * `closed`, `unstorable_value`, `not_delivered` (given up at the end; it may be stored all the same).
   */
  readonly code: string
  /** For people: names the field and what to do. */
  readonly message: string
  /** What was logged. */
  readonly item: unknown
}

/** Something that a person should know, though nothing is lost. */
export type Warning =
  /** Requests fail for now, and are repeated; what was logged is kept. */
  | {
      readonly kind: "delayed"
      readonly failure: ApiFailure
      /** Items that wait. */
      readonly waiting: number
      /** Milliseconds since the first of these failures. */
      readonly forMs: number
    }
  /** The service stores an event without this field, which it doesn't know. */
  | { readonly kind: "unknown_field"; readonly id: string; readonly field: string }

/** A number of things, of which the first are named. */
export interface Some<A> {
  readonly some: ReadonlyArray<A>
  readonly total: number
}

/** Named in the text of an error. */
const SHOWN_MAX = 3

const join = <A>(parts: ReadonlyArray<Some<A>>): Some<A> => ({
  some: parts.flatMap(({ some }) => some),
  total: parts.reduce((sum, { total }) => sum + total, 0)
})

const textOf = (rejected: Some<Rejection>, waiting: Some<string>): string =>
  [
    ...(rejected.total === 0 ? [] : [`${rejected.total} not stored`]),
    ...rejected.some
      .slice(0, SHOWN_MAX)
      .map(({ code, id, message }) => `${id}: ${code}, ${message}`),
    ...(waiting.total === 0
      ? []
      : [`${waiting.total} still waiting (${waiting.some.slice(0, SHOWN_MAX).join(", ")})`])
  ].join("; ")

/** What `flush` and `close` reject with. */
export class NotAcknowledged extends Error {
  override readonly name = "NotAcknowledged"
  /** What was refused or dropped since the last flush: the number, and the first 1,000. */
  readonly rejected: Some<Rejection>
  /** Ids of what still waits: it is not lost, and is sent on unless the client was closed. */
  readonly waiting: Some<string>

  constructor(rejected: Some<Rejection>, waiting: Some<string>, failure: ApiFailure | undefined) {
    const last = failure === undefined ? "" : `; last failure: ${failure.message}`
    super(`not everything is acknowledged: ${textOf(rejected, waiting)}${last}`, { cause: failure })
    this.rejected = rejected
    this.waiting = waiting
  }

  /** Several as one. */
  static of(parts: ReadonlyArray<NotAcknowledged>): NotAcknowledged {
    const causes = parts.map(({ cause }) => cause as ApiFailure | undefined)
    return new NotAcknowledged(
      join(parts.map(({ rejected }) => rejected)),
      join(parts.map(({ waiting }) => waiting)),
      causes.find((cause) => cause !== undefined)
    )
  }
}

/** What `log` throws with the overflow policy `throw`. */
export class QueueFull extends Error {
  override readonly name = "QueueFull"
}
