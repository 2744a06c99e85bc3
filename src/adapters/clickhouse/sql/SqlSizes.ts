/**
 * How large what a statement computes can get, by the statement alone. Nothing stops a function of
 * ClickHouse between two rows, and what is made of constants is computed before any limit counts. So
 * what makes texts and lists longer is bounded here, and so is what is searched for, where a search
 * takes time by the product of two lengths.
 */

import { takesFunction } from "../../../domain/sql/SqlFunctions.ts"
import {
  type Count,
  type Definition,
  EVERYTHING,
  isColumn,
  type Names,
  type Size,
  type Sized,
  solved,
  UNNAMED,
  valuesOf
} from "./SqlNames.ts"
import { patternProblem } from "./SqlPattern.ts"
import { made } from "./SqlSizeRules.ts"
import { contentOf, SqlProblem, type Token } from "./SqlTokens.ts"
import {
  anything,
  elementOf,
  isList,
  isSame,
  list,
  listed,
  memberOf,
  nothing,
  number,
  oneOf,
  text,
  UNKNOWN,
  unknown,
  type Value
} from "./SqlValues.ts"

/** Characters and elements of all that the calls of a statement make, with `COLUMN` for a column. */
const SIZES_MAX = 1_000_000
/** What a value of a column counts. It is bounded by what is stored, and blocks of rows by its size. */
const COLUMN = 10
/** Characters of what is searched for. */
const NEEDLE_MAX = 1_000
/** Sizes, and names in them, that are computed to check a statement: the time that it takes. */
const COMPUTED_MAX = 80_000
/** Steps of `arrayFold` that are computed; what it makes has to be as large as before after these. */
const STEPS_MAX = 100

/** What was read, for what is around it. */
interface Part {
  readonly size: Size
  /** Of a number: what it is at most. */
  readonly most?: Count
  /** Of such a number, whether it is never below zero, or never further below it than above. */
  readonly below?: "nothing" | "most"
  /** Of a literal, as it is written for ClickHouse. */
  readonly text?: string
  /** Of names, or of names in brackets. */
  readonly names?: ReadonlyArray<string>
  /** Of a lambda: what it calls its arguments. */
  readonly parameters?: ReadonlyArray<string>
  /** Of a lambda: all that the calls in it make, for one element. */
  readonly calls?: Count
  /** What is in the first brackets of an aggregate function that has two of them. */
  readonly given?: ReadonlyArray<Part>
}

type Whole<A> = (parts: ReadonlyArray<Part>, read: A) => Part

/** What was there before some parts. */
interface Begin {
  readonly parts: Array<Part>
  readonly calls: number
  readonly names: number
  readonly searches: number
}

const fixed =
  (value: Value): Size =>
  () =>
    value
const largestOf = (values: ReadonlyArray<Value>): number =>
  values.reduce((most, { size }) => Math.max(most, size), 0)

/** Of parts of which one is taken. */
export const largest = (parts: ReadonlyArray<Part>): Part =>
  parts.length === 1 ? parts[0]! : { size: (names) => oneOf(valuesOf(parts, names)) }

/** Of what gives no value to what is around it. */
export const none = (): Part => ({ size: fixed(nothing) })

/** Of INTERVAL: a list, as several are a tuple, and so is what they are added up to. */
export const interval = (parts: ReadonlyArray<Part>): Part => ({
  size: (names) => {
    const { printed } = oneOf(
      valuesOf(
        parts.filter(({ text }) => text !== undefined),
        names
      )
    )
    return list(1 + Math.floor(printed / 4), number())
  }
})

/** Of a subquery: what is in it, or a tuple of that. */
export const sum = (parts: ReadonlyArray<Part>): Part => ({
  size: (names) => {
    const values = valuesOf(parts, names).filter((one) => one.printed > 0 || isList(one))
    return values.length === 1 ? values[0]! : oneOf([listed(values), ...values])
  },
  names: parts.flatMap(({ names = [] }) => names)
})

/** `x -> …`: the names, and what it makes of them. */
export const lambda = (parts: ReadonlyArray<Part>): Part => ({
  size: parts.at(-1)?.size ?? fixed(nothing),
  parameters: parts.slice(0, -1).flatMap(({ names = [] }) => names)
})

/** Functions of which an argument is a type. */
const TYPED = /^(accurate)?cast(ornull|ordefault)?$|^jsonextract(keysandvalues)?$/
/** Time by the product of the lengths of their first two arguments. */
const SEARCHES =
  /^(position\w*|locate|multisearch\w*|countsubstrings\w*|hassubsequence\w*|splitbystring|substringindex\w*|replace(all|one)?|(not)?i?like|has(all|any|substr)|extracturlparameter|ngramsearch|ngramdistance)$/
/** Regular expressions: which argument is the pattern. */
const PATTERNS: Readonly<Record<string, number>> = {
  match: 1,
  extract: 1,
  regexpextract: 1,
  extractgroups: 1,
  replaceregexpone: 1,
  extractall: 1,
  extractallgroups: 1,
  extractallgroupsvertical: 1,
  extractallgroupshorizontal: 1,
  countmatches: 1,
  countmatchescaseinsensitive: 1,
  replaceregexpall: 1,
  splitbyregexp: 0
}
const OF_ALL_MATCHES = /all|count|split/

const ruleAt = (rules: Readonly<Record<string, number>>, name: string): number | undefined =>
  Object.hasOwn(rules, name) ? rules[name] : undefined

/** What each element of lists is, and how many there are. */
const elementsOf = (lists: ReadonlyArray<Value>): readonly [count: number, each: Value] => [
  lists.reduce((most, { count }) => Math.max(most, count), 0),
  oneOf(lists.map(elementOf))
]

/** `arrayFold`: what there is behind all steps. */
const folded = (names: Names, made: Part, lists: ReadonlyArray<Value>, begin: Value): Value => {
  const [state = "", ...elements] = made.parameters ?? []
  const [count, each] = elementsOf(lists)
  const inside = names.with(elements, each)
  let value = begin
  for (let step = 0; step < Math.min(count, STEPS_MAX); step++) {
    const next = oneOf([value, inside.with([state], value).get(made.size)])
    if (isSame(next, value)) return value
    value = next
  }
  return count > STEPS_MAX ? unknown : value
}

/** What a lambda makes of one element of lists; what the calls in it make of all of them. */
const applied = (name: string, made: Part, others: ReadonlyArray<Part>) => {
  const { calls = () => 0, parameters = [], size } = made
  const [state = "", ...elements] = parameters
  const isFold = name === "arrayfold"
  const lists = isFold ? others.slice(0, -1) : others
  const whole: Size = (names) => {
    const values = valuesOf(lists, names)
    if (isFold) return folded(names, made, values, names.get(others.at(-1)!.size))
    return names.with(parameters, elementsOf(values)[1]).get(size)
  }
  const inside = (names: Names, each: Value): Names =>
    isFold
      ? names.with(elements, each).with([state], names.get(whole))
      : names.with(parameters, each)
  return {
    size: whole,
    calls: (names: Names) => {
      const [count, each] = elementsOf(valuesOf(lists, names))
      return count * inside(names, each).get(calls)
    }
  }
}

const totalOf = (all: ReadonlyArray<{ readonly count: Count }>, names: Names): number =>
  all.reduce((sum, { count }) => sum + names.get(count), 0)

/** Of `least`, whose arguments are all known. */
const leastBelow = (parts: ReadonlyArray<Part>): Pick<Part, "below"> =>
  parts.every(({ below }) => below === "nothing") ? { below: "nothing" } : {}

export class SqlSizes {
  #parts: Array<Part> = []
  #lambdas = 0
  #computed = 0
  /** Bytes of the types that it names. */
  #types = 0
  /** How often tables of WITH are named, and how many sets of rows are put one behind the other. */
  #tables = 0
  #unions = 1
  #isCollecting = false
  readonly #names: Array<Definition> = []
  readonly #calls: Array<{ readonly count: Count; readonly token: Token }> = []
  readonly #searches: Array<{ readonly count: Count; readonly token: Token }> = []
  /** Lists of which each element becomes a row. */
  readonly #rows: Array<Sized> = []
  readonly #patterns: Array<{
    readonly pattern: Part | undefined
    readonly ofAll: boolean
    readonly token: Token
  }> = []

  /** A name that means what the statement alone doesn't say. */
  defineColumn(name: string): void {
    this.define(name, { size: ({ column }) => anything(column) })
  }

  /** What is read until `end` counts as one part. */
  begin(): Begin {
    const begin = {
      parts: this.#parts,
      calls: this.#calls.length,
      names: this.#names.length,
      searches: this.#searches.length
    }
    this.#parts = []
    return begin
  }

  end(begin: Begin, whole: (parts: ReadonlyArray<Part>) => Part): void {
    const part = whole(this.#parts)
    const isLambda = part.parameters !== undefined && part !== this.#parts[0]
    this.#parts = begin.parts
    this.#parts.push(isLambda ? this.#closed(part, begin) : part)
  }

  of<A>(whole: Whole<A>, read: () => A): A {
    const begin = this.begin()
    const value = read()
    this.end(begin, (parts) => whole(parts, value))
    return value
  }

  /** In brackets: one part, or a tuple. */
  together(parts: ReadonlyArray<Part>, token: Token): Part {
    return parts.length === 1 ? parts[0]! : this.call("tuple", parts, token)
  }

  text(content: string): void {
    this.#parts.push({ size: fixed(text(Buffer.byteLength(content))), text: content })
  }

  /** A number, or a text in digits as `x'4a'`. */
  number(digits: string): void {
    if (digits.includes("'")) {
      this.#parts.push({ size: fixed(text(digits.length)) })
      return
    }
    const value = Number(digits.replaceAll("_", ""))
    const most = Number.isNaN(value) ? UNKNOWN : Math.abs(value)
    const size = fixed(number(/^\d+$/.test(digits) ? digits.length + 1 : undefined))
    this.#parts.push({ size, most: () => most, below: "nothing" })
  }

  /** A name, or several with dots between them. */
  name(names: ReadonlyArray<string>): void {
    const size: Size =
      names.length === 1
        ? (known) => known.of(names[0]!)
        : (known) => {
            const defined = names.filter((name) => this.#isDefined(name))
            const all = (defined.length === 0 ? names : defined).map((name) => known.of(name))
            return oneOf(all.map(memberOf))
          }
    this.#parts.push({ size, names })
  }

  #isDefined(name: string): boolean {
    return isColumn(name) || this.#names.some((one) => one.name === name)
  }

  star(): void {
    this.#parts.push({ size: (names) => names.of(EVERYTHING) })
  }

  /** What was read last has a name; as a column without one, ClickHouse gives it one of its own. */
  define(name = UNNAMED, part = this.#parts.at(-1)): void {
    if (part !== undefined) this.#names.push({ name, size: part.size, text: part.text })
  }

  /** What was read are the first of two brackets of an aggregate function. */
  given(): void {
    this.#parts = [{ size: fixed(nothing), given: this.#parts }]
  }

  /** Each element of what was read last becomes a row. */
  rows(): void {
    const part = this.#parts.at(-1)
    if (part !== undefined) this.#rows.push(part)
  }

  /** Other rows come behind those of a SELECT, so often. */
  union(times = 1): void {
    this.#unions += times
  }

  /** Parts that were read of which each makes rows. */
  rowMakers(): number {
    return this.#rows.length + this.#unions + this.#tables
  }

  /** A table of WITH that makes rows is named, which counts as so many tables. */
  table(tables: number): void {
    this.#tables += tables
  }

  /** A call of a function, whose name is in small letters. */
  call(name: string, read: ReadonlyArray<Part>, token: Token): Part {
    const parts = takesFunction(name) ? this.#withLambda(read, token) : read
    const made = this.#called(name, parts, token)
    this.#counted(made, parts, 0, token)
    for (const part of parts.filter(({ calls }) => calls !== undefined)) {
      const others = parts.filter((one) => one !== part)
      this.#calls.push({ count: applied(name, part, others).calls, token })
    }
    if (SEARCHES.test(name)) this.#search(name, parts, token)
    const at = ruleAt(PATTERNS, name)
    if (at !== undefined && parts.length > 1)
      this.#patterns.push({ pattern: parts[at], ofAll: OF_ALL_MATCHES.test(name), token })
    return made
  }

  /** The name of a function in the place of a lambda is one that calls it. */
  #withLambda(parts: ReadonlyArray<Part>, token: Token): ReadonlyArray<Part> {
    const [first, ...others] = parts
    const called = first?.names?.[0]?.toLowerCase()
    if (called === undefined || first?.parameters !== undefined || others.length === 0) return parts
    this.#lambdas += 1
    const parameters = others.map((_, at) => `argument ${at} of lambda ${this.#lambdas}`)
    const values = parameters.map((name) => ({ size: (names: Names) => names.of(name) }))
    const { size } = this.#called(called, values, token)
    return [
      { size, parameters, calls: (names) => largestOf(valuesOf([...values, { size }], names)) },
      ...others
    ]
  }

  /** An operator, by the function that it means, behind its operands. */
  operation(name: string, token: Token): void {
    const word = name.replace(" ", "").toLowerCase()
    if (word === "concat" || SEARCHES.test(word) || Object.hasOwn(PATTERNS, word))
      this.#parts = [this.call(word, this.#parts, token)]
    else this.apply(word, this.#parts.length, token)
  }

  /** What is a function of what was read last. */
  apply(name: string, count: number, token: Token): void {
    const parts = this.#parts.splice(-count, count)
    const made = this.#called(name, parts, token)
    this.#counted(made, /in$/.test(name) ? parts.slice(0, 1) : parts, COLUMN, token)
    this.#parts.push(made)
  }

  /** What it makes is counted, or what it is made of, but for sizes up to `free`. */
  #counted({ size }: Part, parts: ReadonlyArray<Part>, free: number, token: Token): void {
    const count: Count = (names) => {
      const most = Math.max(names.get(size).size, largestOf(valuesOf(parts, names)))
      return most > free ? most : 0
    }
    this.#calls.push({ count, token })
  }

  #search(name: string, parts: ReadonlyArray<Part>, token: Token): void {
    const [first, second] = parts
    if (first === undefined || second === undefined) return
    const isPattern = name.endsWith("like")
    const count: Count = (names) => {
      const needle = names.get(second.size).size
      return isPattern ? needle : Math.min(names.get(first.size).size, needle)
    }
    this.#searches.push({ count, token })
    // Another one in each row may be looked for at each place of a text.
    const both = [first, second]
    const isLiteral = both.some(({ text = "" }) => text !== "" && text.length <= NEEDLE_MAX)
    if (!isLiteral)
      this.#calls.push({ count: (names) => NEEDLE_MAX * largestOf(valuesOf(both, names)), token })
  }

  /** A lambda, of whose arguments nothing else has the names, and neither has what is in it. */
  #closed({ parameters = [], size }: Part, from: Begin): Part {
    this.#lambdas += 1
    const keyOf = (name: string): string => `${name} of lambda ${this.#lambdas}`
    const keys = new Map(parameters.map((name) => [name, keyOf(name)]))
    const closed =
      <A>(inner: (names: Names) => A) =>
      (names: Names): A =>
        names.renamed(keys).get(inner)
    for (const [at, one] of this.#names.slice(from.names).entries())
      this.#names[from.names + at] = { ...one, size: closed(one.size) }
    for (const [at, one] of this.#searches.slice(from.searches).entries())
      this.#searches[from.searches + at] = { ...one, count: closed(one.count) }
    const inside = this.#calls.splice(from.calls)
    const calls = closed((names) => totalOf(inside, names))
    return { size: closed(size), calls, parameters: [...keys.values()] }
  }

  #called(name: string, parts: ReadonlyArray<Part>, token: Token): Part {
    if (TYPED.test(name))
      this.#types += parts.reduce((sum, { text = "" }) => sum + Buffer.byteLength(text), 0)
    if (name === "arrayjoin") this.#rows.push(...parts)
    this.#isCollecting ||= /group|sum_?map|m(in|ax)map|map$/.test(name)
    const lambda = parts.find(({ parameters }) => parameters !== undefined)
    const given = parts.flatMap((one) => one.given ?? [])
    const plain = parts.filter((one) => one !== lambda && one.given === undefined)
    const [first] = plain
    const whole = lambda && applied(name, lambda, plain).size
    for (const parameter of lambda?.parameters ?? [])
      this.define(parameter, { size: (names) => elementsOf(valuesOf(plain, names))[1] })
    const howMany = (from: ReadonlyArray<Part>, names: Names) => (at: number) =>
      this.#howMany(name, from, at, names, token)
    const size: Size = (names) => {
      if (name === "arrayfold" && whole !== undefined) return names.get(whole)
      const one = whole === undefined ? {} : { made: names.get(whole) }
      return made({
        ...one,
        name,
        values: valuesOf(plain, names),
        given: valuesOf(given, names),
        literal: (at) => contentOf(plain[at]?.text ?? "\\"),
        howMany: howMany(plain, names),
        howManyGiven: howMany(given, names),
        cut: (at) => (plain[at]?.below === "nothing" ? plain[at].most?.(names) : undefined),
        rows: Math.max(names.column, names.rows),
        types: this.#types
      })
    }
    const called: Part = { size }
    if (name === "tuple") return { size, names: parts.flatMap(({ names = [] }) => names) }
    if (name.startsWith("length"))
      return {
        size,
        most: (names) => largestOf(valuesOf(parts, names)),
        below: "nothing"
      }
    if (name === "negate" && first?.most !== undefined)
      return { size, most: first.most, below: "most" }
    if (name !== "least") return called
    const known = parts.flatMap(({ most }) => (most === undefined ? [] : [most]))
    if (known.length === 0) return called
    const most: Count = (names) => Math.min(...known.map((one) => one(names)))
    return { size, most, ...(known.length === parts.length ? leastBelow(parts) : {}) }
  }

  #howMany(
    name: string,
    parts: ReadonlyArray<Part>,
    at: number,
    names: Names,
    { at: place, text }: Token
  ): number {
    const { below, most } = parts[at] ?? {}
    // Below zero there is nothing, but where it says from where on, or from which end.
    const isFromZero = name !== "arrayresize" && (name !== "range" || parts.length === 1)
    if (most !== undefined && (isFromZero || below !== undefined)) return most(names)
    throw new SqlProblem(
      `how many ${text} makes has to be a number, length(x), or least(x, 100)`,
      place
    )
  }

  /** What names mean at most, wherever in the statement they are. */
  #solved(column: number, rows: number): Names {
    return solved(this.#names, { column, rows }, () => this.#count())
  }

  #count(): void {
    this.#computed += 1
    if (this.#computed > COMPUTED_MAX)
      throw new SqlProblem(
        "the names and calls of the statement are made of one another in too many ways:"
          + " write fewer of them",
        0
      )
  }

  /** Rows that the statement makes of nothing, and that those can be made of. */
  #rowsMade(): number {
    let rows = 1
    if (!this.#isCollecting) return rows
    for (const _ of [1, 2]) {
      const names = this.#solved(0, rows)
      const each = valuesOf(this.#rows, names).reduce((all, one) => all * Math.max(1, one.count), 1)
      rows = Math.min(UNKNOWN, (each * this.#unions) ** Math.max(1, this.#tables))
    }
    return rows
  }

  #checkSizes(rows: number): void {
    const names = this.#solved(COLUMN, rows)
    const all = this.#calls.map(({ count, token }) => ({ size: names.get(count), token }))
    if (all.reduce((sum, { size }) => sum + size, 0) <= SIZES_MAX) return
    const { token } = all.toSorted((one, other) => other.size - one.size)[0]!
    const most = SIZES_MAX.toLocaleString("en-US")
    throw new SqlProblem(
      `the texts and lists that the statement makes can have more than ${most} characters and`
        + " elements: repeat less, or make shorter lists",
      token.at
    )
  }

  /** How large what a name means can get. */
  sizeOf(name: string): Value {
    return this.#solved(COLUMN, this.#rowsMade()).of(name)
  }

  /** @error SqlProblem for what would take time that nothing bounds */
  check(): void {
    const rows = this.#rowsMade()
    this.#checkSizes(rows)
    if (this.#searches.length > 0) {
      const names = this.#solved(UNKNOWN, rows)
      const long = this.#searches.find(({ count }) => names.get(count) > NEEDLE_MAX)
      if (long !== undefined)
        throw new SqlProblem(
          `what ${long.token.text} looks for has to be a text of at most`
            + ` ${NEEDLE_MAX.toLocaleString("en-US")} characters, or left(x, 100)`,
          long.token.at
        )
    }
    type Text = string | undefined
    const problems = [new Map<Text, Text>(), new Map<Text, Text>()] as const
    const problemOf = (text: Text, ofAll: boolean): Text => {
      const known = problems[ofAll ? 1 : 0]
      if (!known.has(text)) known.set(text, patternProblem(text, ofAll))
      return known.get(text)
    }
    for (const { ofAll, pattern, token } of this.#patterns) {
      const why = this.#textsOf(pattern)
        .map((text) => problemOf(text, ofAll))
        .find((one) => one !== undefined)
      if (why !== undefined) throw new SqlProblem(`the pattern of ${token.text} ${why}`, token.at)
    }
  }

  /** The literals that a part is; undefined among them if it is anything else. */
  #textsOf(part: Part | undefined): ReadonlyArray<string | undefined> {
    if (part?.text !== undefined) return [part.text]
    const [name, ...others] = part?.names ?? []
    if (name === undefined || others.length > 0 || isColumn(name)) return [undefined]
    const definitions = this.#names.filter((one) => one.name === name)
    return definitions.length === 0 ? [undefined] : definitions.map(({ text }) => text)
  }
}
