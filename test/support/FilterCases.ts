/**
 * Seeded random events and filter expressions, chosen to trip evaluators: wildcards of SQL, quotes,
 * dots in keys, nested arrays, numbers at the ends of doubles, letters whose case changes their
 * length. The same seed gives the same cases.
 */
import type { Json } from "./Client.ts"
import type { Expression } from "./FilterEvaluator.ts"

/** Uniform numbers in [0, 1): mulberry32. */
const generator = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

const TEXTS = [
  "alice",
  "Alice",
  "ALICE",
  "alice ",
  "a%e",
  "a_ice",
  "al",
  "%",
  "_",
  "\\",
  "\\%",
  "a\\b",
  "it's",
  '"quoted"',
  "ß",
  "SS",
  "ss",
  "ẞ",
  "İ",
  "i",
  "ı",
  "I",
  "i̇",
  "Σ",
  "ς",
  "σ",
  "ΟΔΟΣ",
  "οδος",
  "😀",
  "👩‍👩‍👧",
  "é",
  "é",
  "東京",
  "ǅ",
  "ﬁ",
  "K",
  "k",
  "true",
  "false",
  "null",
  "1",
  "01",
  "1.0",
  "1e+21",
  "1e21",
  "0",
  "-0",
  "[",
  "[]",
  "{}",
  "[1]",
  ",",
  ":",
  '","a":"',
  "a.b",
  "*",
  "a*",
  "'); DROP",
  "{p0:String}",
  "?",
  "&",
  "=",
  "#",
  "+",
  "%41",
  "a b",
  "/",
  "ａ",
  "Ⅷ",
  "ⅷ",
  "\u00a0",
  "\u200b",
  "0x10",
  "<b>",
  "Å",
  "Å"
]
const IDS = TEXTS.filter((text) => text.trim() !== "" || text === "\u00a0")
const KEYS = [
  "a",
  "b",
  "c",
  "a.b",
  "b.c",
  "a.b.c",
  "",
  ".",
  "x y",
  "É",
  "é",
  "%",
  "_",
  "a\\b",
  'k"q',
  "__proto__",
  "length",
  "0",
  "constructor",
  "東"
]
const NUMBERS = [
  0,
  -0,
  1,
  -1,
  10,
  1.5,
  0.1,
  -0.001,
  1e-7,
  1e15,
  1e16,
  1e20,
  -1e20,
  1e21,
  1e22,
  5e-324,
  1.7976931348623157e308,
  2 ** 53 - 1,
  2 ** 63,
  2 ** 64,
  123456789012345680000,
  4.35
]
const ACTIONS = [
  "document.read",
  "document.share",
  "Document.read",
  "documents.read",
  "doc_1.a-b.c",
  "document.read.all",
  "user.login"
]

export class Cases {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = generator(seed)
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #oneOf<A>(values: ReadonlyArray<A>): A {
    return values[this.#below(values.length)]!
  }

  #chance(share: number): boolean {
    return this.#random() < share
  }

  #text(): string {
    return this.#chance(0.7)
      ? this.#oneOf(TEXTS)
      : Array.from({ length: 1 + this.#below(3) }, () => this.#oneOf(TEXTS)).join(
          this.#oneOf(["", " ", "."])
        )
  }

  #value(depth: number): unknown {
    const kind = this.#random()
    if (depth > 0 && kind < 0.2) return this.#object(depth - 1)
    if (depth > 0 && kind < 0.4) {
      return Array.from({ length: this.#below(4) }, () => this.#value(depth - 1))
    }
    if (kind < 0.75) return this.#text()
    return kind < 0.92 ? this.#oneOf(NUMBERS) : this.#oneOf([true, false, null])
  }

  #object(depth: number): Json {
    const object: Json = {}
    for (let count = this.#below(5); count > 0; count--) {
      // Assignment would call the setter of __proto__.
      Object.defineProperty(object, this.#oneOf(KEYS), {
        value: this.#value(depth),
        enumerable: true,
        configurable: true,
        writable: true
      })
    }
    return object
  }

  #time(): string {
    const second = String(this.#below(20)).padStart(2, "0")
    return `2026-01-01T00:00:${second}.${this.#oneOf(["000000", "000001", "5", "999999"]).padEnd(6, "0")}Z`
  }

  /** An event as a client sends it, with an id that only the number tells apart. */
  event(number: number): Json {
    return {
      id: `${this.#oneOf(IDS)}-${number}`,
      timestamp: this.#time(),
      actor: {
        id: this.#oneOf(IDS),
        type: this.#oneOf(["human", "agent", "system"]),
        ...(this.#chance(0.5) ? { email: this.#text() } : {})
      },
      action: this.#oneOf(ACTIONS),
      resource: {
        id: this.#oneOf(IDS),
        type: this.#oneOf(IDS),
        ...(this.#chance(0.5) ? { name: this.#text() } : {})
      },
      outcome: this.#oneOf(["success", "failure", "error"]),
      ...(this.#chance(0.9) ? { metadata: this.#object(3) } : {})
    }
  }

  /** A path into a value and the text of what stands there, or of something else. */
  #pathInto(metadata: Json): readonly [path: string, value: string] {
    const path: Array<string> = []
    let value: unknown = metadata
    while (typeof value === "object" && value !== null) {
      const keys = Object.keys(value)
      if (keys.length === 0) break
      const key = this.#oneOf(keys)
      if (!Array.isArray(value)) path.push(key)
      value = (value as Json)[key]
    }
    const text =
      typeof value === "object" ? "null" : `${Object.is(value, -0) ? 0 : (value as string)}`
    return [path.join("."), this.#chance(0.85) ? text : this.#text()]
  }

  #slice(text: string): string {
    const letters = Array.from(text)
    const start = this.#below(letters.length)
    return letters.slice(start, start + 1 + this.#below(4)).join("")
  }

  #recased(text: string): string {
    return this.#oneOf([text, text.toUpperCase(), text.toLowerCase()])
  }

  #condition(events: ReadonlyArray<Json>): readonly [string, string] {
    const sample = this.#oneOf(events)
    const other = this.#chance(0.15)
    switch (this.#below(13)) {
      case 0:
        return ["id", other ? this.#text() : sample["id"]]
      case 1:
        return ["actor_id", other ? this.#text() : sample["actor"].id]
      case 2:
        return ["actor_type", this.#oneOf(["human", "agent", "system"])]
      case 3:
        return [
          "action",
          this.#oneOf([...ACTIONS, "document.*", "doc_1.*", "document.read.*", "user.*"])
        ]
      case 4:
        return ["resource_id", other ? this.#text() : sample["resource"].id]
      case 5:
        return ["resource_type", other ? this.#text() : sample["resource"].type]
      case 6:
        return ["outcome", this.#oneOf(["success", "failure", "error"])]
      case 7:
        return [
          this.#oneOf(["from", "to"]),
          this.#chance(0.5)
            ? sample["timestamp"]
            : sample["timestamp"].replace("T00:", "T01:").replace("Z", "789+01:00")
        ]
      case 8:
        return [
          this.#oneOf(["from_sequence", "to_sequence"]),
          String(this.#below(events.length + 2))
        ]
      case 9:
      case 10: {
        const texts = [
          sample["action"],
          sample["actor"].id,
          sample["actor"].email,
          sample["resource"].name,
          ...Object.values(sample["metadata"] ?? {}).filter((value) => typeof value === "string")
        ].filter(Boolean)
        return ["q", this.#recased(other ? this.#text() : this.#slice(this.#oneOf(texts)))]
      }
      default: {
        const [path, value] = this.#pathInto(sample["metadata"] ?? {})
        const isUsable = path !== "" && path.split(".").length <= 6
        return [`metadata.${isUsable ? path : "a"}`, value]
      }
    }
  }

  /** Conditions of which most match something; some hold a name that no filter has. */
  expression(events: ReadonlyArray<Json>): Expression {
    const conditions = Array.from({ length: 1 + this.#below(3) }, () => this.#condition(events))
    if (this.#chance(0.06)) {
      const name = this.#oneOf([
        "actor",
        "actorId",
        "outcome!",
        "format",
        "limit",
        "Action",
        "metadata",
        "metadata.",
        "x",
        "resource.id",
        "from ",
        "__proto__",
        "toString"
      ])
      conditions.splice(this.#below(conditions.length + 1), 0, [
        name,
        this.#oneOf(["csv", "1", ""])
      ])
    }
    const seen = new Set<string>()
    return this.#chance(0.03)
      ? conditions
      : conditions.filter(([name]) => !seen.has(name) && seen.add(name) !== undefined)
  }

  order(): "asc" | "desc" {
    return this.#oneOf(["asc", "desc"])
  }

  /** A page of a list, from the first to one past the end of a long one. */
  page(): { readonly page: number; readonly size: number } {
    return { page: 1 + this.#below(4), size: 1 + this.#below(20) }
  }

  dimension(): string {
    return this.#oneOf([
      "action",
      "outcome",
      "actor_type",
      "actor_id",
      "resource_type",
      "resource_id"
    ])
  }
}
