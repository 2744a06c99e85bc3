/** Reads the text of Server-Sent Events as it comes (WHATWG HTML, 9.2.6). */

export interface Message {
  /** `message` unless the stream names another. */
  readonly type: string
  /** Empty where a block has none: an `id:` alone moves the place to resume from. */
  readonly data: string
  /** The last id that the stream gave; empty before the first. */
  readonly id: string
}

/** Characters of one line at most: an event has 64 KiB, and what never ends has no memory here. */
const LINE_LENGTH_MAX = 16 * 1024 * 1024

const LINE_END = /\r\n|\n|\r/

/** The reader of one connection. */
export class MessageReader {
  #rest = ""
  #type = ""
  #data: Array<string> = []
  #id: string
  #isMoved = false
  /** Milliseconds that the stream asks to wait before the next connection. */
  retryMs: number | undefined

  /** `id` is where the stream begins. */
  constructor(id = "") {
    this.#id = id
  }

  /** The messages that end in this piece of the text. */
  *read(piece: string): Generator<Message, void> {
    let text = this.#rest + piece
    // A line feed may follow in the next piece, and belongs to the carriage return.
    const held = text.endsWith("\r") ? "\r" : ""
    if (held !== "") text = text.slice(0, -1)
    const lines = text.split(LINE_END)
    this.#rest = (lines.pop() ?? "") + held
    if (this.#rest.length > LINE_LENGTH_MAX) throw new Error("a line of the stream never ends")
    for (const line of lines) {
      if (line !== "") this.#take(line)
      else if (this.#data.length > 0 || this.#isMoved) yield this.#message()
    }
  }

  #take(line: string): void {
    const colon = line.indexOf(":")
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "")
    if (name === "data") this.#data.push(value)
    else if (name === "event") this.#type = value
    else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value)
    else if (name === "id" && !value.includes("\0")) {
      this.#id = value
      this.#isMoved = true
    }
  }

  #message(): Message {
    const message = {
      type: this.#type === "" ? "message" : this.#type,
      data: this.#data.join("\n"),
      id: this.#id
    }
    this.#type = ""
    this.#data = []
    this.#isMoved = false
    return message
  }
}
