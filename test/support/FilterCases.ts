/**
 * Seeded random events and filter expressions, chosen to trip evaluators: wildcards of SQL, quotes,
 * dots in keys, nested arrays, numbers at the ends of doubles, letters whose case changes their
 * length. The same seed gives the same cases.
 */
import type { Json } from "./Client.ts"
import type { Condition, Expression, Tree, Value } from "./FilterEvaluator.ts"

/** A text as a value of a parameter. */
const escaped = (text: string): string => text.replace(/[\\,*]/g, "\\$&")

/** The path of a parameter's name. */
const named = (path: string): string => path.replace(/[\\!<>=]/g, "\\$&")

const shown = ({ isOpen, text }: Value): string => `${escaped(text)}${isOpen ? "*" : ""}`

const ALIASES: Readonly<Record<string, ReadonlyArray<string>>> = {
  actor_id: ["actor", "actor.id"],
  actor_email: ["email", "actor.email"],
  resource_id: ["resource", "resource.id"],
  sequence_number: ["sequence"]
}

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
  "東",
  "x>y",
  "z!"
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

  /** A value of the sample's or of another one, sometimes only how it begins. */
  #valueOf(text: string): Value {
    const chosen = this.#chance(0.2) ? this.#text() : text
    if (this.#chance(0.05)) return { text: "", isOpen: true }
    const isOpen = this.#chance(0.2)
    const letters = Array.from(chosen)
    return { text: isOpen ? letters.slice(0, 1 + this.#below(3)).join("") : chosen, isOpen }
  }

  #sign(): ">" | ">=" | "<" | "<=" {
    return this.#oneOf([">", ">=", "<", "<="])
  }

  #equality(): "=" | "!=" {
    return this.#chance(0.25) ? "!=" : "="
  }

  #timeText(sample: Json): string {
    return this.#oneOf([
      sample["timestamp"],
      sample["timestamp"].replace("T00:", "T01:").replace("Z", "789+01:00"),
      "2026-01-01",
      "2025-12-31"
    ])
  }

  #numberText(): string {
    const number = this.#oneOf(NUMBERS)
    return String(Object.is(number, -0) ? 0 : number)
  }

  /** A condition on a field or on metadata. */
  #field(events: ReadonlyArray<Json>): Condition {
    const sample = this.#oneOf(events)
    const values = (of: (sample: Json) => Value): ReadonlyArray<Value> =>
      Array.from({ length: this.#chance(0.6) ? 1 : 2 + this.#below(2) }, (_, at) =>
        of(at === 0 ? sample : this.#oneOf(events))
      )
    const exact = (text: string): Value => ({ text, isOpen: false })
    switch (this.#below(8)) {
      case 0:
        return {
          name: "outcome",
          sign: this.#equality(),
          values: values((of) => exact(of["outcome"]))
        }
      case 1:
        return {
          name: "actor_type",
          sign: this.#equality(),
          values: values((of) => exact(of["actor"].type))
        }
      case 2: {
        const isRange = this.#chance(0.6)
        const bound = () => exact(String(this.#below(events.length + 2)))
        return {
          name: "sequence_number",
          sign: isRange ? this.#sign() : this.#equality(),
          values: isRange ? [bound()] : values(bound)
        }
      }
      case 3: {
        const isCreated = this.#chance(0.3)
        const text = isCreated ? this.#oneOf(["-24h", "-400000h"]) : this.#timeText(sample)
        const sign = isCreated || this.#chance(0.6) ? this.#sign() : this.#equality()
        return {
          name: isCreated ? "created_at" : "timestamp",
          sign,
          values: [exact(text)]
        }
      }
      case 4:
      case 5: {
        const name = this.#oneOf([
          "id",
          "actor_id",
          "actor_email",
          "action",
          "resource_id",
          "resource_type",
          "resource_name"
        ])
        const [part = "", member] = name.split("_")
        const textIn = (of: Json): string =>
          (member === undefined ? of[part] : of[part][member]) || "none"
        return { name, sign: this.#equality(), values: values((of) => this.#valueOf(textIn(of))) }
      }
      default: {
        const [path, text] = this.#pathInto(sample["metadata"] ?? {})
        const isUsable = path !== "" && path.split(".").length <= 6
        const name = `metadata.${isUsable ? path : "a"}`
        if (this.#chance(0.3)) {
          return { name, sign: this.#sign(), values: [exact(this.#numberText())] }
        }
        const value = this.#valueOf(text === "" ? "none" : text)
        return { name, sign: this.#equality(), values: [value] }
      }
    }
  }

  /** The parameters that say a condition, in one of the ways in which it can be said. */
  #parameters({ name, sign, values }: Condition): ReadonlyArray<readonly [string, string]> {
    const key = name.startsWith("metadata.") ? `metadata.${named(name.slice(9))}` : name
    const isTime = name === "timestamp" || name === "created_at"
    const texts = values.map((value) => (isTime ? value.text : shown(value)))
    if (sign === "=" || sign === "!=") {
      const isList = !name.startsWith("metadata.") && this.#chance(0.6)
      const said = isList ? [texts.join(",")] : texts
      return said.map((text) =>
        sign === "="
          ? ([key, text] as const)
          : this.#oneOf([[`${key}!`, text] as const, [`${key}!=`, text] as const])
      )
    }
    const [text = ""] = texts
    const isWhole = this.#chance(0.5)
    return sign.length === 1 || isWhole
      ? [[`${key}${sign}${text}`, ""]]
      : [[`${key}${this.#oneOf([sign, sign[0]!])}`, text]]
  }

  #tree(events: ReadonlyArray<Json>, depth: number): Tree {
    const kind = depth === 0 ? 1 : this.#random()
    const parts = () =>
      Array.from({ length: 2 + this.#below(2) }, () => this.#tree(events, depth - 1))
    if (kind < 0.25) return { and: parts() }
    if (kind < 0.5) return { or: parts() }
    if (kind < 0.65) return { not: this.#tree(events, depth - 1) }
    return this.#chance(0.2) ? { search: this.#recased(this.#text()) } : this.#field(events)
  }

  /** A text of `where` that means the tree. */
  #written(tree: Tree): string {
    const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`
    if ("and" in tree) {
      return `(${tree.and.map((one) => this.#written(one)).join(this.#oneOf([" ", " AND "]))})`
    }
    if ("or" in tree) return `(${tree.or.map((one) => this.#written(one)).join(" OR ")})`
    if ("not" in tree) return `${this.#oneOf(["NOT ", "-"])}${this.#written(tree.not)}`
    if ("search" in tree) return quoted(tree.search)
    const { name, sign, values } = tree
    const key = name.startsWith("metadata.")
      ? name.replace(/[\s()",:=!<>*\\]/g, "\\$&")
      : this.#oneOf([name, name, ...(ALIASES[name] ?? [])])
    const isPlain = (text: string) => /^[A-Za-z0-9_.-]+$/.test(text) && this.#chance(0.5)
    const texts = values.map(({ isOpen, text }) => {
      if (isOpen && text === "") return "*"
      return `${isPlain(text) ? text : quoted(text)}${isOpen ? "*" : ""}`
    })
    return `${key}${sign === "=" ? this.#oneOf([":", "="]) : sign}${texts.join(",")}`
  }

  #condition(events: ReadonlyArray<Json>): Expression {
    const sample = this.#oneOf(events)
    const other = this.#chance(0.15)
    switch (this.#below(12)) {
      case 0:
        return [["action", this.#oneOf(["document.*", "doc_1.*", "document.read.*", "user.*"])]]
      case 1:
        return [[this.#oneOf(["from", "to"]), this.#timeText(sample)]]
      case 2:
        return [
          [this.#oneOf(["from_sequence", "to_sequence"]), String(this.#below(events.length + 2))]
        ]
      case 3:
      case 4: {
        const texts = [
          sample["action"],
          sample["actor"].id,
          sample["actor"].email,
          sample["resource"].name,
          ...Object.values(sample["metadata"] ?? {}).filter((value) => typeof value === "string")
        ].filter(Boolean)
        return [["q", this.#recased(other ? this.#text() : this.#slice(this.#oneOf(texts)))]]
      }
      case 5:
      case 6: {
        const tree = this.#tree(events, 3)
        return [["where", this.#written(tree), tree]]
      }
      case 7: {
        // As a client sends it that knows nothing of commas, * and \\.
        const [path, value] = this.#pathInto(sample["metadata"] ?? {})
        const isUsable = path !== "" && path.split(".").length <= 6 && !/[!<>=\\]/.test(path)
        return [
          this.#oneOf([
            ["actor_id", sample["actor"].id] as const,
            ["resource_id", sample["resource"].id] as const,
            [`metadata.${isUsable ? path : "a"}`, value] as const
          ])
        ]
      }
      default:
        return this.#parameters(this.#field(events))
    }
  }

  /** Conditions of which most match something; some hold a name that no filter has. */
  expression(events: ReadonlyArray<Json>): Expression {
    const conditions = Array.from({ length: 1 + this.#below(3) }, () =>
      this.#condition(events)
    ).flat()
    if (this.#chance(0.06)) {
      const name = this.#oneOf([
        "actor",
        "actorId",
        "q!",
        "outcome>",
        "formats",
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
    return conditions
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
