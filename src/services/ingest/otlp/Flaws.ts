/** What of an export could not be read, by the message that is in its place. */

export interface Flaw {
  /** All of the message, or one of its members that has a name which does not exist. */
  readonly kind: "unreadable" | "unknown_name"
  /** What is wrong; of a name, the path. */
  readonly message: string
  /** JSON text, or bytes in base64; a name. */
  readonly sent: string
  /** It was more than is read of one message, whatever it is. */
  readonly isTooMuch?: boolean
}

export class Flaws {
  readonly #byMessage = new Map<object, ReadonlyArray<Flaw>>()

  add(message: object, ...flaws: ReadonlyArray<Flaw>): void {
    if (flaws.length > 0) this.#byMessage.set(message, [...this.of(message), ...flaws])
  }

  of(message: object): ReadonlyArray<Flaw> {
    return this.#byMessage.get(message) ?? []
  }

  /** What is wrong with all of a message; undefined if it was read. */
  unreadable(message: object): Flaw | undefined {
    return this.of(message).find(({ kind }) => kind === "unreadable")
  }

  get all(): ReadonlyArray<Flaw> {
    return [...this.#byMessage.values()].flat()
  }
}

/** Of an export that could be read. */
export const NO_FLAWS = new Flaws()
