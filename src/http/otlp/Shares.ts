/** How many of something are open at a time, in all and of one client. */

export class Shares {
  readonly #max: number
  readonly #ofOneMax: number
  readonly #open = new Map<string, number>()
  #all = 0

  constructor({ max, ofOneMax }: { readonly max: number; readonly ofOneMax: number }) {
    this.#max = max
    this.#ofOneMax = ofOneMax
  }

  /** Opens one of a client; what closes it again, once. undefined: too many are open. */
  open(client: string): (() => void) | undefined {
    const ofOne = this.#open.get(client) ?? 0
    if (this.#all >= this.#max || ofOne >= this.#ofOneMax) return undefined
    this.#all += 1
    this.#open.set(client, ofOne + 1)
    return () => this.#close(client)
  }

  #close(client: string): void {
    this.#all -= 1
    const left = this.#open.get(client)! - 1
    if (left === 0) this.#open.delete(client)
    else this.#open.set(client, left)
  }
}
