/**
 * A map that holds the entries which were set last, for what can be found out again: beyond its
 * limit the entry that was set longest ago goes. Reading does not move an entry, setting does.
 */
export class BoundedMap<A> {
  readonly #entries = new Map<string, A>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get(key: string): A | undefined {
    return this.#entries.get(key)
  }

  set(key: string, value: A): void {
    this.#entries.delete(key)
    if (this.#entries.size >= this.#max) this.#entries.delete(this.#entries.keys().next().value!)
    this.#entries.set(key, value)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  keys(): Iterable<string> {
    return this.#entries.keys()
  }
}
