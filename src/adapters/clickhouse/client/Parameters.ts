/** The bound parameters of one statement, and the conditions that many statements share. */

export type ParameterValue = string | number

/** Collects parameters; the same value of the same type is bound once. */
export class Parameters {
  readonly #names = new Map<string, string>()
  readonly values: Record<string, ParameterValue> = {}

  /** The placeholder of the value. */
  as(type: string, value: ParameterValue): string {
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
    return this.as("String", value)
  }

  integer(value: number): string {
    return this.as("UInt64", value)
  }

  /** A time in canonical microsecond form. */
  time(value: string): string {
    return this.as("DateTime64(6, 'UTC')", value.replace("T", " ").replace("Z", ""))
  }

  /** A list of values, without brackets. */
  strings(values: ReadonlyArray<string>): string {
    return values.map((value) => this.string(value)).join(", ")
  }

  integers(values: ReadonlyArray<number>): string {
    return values.map((value) => this.integer(value)).join(", ")
  }

  /** The rows of a tenant. */
  tenant(tenantId: string): string {
    return `tenant_id = ${this.string(tenantId)}`
  }

  /** The rows of a topic's partition. */
  partition(partition: number): string {
    return `kafka_partition = ${this.as("UInt32", partition)}`
  }

  /** Both ends included. */
  between(column: string, first: number, last: number): string {
    return `${column} BETWEEN ${this.integer(first)} AND ${this.integer(last)}`
  }

  /**
   * What is on one side of a place in the order of a number, then of the hash. The first of the two
   * conditions is what the primary key can use.
   */
  beside(
    column: string,
    sign: ">" | "<" | "<=" | ">=",
    [number, hash]: readonly [number, string]
  ): string {
    const at = this.integer(number)
    return `${column} ${sign[0]}= ${at} AND (${column}, hash) ${sign} (${at}, ${this.string(hash)})`
  }
}

/** The text of a statement; each value in it is bound. */
export type Statement = (bind: Parameters) => string
