/**
 * How large what a statement computes can get, by the statement alone. Nothing stops a function of
 * ClickHouse between two rows, and what is made of constants is computed before any limit counts. So
 * what makes texts and lists longer is bounded here, and so is what is searched for, where a search
 * takes time by the product of two lengths.
 */
import { sqlTables } from "../../../domain/sql/SqlTables.ts"
import { patternProblem } from "./SqlPattern.ts"
import { SqlProblem, type Token } from "./SqlTokens.ts"

/** Characters and elements of all that the calls of a statement make, with `COLUMN` for a column. */
const SIZES_MAX = 1_000_000
/** What a value of a column counts. It is bounded by what is stored, and blocks of rows by its size. */
const COLUMN = 10
/** More than any bound, for a value of which nothing is known. */
const UNKNOWN = 1e9
/** Above all that is compared. */
const SIZE_LIMIT = 1e15
/** Columns of a table, for `*`. */
const COLUMNS = 20
/** Characters of what is searched for. */
const NEEDLE_MAX = 1_000
/** Sizes, and names in them, that are computed to check a statement: the time that it takes. */
const COMPUTED_MAX = 80_000

const COLUMN_NAMES = new Set(Object.values(sqlTables).flatMap((columns) => Object.keys(columns)))
/** The names of `*`, and of columns that have no other name than their expression. */
const EVERYTHING = "*"
const UNNAMED = ""
const ANY_COLUMN = "metadata"

/** What a name stands for, in characters or elements. */
type SizeOf = (name: string) => number
type Size = (names: Names) => number

/** What names stand for in one place. Each size is computed once with them, and counted. */
class Names {
  readonly #of: SizeOf
  readonly #count: () => void
  readonly #sizes = new Map<Size, number>()
  readonly #inside = new Map<unknown, Names>()

  constructor(of: SizeOf, count: () => void) {
    this.#of = of
    this.#count = count
  }

  of(name: string): number {
    this.#count()
    return this.#of(name)
  }

  size(size: Size): number {
    this.#count()
    const known = this.#sizes.get(size)
    if (known !== undefined) return known
    const value = Math.min(SIZE_LIMIT, size(this))
    this.#sizes.set(size, value)
    return value
  }

  /** Where some names stand for another size. */
  with(some: ReadonlyArray<string>, size: number): Names {
    const other = new Set(some)
    return this.#within(`${size} ${some.join()}`, (name) =>
      other.has(name) ? size : this.of(name)
    )
  }

  /** Where names are called otherwise. */
  renamed(keys: ReadonlyMap<string, string>): Names {
    return this.#within(keys, (name) => this.of(keys.get(name) ?? name))
  }

  #within(key: unknown, of: SizeOf): Names {
    const names = this.#inside.get(key) ?? new Names(of, this.#count)
    this.#inside.set(key, names)
    return names
  }
}

interface Sized {
  readonly size: Size
}

/** What was read, for what is around it. */
interface Part {
  readonly size: Size
  /** Of a number: what it is at most. */
  readonly most?: Size
  /** Of a literal, as it is written for ClickHouse. */
  readonly text?: string
  /** Of names, or of names in brackets. */
  readonly names?: ReadonlyArray<string>
  /** Of a lambda: what it calls its arguments. */
  readonly parameters?: ReadonlyArray<string>
  /** Of a lambda: all that the calls in it make, for one element. */
  readonly calls?: Size
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
  (size: number): Size =>
  () =>
    size
const nothing = fixed(0)
const total =
  (parts: ReadonlyArray<Sized>): Size =>
  (names) =>
    parts.reduce((sum, { size }) => sum + names.size(size), 0)
const sizeOf = (part: Part | undefined): Size => part?.size ?? nothing

/** Of parts of which one is taken, or which are computed with. */
export const largest = (parts: ReadonlyArray<Part>): Part =>
  parts.length === 1
    ? parts[0]!
    : { size: (names) => parts.reduce((most, { size }) => Math.max(most, names.size(size)), 0) }

/** Of what gives no value to what is around it. */
export const none = (): Part => ({ size: nothing })

/** Of parts that are put together. */
export const sum = (parts: ReadonlyArray<Part>): Part => ({
  size: total(parts),
  names: parts.flatMap(({ names = [] }) => names)
})

/** `x -> …`: the names, and what it makes of them. */
export const lambda = (parts: ReadonlyArray<Part>): Part => ({
  size: sizeOf(parts.at(-1)),
  parameters: parts.slice(0, -1).flatMap(({ names = [] }) => names)
})

const times =
  (a: Size, b: Size): Size =>
  (names) =>
    names.size(a) * Math.max(1, names.size(b))

/** What grows by a count, which is the argument at `at`. */
const COUNTS: Readonly<Record<string, number>> = {
  repeat: 1,
  space: 0,
  leftpad: 1,
  rightpad: 1,
  lpad: 1,
  rpad: 1,
  leftpadutf8: 1,
  rightpadutf8: 1,
  tofixedstring: 1,
  arrayresize: 1,
  ngrams: 1
}
/** What takes at most so many, where the argument at `at` is known. */
const CUTS: Readonly<Record<string, number>> = {
  left: 1,
  leftutf8: 1,
  right: 1,
  rightutf8: 1,
  substring: 2,
  substr: 2,
  mid: 2,
  substringutf8: 2,
  arrayslice: 2
}
/** Characters that become of one. */
const EXPANSIONS: Readonly<Record<string, number>> = {
  bin: 8,
  tojsonstring: 6,
  encodeurlcomponent: 3,
  hex: 2,
  base64encode: 2,
  regexpquotemeta: 2,
  formatdatetime: 10,
  formatdatetimeinjodasyntax: 10
}
/** What makes lists of texts: in the text of a list a quote is two characters. */
const LISTS =
  /^(array|array(resize|push\w*)|tuple|map|range|split\w*|\w*tokens|ngrams|extract(all|groups)\w*|group\w+|topk\w*)$/
/** What holds all of its arguments; others hold no more than one of them. */
const SUMS =
  /^(concat\w*|char|append\w*|array|array(concat|push\w*|zip|union)|tuple\w*|map|map(add|update|fromarrays)|group_?concat)$/
/** Each of the first argument may become the last one, or the other way round. */
const PRODUCTS = /^(replace(all|one|regexpall|regexpone)?|arraystringconcat|format)$/
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

/** What is made of each element of lists: of it, and, as often as there are some, of the rest. */
const ofEach =
  (size: Size, elements: ReadonlyArray<string>, lists: Size): Size =>
  (names) => {
    const count = names.size(lists)
    return names.with(elements, count).size(size) + count * names.with(elements, 0).size(size)
  }

/** `arrayFold`: what one step adds, as often as there are elements; nothing may grow by itself. */
const folded = (made: Part, lists: Size, begin: Size): Size => {
  const [state = "", ...elements] = made.parameters ?? []
  return (names) => {
    const count = names.size(lists)
    const first = names.size(begin)
    const step = (from: number) => names.with([state], from).with(elements, count).size(made.size)
    const grows = step(NEEDLE_MAX + count) - step(0) > NEEDLE_MAX + count
    return grows ? UNKNOWN : first + (1 + count) * (1 + step(0))
  }
}

/** What a lambda makes of lists, or what the calls in it make then. */
const applied = (name: string, made: Part, others: ReadonlyArray<Part>) => {
  const { calls = nothing, parameters = [], size } = made
  if (name !== "arrayfold") {
    const lists = total(others)
    return { size: ofEach(size, parameters, lists), calls: ofEach(calls, parameters, lists) }
  }
  const [state = "", ...elements] = parameters
  const lists = total(others.slice(0, -1))
  const whole = folded(made, lists, sizeOf(others.at(-1)))
  const each = ofEach(calls, elements, lists)
  return { size: whole, calls: (names: Names) => names.with([state], names.size(whole)).size(each) }
}

export class SqlSizes {
  #parts: Array<Part> = []
  #lambdas = 0
  #computed = 0
  readonly #names: Array<Sized & { readonly name: string; readonly text?: string | undefined }> = []
  readonly #calls: Array<Sized & { readonly token: Token }> = []
  readonly #searches: Array<Sized & { readonly token: Token }> = []
  readonly #patterns: Array<{
    readonly pattern: Part | undefined
    readonly ofAll: boolean
    readonly token: Token
  }> = []

  /** A name that stands for what the statement alone doesn't say. */
  defineColumn(name: string): void {
    this.define(name, { size: (names) => names.of(ANY_COLUMN) })
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

  text(text: string): void {
    this.#parts.push({ size: fixed(text.length), text })
  }

  /** A number, or a text in digits as `x'4a'`. */
  number(text: string): void {
    const value = Number(text.replaceAll("_", ""))
    const most = fixed(Number.isNaN(value) ? UNKNOWN : Math.abs(value))
    this.#parts.push(text.includes("'") ? { size: fixed(text.length) } : { size: fixed(1), most })
  }

  /** A name, or several with dots between them. */
  name(names: ReadonlyArray<string>): void {
    const size: Size = (known) => names.reduce((most, name) => Math.max(most, known.of(name)), 0)
    this.#parts.push({ size, names })
  }

  star(): void {
    this.#parts.push({ size: (names) => names.of(EVERYTHING) })
  }

  /** What was read last has a name; as a column without one, ClickHouse gives it one of its own. */
  define(name = UNNAMED, part = this.#parts.at(-1)): void {
    if (part !== undefined) this.#names.push({ name, size: part.size, text: part.text })
  }

  /** A call of a function, whose name is in small letters. */
  call(name: string, parts: ReadonlyArray<Part>, token: Token): Part {
    const made = this.#called(name, parts, token)
    const called = LISTS.test(name) ? { ...made, size: times(made.size, fixed(2)) } : made
    // What a length is taken of is made all the same.
    this.#calls.push({ size: name.startsWith("length") ? total(parts) : called.size, token })
    for (const part of parts.filter(({ calls }) => calls !== undefined)) {
      const others = parts.filter((one) => one !== part)
      this.#calls.push({ size: applied(name, part, others).calls, token })
    }
    if (SEARCHES.test(name)) this.#search(name, parts, token)
    const at = ruleAt(PATTERNS, name)
    if (at !== undefined && parts.length > 1)
      this.#patterns.push({ pattern: parts[at], ofAll: OF_ALL_MATCHES.test(name), token })
    return called
  }

  /** An operator, by the function that it stands for, behind its operands. */
  operation(name: string, token: Token): void {
    const word = name.toLowerCase()
    if (word === "concat") this.#parts = [this.call(word, this.#parts, token)]
    else if (SEARCHES.test(word) || Object.hasOwn(PATTERNS, word))
      this.call(word, [largest(this.#parts.slice(0, -1)), this.#parts.at(-1)!], token)
  }

  #search(name: string, parts: ReadonlyArray<Part>, token: Token): void {
    const [first, second] = parts
    const isPattern = name.endsWith("like")
    const size: Size = isPattern
      ? sizeOf(second)
      : (names) => Math.min(names.size(sizeOf(first)), names.size(sizeOf(second)))
    if (second === undefined) return
    this.#searches.push({ size, token })
    // Another one in each row may be looked for at each place of a text.
    const both = [first, second].flatMap((part) => part ?? [])
    const isLiteral = both.some(({ text = "" }) => text !== "" && text.length <= NEEDLE_MAX)
    const { size: searched } = largest(both)
    if (!isLiteral) this.#calls.push({ size: (names) => NEEDLE_MAX * names.size(searched), token })
  }

  /** A lambda, of whose arguments nothing else has the names, and neither has what is in it. */
  #closed({ parameters = [], size }: Part, from: Begin): Part {
    this.#lambdas += 1
    const keyOf = (name: string): string => `${name} of lambda ${this.#lambdas}`
    const keys = new Map(parameters.map((name) => [name, keyOf(name)]))
    const closed =
      (inner: Size): Size =>
      (names) =>
        names.renamed(keys).size(inner)
    const close = <A extends Sized>(all: Array<A>, begin: number) => {
      for (const [at, one] of all.slice(begin).entries())
        all[begin + at] = { ...one, size: closed(one.size) }
    }
    close(this.#names, from.names)
    close(this.#searches, from.searches)
    const calls = closed(total(this.#calls.splice(from.calls)))
    return { size: closed(size), calls, parameters: [...keys.values()] }
  }

  #called(name: string, parts: ReadonlyArray<Part>, token: Token): Part {
    if (name === "least") {
      const known = parts.flatMap(({ most }) => (most === undefined ? [] : [most]))
      const most: Size = (names) =>
        known.reduce((most, one) => Math.min(most, names.size(one)), UNKNOWN)
      return { ...largest(parts), ...(known.length === 0 ? {} : { most }) }
    }
    if (name.startsWith("length")) return { size: fixed(1), most: total(parts) }
    if (name === "range") {
      const counts = parts.map((part) => this.#howMany(part, token))
      return { size: (names) => counts.reduce((count, one) => count + names.size(one), 0) }
    }
    const counted = ruleAt(COUNTS, name)
    if (counted !== undefined && counted < parts.length) {
      const others = parts.filter((_, at) => at !== counted)
      return {
        size: times(
          largest([{ size: fixed(1) }, sum(others)]).size,
          this.#howMany(parts[counted]!, token)
        )
      }
    }
    const [first, ...rest] = parts
    const cut = ruleAt(CUTS, name)
    const most = cut === undefined ? undefined : parts[cut]?.most
    if (first !== undefined && most !== undefined)
      return { size: (names) => Math.min(names.size(first.size), names.size(most)) }
    if (first?.parameters !== undefined) {
      const lists = total(rest)
      for (const parameter of first.parameters) this.define(parameter, { size: lists })
      return { size: applied(name, first, rest).size }
    }
    if (PRODUCTS.test(name) && first !== undefined) {
      const last = name === "format" ? rest : rest.slice(-1)
      return { size: times(sizeOf(first), total(last)) }
    }
    if (name === "tuple") return sum(parts)
    const whole = SUMS.test(name) ? total(parts) : largest(parts).size
    return { size: times(whole, fixed(ruleAt(EXPANSIONS, name) ?? 1)) }
  }

  #howMany({ most }: Part, { at, text }: Token): Size {
    if (most !== undefined) return most
    throw new SqlProblem(
      `how many ${text} makes has to be a number, length(x), or least(x, 100)`,
      at
    )
  }

  /**
   * What names stand for at most, wherever in the statement they do. In what defines a name the name
   * itself is another thing: a column, or what defines it elsewhere.
   */
  #solved(column: number): Names {
    const firstOf = (name: string): number => (COLUMN_NAMES.has(name) ? column : 0)
    const named = Map.groupBy(this.#names, ({ name }) => name)
    const known = new Map([...named.keys()].map((name) => [name, firstOf(name)]))
    let all = [...known.values()].reduce((sum, one) => sum + one, COLUMNS * column)
    const of: SizeOf = (name) =>
      name === EVERYTHING
        ? all
        : (known.get(name)
          ?? (/\W/.test(name) ? Math.max(column, known.get(UNNAMED) ?? 0) : column))
    const uses = this.#usesOf(named)
    const open = new Set(named.keys())
    const users = new Map<string, Array<string>>()
    for (const [name, used] of uses)
      for (const other of used) {
        const all = users.get(other) ?? []
        all.push(name)
        users.set(other, all)
      }
    // No name is made of another one over more steps than there are definitions.
    const rounds = this.#names.length
    for (let round = 0; open.size > 0 && round < rounds; round++) {
      for (const [name] of uses) {
        if (!open.delete(name)) continue
        const parts = named.get(name)!
        const before = of(name)
        let own = firstOf(name)
        for (const _ of parts) {
          const from = own
          const around = this.#where((other) =>
            other === name ? from : other === EVERYTHING ? all - before + from : of(other)
          )
          own = parts.reduce((most, { size }) => Math.max(most, around.size(size)), from)
          if (own === from) break
        }
        if (own <= before) continue
        known.set(name, own)
        all += own - before
        for (const other of [...(users.get(name) ?? []), ...(users.get(EVERYTHING) ?? [])]) {
          this.#count()
          if (other !== name) open.add(other)
        }
      }
    }
    return this.#where(of)
  }

  /**
   * What each name is made of. Names stand behind those that they are made of, but for rings, so that
   * few rounds are needed.
   */
  #usesOf(
    named: ReadonlyMap<string, ReadonlyArray<Sized>>
  ): ReadonlyMap<string, ReadonlySet<string>> {
    const usedBy = (name: string): ReadonlySet<string> => {
      const used = new Set<string>()
      const names = this.#where((other) => {
        used.add(named.has(other) || other === EVERYTHING || !/\W/.test(other) ? other : UNNAMED)
        return 0
      })
      for (const { size } of named.get(name)!) names.size(size)
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

  #where(of: SizeOf): Names {
    return new Names(of, () => this.#count())
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

  #checkSizes(): void {
    const names = this.#solved(COLUMN)
    const all = this.#calls.map(({ size, token }) => ({ size: names.size(size), token }))
    if (all.reduce((sum, { size }) => sum + size, 0) <= SIZES_MAX) return
    const { token } = all.toSorted((one, other) => other.size - one.size)[0]!
    const most = SIZES_MAX.toLocaleString("en-US")
    throw new SqlProblem(
      `the texts and lists that the statement makes can have more than ${most} characters and`
        + " elements: repeat less, or make shorter lists",
      token.at
    )
  }

  /** @error SqlProblem for what would take time that nothing bounds */
  check(): void {
    this.#checkSizes()
    if (this.#searches.length > 0) {
      const names = this.#solved(UNKNOWN)
      const long = this.#searches.find(({ size }) => names.size(size) > NEEDLE_MAX)
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
    if (name === undefined || others.length > 0 || COLUMN_NAMES.has(name)) return [undefined]
    const definitions = this.#names.filter((one) => one.name === name)
    return definitions.length === 0 ? [undefined] : definitions.map(({ text }) => text)
  }
}
