/** The bytes of what JSON.stringify makes of an object, in steps: an answer may have 100 MB. */
import type { Sliced } from "../Slices.ts"

/** Characters that are written in one step. */
const STEP_LENGTH = 262_144

/** Gathers text, and encodes it when there is enough of it. */
class TextBytes {
  readonly #parts: Array<Buffer> = []
  #text = ""

  /** True where that was a step. */
  write(text: string): boolean {
    this.#text += text
    if (this.#text.length < STEP_LENGTH) return false
    this.#encode()
    return true
  }

  all(): Buffer {
    this.#encode()
    return Buffer.concat(this.#parts)
  }

  #encode(): void {
    this.#parts.push(Buffer.from(this.#text))
    this.#text = ""
  }
}

/** Of its members that are arrays, element by element; the others, and each element, at once. */
export function* jsonInSteps(object: object): Sliced<Buffer> {
  const bytes = new TextBytes()
  let before = "{"
  for (const [name, value] of Object.entries(object)) {
    const text = Array.isArray(value) ? "[" : JSON.stringify(value)
    if (text === undefined) continue
    if (bytes.write(`${before}${JSON.stringify(name)}:${text}`)) yield
    before = ","
    if (!Array.isArray(value)) continue
    for (const [index, element] of value.entries()) {
      if (bytes.write((index === 0 ? "" : ",") + (JSON.stringify(element) ?? "null"))) yield
    }
    bytes.write("]")
  }
  bytes.write(before === "{" ? "{}" : "}")
  yield
  return bytes.all()
}
