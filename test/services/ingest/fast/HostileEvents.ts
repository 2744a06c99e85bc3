/**
 * Makes requests that are hard to read: valid events in every spelling, near every limit, and with
 * anything wrong in them. Everything follows from the seed.
 */

/** Numbers from 0 to 2^32 - 1 (mulberry32). */
export const randomOf = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
}

const PLAIN = ["a", "Z", "0", " "]
const CHARACTERS = [
  ...PLAIN,
  '"',
  "\\",
  "/",
  "\n",
  "\t",
  "\b",
  "\u0001",
  "\u001f",
  "\u007f",
  "\u0080",
  "\u009f",
  "\u00a0",
  "é",
  "€",
  "日",
  "😀",
  "\u2028",
  "<",
  "\ufeff",
  "\ufdd0",
  "\uffff",
  "\u{10ffff}"
]
/** No numbers of JSON. */
const NO_NUMBERS = ["01", "1.", ".5", "+1", "-", "00", "1_0", "0x1", "NaN", "Infinity"]
/** Units that no text may have. */
const REFUSED = ["\ud800", "\udc00", "\u0000"]
const NUMBERS = (
  "0 -0 1 -1 1.5 1.50 0.1 1e3 1E-7 123456789012345 12345678901234 1234567890123456 -0.0 100 1e400 "
  + "9007199254740993 0.000001 0.0000001 0.0001 0.00001 -0.5 -0.00001 12345678901234567890 "
  + "3.14159265358979 0.00000123 -12.25 5e-324 999999999999999.5 0.123456789012345 0.1234567890123 "
  + "-12345678901234 -123456789012345 0.00012345678901 1.0 0.0 -1e0 0.10000000000000001 36028797018963968"
).split(" ")
const KEYS = ["a", "b", "B", "aa", "z", "10", "2", "é", "", "__proto__", "constructor", "דּ", "😀"]
const LITERALS = ["true", "false", "null", "null", "tru", "nul", "True", "falsey"]
const TIMES = [
  "2026-02-30T00:00:00Z",
  "2026-02-29T00:00:00Z",
  "2024-02-29T00:00:00Z",
  "2100-02-29T00:00:00Z",
  "2000-02-29T23:59:59.999999999Z",
  "2026-04-31T00:00:00Z",
  "2026-12-31T23:59:59Z",
  "2026-01-31T10:00:00+01:00",
  "2026-01-31T10:00:00+00:00",
  "2026-01-31T10:00:00.5+00:00",
  "2026-01-31T10:00:00-00:00",
  "2026-01-31T10:00:00.+00:00",
  "2026-01-31T10:00:00.Z",
  "1969-12-31T23:59:59Z",
  "1970-01-01T00:00:00Z",
  "2261-12-31T23:59:59.999999Z",
  "2262-01-01T00:00:00Z",
  "2026-01-01t00:00:00z",
  "2026-01-01T00:00:00z",
  "2026-01-01T24:00:00Z",
  "2026-01-01T00:60:00Z",
  "2026-01-01T00:00:60Z",
  "2026-13-01T00:00:00Z",
  "2026-00-01T00:00:00Z",
  "2026-01-00T00:00:00Z",
  "2026-01-01T00:00:00.1234567Z",
  "2026-01-01T00:00:00.1234567890123Z",
  "2026-01-01 00:00:00Z",
  "2026-01-01T00:00:00",
  "2026-1-01T00:00:00Z",
  "+2026-01-01T00:00:00Z",
  "x",
  ""
]
const ACTIONS = ["alk.x", "read", "a..b", "a.b!", ".a.b", "a.", "", "é.b", "alka.b", "a.b\u007f"]
const GOOD_ACTIONS = ["document.read", "a.b", "login_x.fa-il.3"]

/** Requests of one seed. */
export class HostileEvents {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = randomOf(seed)
  }

  /** From 0 to `below`, without it. */
  below(below: number): number {
    return this.#random() % below
  }

  pick<A>(values: ReadonlyArray<A>): A {
    return values[this.below(values.length)]!
  }

  #rarely(times: number): boolean {
    return this.below(60) < times
  }

  #text(lengthMax = 20): string {
    let text = ""
    for (let left = this.below(lengthMax); left > 0; left--) {
      text += this.pick(this.below(3) === 0 ? CHARACTERS : PLAIN)
    }
    return this.#rarely(1) ? text + this.pick(REFUSED) : text
  }

  /** A text of a length around a limit. */
  #long(limit: number): string {
    return this.pick(["a", "a", "é", "😀"]).repeat(limit - 2 + this.below(5))
  }

  /** A character as some writer of JSON spells it. */
  #spell(unit: string): string {
    if (this.below(3) > 0) return unit === "/" ? "\\/" : JSON.stringify(unit).slice(1, -1)
    const hex = unit.charCodeAt(0).toString(16).padStart(4, "0")
    return `\\u${this.below(2) === 0 ? hex : hex.toUpperCase()}`
  }

  #string(text: string): string {
    if (this.below(500) === 0)
      return this.pick(['"\\x"', '"\\u12"', '"\t"', '"open', '"\\', "'a'", '"\\"'])
    return this.below(2) === 0
      ? JSON.stringify(text)
      : `"${Array.from({ length: text.length }, (_, at) => this.#spell(text[at]!)).join("")}"`
  }

  #space(): string {
    return this.pick(["", "", "", "", " ", "\n ", "\t", "\r\n"])
  }

  #list(parts: ReadonlyArray<string>): string {
    return parts.join(`${this.#space()},${this.#space()}`)
  }

  #value(depth: number): string {
    switch (this.below(depth > 4 ? 4 : 7)) {
      case 0:
        return this.#string(this.#text())
      case 1:
        return this.#number()
      case 2:
        return this.pick(LITERALS.slice(0, this.below(500) === 0 ? 8 : 4))
      case 3:
        return this.#string(this.#text(40))
      case 4: {
        const elements = Array.from({ length: this.below(4) }, () => this.#value(depth + 1))
        return `[${this.#space()}${this.#list(elements)}${this.#space()}]`
      }
      default:
        return this.#object(depth + 1)
    }
  }

  #number(): string {
    if (this.below(500) === 0) return this.pick(NO_NUMBERS)
    return this.below(8) === 0 ? this.pick(NUMBERS) : String(this.below(1_000))
  }

  #object(depth: number): string {
    if (depth === 0 && this.#rarely(2)) return this.#deepOrWide()
    const members = Array.from({ length: this.below(5) }, () => {
      const key = this.#string(this.below(6) > 0 ? this.pick(KEYS) : this.#text(5))
      return `${key}${this.#space()}:${this.#space()}${this.#value(depth)}`
    })
    return `{${this.#space()}${this.#list(members)}${this.#space()}}`
  }

  #deepOrWide(): string {
    const size = this.pick([26, 60]) + this.below(10)
    if (this.below(2) === 0) return '{"a":'.repeat(size) + "1" + "}".repeat(size)
    const keys = Array.from({ length: size * 2 }, (_, at) => `"k${(at * 37) % 101}":${at}`)
    return this.#rarely(20)
      ? `{"a":"${"x".repeat(16_000 + this.below(600))}"}`
      : `{${keys.join(",")}}`
  }

  #shuffled(parts: ReadonlyArray<string>): ReadonlyArray<string> {
    const rest = [...parts]
    return parts.map(() => rest.splice(this.below(rest.length), 1)[0]!)
  }

  #id(): string {
    if (this.#rarely(2)) return this.#text(10)
    if (this.#rarely(1)) return this.#long(this.pick([256, 1_024]))
    return `id${this.below(1e6)}`
  }

  #time(): string {
    if (this.#rarely(10)) return this.pick(TIMES)
    const two = (below: number, from = 0) => String(from + this.below(below)).padStart(2, "0")
    return (
      `20${10 + this.below(80)}-${two(12, 1)}-${two(31, 1)}T${two(24)}:${two(60)}:${two(60)}`
      + `${this.pick(["", ".5", ".123456", ".000001", ".120"])}${this.pick(["Z", "Z", "+00:00"])}`
    )
  }

  #part(named: string): string {
    if (this.#rarely(1)) return this.pick(["null", "{}", "[]", "1", '"x"'])
    const members = [`"id":${this.#space()}${this.#string(this.#id())}`]
    const isActor = named === "email"
    const types = this.#rarely(1) ? ["robot", "Human", "human "] : ["human", "agent", "system"]
    if (!isActor || this.below(4) > 0) members.push(`"type":${this.#string(this.pick(types))}`)
    const long = this.#long(isActor ? 320 : 1_024)
    const text = this.#rarely(1) ? long : this.#text()
    if (this.below(2) === 0) {
      members.push(`"${named}":${this.#rarely(1) ? this.pick(["null", "1"]) : this.#string(text)}`)
    }
    if (this.#rarely(1))
      members.push(this.pick(['"extra":{}', '"id":"twice"', '"":1', '"i\\u0064":1']))
    return `{${this.#space()}${this.#list(this.#shuffled(members))}${this.#space()}}`
  }

  /** One item: mostly an event, often not quite. */
  item(): string {
    const action = this.#rarely(3)
      ? this.pick([...ACTIONS, `a.${this.#long(126)}`])
      : this.pick(GOOD_ACTIONS)
    const members = [
      `"actor":${this.#space()}${this.#part("email")}`,
      `"action":${this.#string(action)}`,
      `"resource":${this.#part("name")}`
    ]
    if (this.below(2) === 0) members.push(`"id":${this.#string(this.#id())}`)
    if (this.below(4) > 0) members.push(`"timestamp":${this.#space()}${this.#string(this.#time())}`)
    const outcomes = this.#rarely(1) ? ["ok", "Success"] : ["success", "failure", "error"]
    if (this.below(4) > 0) members.push(`"outcome":${this.#string(this.pick(outcomes))}`)
    if (this.below(4) > 0) {
      const metadata = this.#rarely(1) ? this.pick(["null", "[]", "1"]) : this.#object(0)
      members.push(`"metadata":${this.#space()}${metadata}`)
    }
    if (this.#rarely(3)) {
      members.push(
        this.pick([
          '"extra":1',
          '"id":"twice"',
          '"actor":{"type":"human"}',
          '"resource":{"name":"x"}',
          '"metadata":{}',
          '"actixx":"a.b"',
          '"timestamq":"x"',
          '"metadatb":{}',
          '"resourcf":{}',
          '"outcom":"success"',
          '"a\\u0063tion":"a.b"'
        ])
      )
    }
    if (this.#rarely(1)) members.splice(this.below(members.length), 1)
    const text = `{${this.#space()}${this.#list(this.#shuffled(members))}${this.#space()}}`
    return this.#rarely(1) ? this.damaged(text) : text
  }

  /** A text with a piece of it missing, doubled or replaced. */
  damaged(text: string): string {
    const at = this.below(text.length)
    const piece = this.pick(["", "", '"', "{", "}", "[", "]", ",", ":", "\\", "\u0000", "é", "0"])
    return text.slice(0, at) + piece + text.slice(at + this.below(3))
  }
}
