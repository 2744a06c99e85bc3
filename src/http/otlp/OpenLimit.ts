/** How many of something may be open at a time, in all and of one client. */
import { Tally } from "../../domain/Tally.ts"

export class OpenLimit {
  readonly #max: number
  readonly #ofOneMax: number
  readonly #open = new Tally()

  constructor({ max, ofOneMax }: { readonly max: number; readonly ofOneMax: number }) {
    this.#max = max
    this.#ofOneMax = ofOneMax
  }

  /** Opens one of a client; what closes it again, once. undefined: too many are open. */
  open(client: string): (() => void) | undefined {
    if (this.#open.total >= this.#max || this.#open.of(client) >= this.#ofOneMax) return undefined
    this.#open.add(client, 1)
    return () => this.#open.add(client, -1)
  }
}
