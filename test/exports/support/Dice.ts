/** Numbers from a seed (mulberry32). */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761) >>> 0
  }

  below(count: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * count)
  }

  one<A>(values: ReadonlyArray<A>): A {
    return values[this.below(values.length)]!
  }

  /** True once in so many times. */
  once(times: number): boolean {
    return this.below(times) === 0
  }
}
