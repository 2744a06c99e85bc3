/** Numbers by name, and their sum. A name whose number is 0 takes no memory. */
export class Tally {
  readonly #numbers = new Map<string, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  of(name: string): number {
    return this.#numbers.get(name) ?? 0
  }

  /** Less for a number below zero. */
  add(name: string, by: number): void {
    this.#total += by
    const now = this.of(name) + by
    if (now === 0) this.#numbers.delete(name)
    else this.#numbers.set(name, now)
  }
}
