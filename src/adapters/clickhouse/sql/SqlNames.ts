/**
 * What the names of a statement mean: columns of the tables, and what it calls by a name itself,
 * in as many places and orders as there are.
 */
import { sqlTables } from "../../../domain/sql/SqlTables.ts"
import { anything, isSame, list, nothing, oneOf, text, type Value } from "./SqlValues.ts"

/** Columns of a table, for `*`. */
const COLUMNS = 20
const COLUMN_TYPES: Readonly<Record<string, readonly [type: string, description: string]>> =
  Object.assign({}, ...Object.values(sqlTables))
/** The names of `*`, and of columns that have no other name than their expression. */
export const EVERYTHING = "*"
export const UNNAMED = ""

/** What a name means. */
type ValueOf = (name: string) => Value
export type Size = (names: Names) => Value

/** What names mean in one place. What is made of them is computed once, and counted. */
export class Names {
  readonly column: number
  readonly rows: number
  readonly #of: ValueOf
  readonly #count: () => void
  readonly #known = new Map<unknown, unknown>()
  readonly #inside = new Map<unknown, Names>()

  constructor(of: ValueOf, count: () => void, { column, rows }: Counted) {
    this.#of = of
    this.#count = count
    this.column = column
    this.rows = rows
  }

  of(name: string): Value {
    this.#count()
    return this.#of(name)
  }

  get<A>(make: (names: Names) => A): A {
    this.#count()
    const known = this.#known.get(make)
    if (known !== undefined) return known as A
    const value = make(this)
    this.#known.set(make, value)
    return value
  }

  /** Where some names mean another value. */
  with(some: ReadonlyArray<string>, value: Value): Names {
    const other = new Set(some)
    return this.#within(`${JSON.stringify(value)} ${some.join()}`, (name) =>
      other.has(name) ? value : this.of(name)
    )
  }

  /** Where names are called otherwise. */
  renamed(keys: ReadonlyMap<string, string>): Names {
    return this.#within(keys, (name) => this.of(keys.get(name) ?? name))
  }

  #within(key: unknown, of: ValueOf): Names {
    const names = this.#inside.get(key) ?? new Names(of, this.#count, this)
    this.#inside.set(key, names)
    return names
  }
}

/** Characters and elements, as they are counted. */
export type Count = (names: Names) => number

/** What a column, and the rows that an aggregate function sees, are counted as. */
interface Counted {
  readonly column: number
  readonly rows: number
}

export interface Sized {
  readonly size: Size
}

/** A name, and what it means in one place. */
export interface Definition extends Sized {
  readonly name: string
  /** Of a literal. */
  readonly text?: string | undefined
}

export const valuesOf = (parts: ReadonlyArray<Sized>, names: Names): ReadonlyArray<Value> =>
  parts.map(({ size }) => names.get(size))
/** A value of a column of the tables. */
const columnOf = (name: string, column: number): Value | undefined => {
  if (!Object.hasOwn(COLUMN_TYPES, name)) return undefined
  return COLUMN_TYPES[name]![0].startsWith("Array")
    ? list(column, text(column), column)
    : text(column)
}

export const isColumn = (name: string): boolean => Object.hasOwn(COLUMN_TYPES, name)

/**
 * What each name is made of. Names come behind those that they are made of, but for rings, so that
 * few rounds are needed.
 */
const usesOf = (
  named: ReadonlyMap<string, ReadonlyArray<Sized>>,
  where: (of: ValueOf) => Names
): ReadonlyMap<string, ReadonlySet<string>> => {
  const usedBy = (name: string): ReadonlySet<string> => {
    const used = new Set<string>()
    const names = where((other) => {
      used.add(named.has(other) || other === EVERYTHING || !/\W/.test(other) ? other : UNNAMED)
      return nothing
    })
    for (const { size } of named.get(name)!) names.get(size)
    return used
  }
  const seen = new Set<string>()
  const uses = new Map<string, ReadonlySet<string>>()
  for (const first of named.keys()) {
    const path: Array<readonly [string, ReadonlySet<string>, Iterator<string>]> = []
    const enter = (name: string) => {
      if (seen.has(name) || !named.has(name)) return
      seen.add(name)
      const used = usedBy(name)
      path.push([name, used, used.values()])
    }
    enter(first)
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const { done, value } = last[2].next()
      if (done !== true) enter(value)
      else {
        path.pop()
        uses.set(last[0], last[1])
      }
    }
  }
  return uses
}

/**
 * What names mean at most, wherever in the statement they are. In what defines a name the name
 * itself is another thing: a column, or what defines it elsewhere.
 */
export const solved = (
  definitions: ReadonlyArray<Definition>,
  counted: Counted,
  count: () => void
): Names => {
  const { column } = counted
  const firstOf = (name: string): Value => columnOf(name, column) ?? nothing
  const named = Map.groupBy(definitions, ({ name }) => name)
  const known = new Map([...named.keys()].map((name) => [name, firstOf(name)]))
  let all = [...known.values()].reduce((sum, one) => sum + one.printed, COLUMNS * column)
  const of: ValueOf = (name) => {
    if (name === EVERYTHING) return anything(all)
    const value = known.get(name) ?? columnOf(name, column)
    if (value !== undefined) return value
    const unnamed = /\W/.test(name) ? known.get(UNNAMED) : undefined
    return oneOf([anything(column), unnamed ?? nothing])
  }
  const where = (place: ValueOf) => new Names(place, count, counted)
  const uses = usesOf(named, where)
  const open = new Set(named.keys())
  const users = new Map<string, Array<string>>()
  for (const [name, used] of uses)
    for (const other of used) {
      const all = users.get(other) ?? []
      all.push(name)
      users.set(other, all)
    }
  // No name is made of another one over more steps than there are definitions.
  const rounds = definitions.length
  for (let round = 0; open.size > 0 && round < rounds; round++) {
    for (const [name] of uses) {
      if (!open.delete(name)) continue
      const parts = named.get(name)!
      const before = of(name)
      let own = firstOf(name)
      for (const _ of parts) {
        const from = own
        const around = where((other) => {
          if (other === name) return from
          return other === EVERYTHING ? anything(all - before.printed + from.printed) : of(other)
        })
        own = oneOf([from, ...valuesOf(parts, around)])
        if (isSame(own, from)) break
      }
      own = oneOf([before, own])
      if (isSame(own, before)) continue
      known.set(name, own)
      all += own.printed - before.printed
      for (const other of [...(users.get(name) ?? []), ...(users.get(EVERYTHING) ?? [])]) {
        count()
        if (other !== name) open.add(other)
      }
    }
  }
  return where(of)
}
