/**
 * Lists and objects that the attributes of a span have as JSON texts: what models were told, and
 * counts of tokens. Each is read once, and only as long as there is room: a text can be most of a
 * request.
 */
import { parseJson } from "../json/Json.ts"

/** Characters of one text that is read at most. */
export const JSON_TEXT_MAX = 1_048_576

const holdsMany = /^[ \t\n\r]*[[{]/

export class JsonTexts {
  readonly #read = new Map<string, unknown>()
  #left: number

  /** `charactersMax` of all texts that are read. */
  constructor(charactersMax: number) {
    this.#left = charactersMax
  }

  /** The list or object that a text is; undefined for any other, and where there is no room. */
  structureOf(text: string): unknown {
    if (this.#read.has(text)) return this.#read.get(text)
    if (text.length > Math.min(JSON_TEXT_MAX, this.#left) || !holdsMany.test(text)) return undefined
    this.#left -= text.length
    let found: unknown
    try {
      found = parseJson(text)
    } catch {
      // No JSON, so nothing is said in it.
    }
    this.#read.set(text, found)
    return found
  }
}
