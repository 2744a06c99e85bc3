/** Trees whose newest checkpoint, or last mismatch, is remembered, and unknown keys. */
const REMEMBERED_MAX = 10_000

/** The last `REMEMBERED_MAX` values. */
export class Remembered<A> {
  readonly #values = new Map<string, A>()

  get(key: string): A | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: A): void {
    this.#values.delete(key)
    if (this.#values.size >= REMEMBERED_MAX) this.#values.delete(this.#values.keys().next().value!)
    this.#values.set(key, value)
  }

  delete(key: string): void {
    this.#values.delete(key)
  }
}
