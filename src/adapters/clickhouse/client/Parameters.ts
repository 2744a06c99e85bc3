/** The bound parameters of one statement. */

export type ParameterValue = string | number

/** Collects parameters; the same value of the same type is bound once. */
export class Parameters {
  readonly #names = new Map<string, string>()
  readonly values: Record<string, ParameterValue> = {}

  /** The placeholder that stands for the value. */
  bind(type: string, value: ParameterValue): string {
    const key = `${type} ${value}`
    const known = this.#names.get(key)
    const name = known ?? `p${this.#names.size}`
    if (known === undefined) {
      this.#names.set(key, name)
      this.values[name] = value
    }
    return `{${name}:${type}}`
  }

  string(value: string): string {
    return this.bind("String", value)
  }

  integer(value: number): string {
    return this.bind("UInt64", value)
  }

  /** A time in canonical microsecond form. */
  time(value: string): string {
    return this.bind("DateTime64(6, 'UTC')", value.replace("T", " ").replace("Z", ""))
  }
}
