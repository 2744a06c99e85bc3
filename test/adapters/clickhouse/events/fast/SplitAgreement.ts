/** Blocks that are cut by the module, held against those that TypeScript alone cuts. */
import { assert } from "vitest"
import { cutRows } from "../../../../../src/adapters/clickhouse/events/EventInsert.ts"
import { FastSplit } from "../../../../../src/adapters/clickhouse/events/fast/FastSplit.ts"
import type { EventRow } from "../../../../../src/ports/EventStore.ts"
import { HostileEvents } from "../../../../services/ingest/fast/HostileEvents.ts"
import { Chain, erasedForm, type Fields } from "../../../../verify/support/Chains.ts"

/** Counts the rows that the module does. */
class CountedSplit extends FastSplit {
  done = 0

  override split(at: number): number {
    const rows = super.split(at)
    this.done += rows
    return rows
  }
}

const fast = new CountedSplit()

export const rowsOf = (bodies: ReadonlyArray<string | Buffer>): ReadonlyArray<EventRow> =>
  bodies.map((body, index) => ({
    partition: index % 3,
    offset: 2 ** 40 + index,
    body: Buffer.from(body)
  }))

/** Fails unless both ways give the same block and leave the same rows; the rows that the module did. */
export const compare = (bodies: ReadonlyArray<string | Buffer>): number => {
  const rows = rowsOf(bodies)
  const expected = cutRows(rows, undefined)
  fast.done = 0
  const { bytes, count, others } = cutRows(rows, fast)
  assert.strictEqual(count, expected.count)
  assert.deepStrictEqual(
    others.map(({ offset }) => offset),
    expected.others.map(({ offset }) => offset)
  )
  assert.isTrue(bytes.equals(expected.bytes), "other bytes")
  return fast.done
}

const PARTS = [
  "a",
  "Z",
  " ",
  "é",
  "日",
  "😀",
  "\\",
  '"',
  "/",
  "\n",
  "\u0000",
  "\u001f",
  "\u007f",
  ":"
]
/** Pieces of JSON, and bytes that are no UTF-8. */
const DAMAGE = ["", '"', "\\", "{", "}", "[", "]", ",", ":", "0", "f", "\n", "\\u0041", "\\u00e9"]
const BYTES = [0x80, 0xc3, 0xff, 0x00, 0x1f, 0x22, 0x5c]

/** Stored events that are hard to cut: all of it follows from the seed. */
class HostileRows {
  readonly #events: HostileEvents
  readonly #chain = new Chain('te"n\\ant')

  constructor(seed: number) {
    this.#events = new HostileEvents(seed)
  }

  below(below: number): number {
    return this.#events.below(below)
  }

  #text(isPlain = false): string {
    const length = this.below(12) === 0 ? this.below(300) : this.below(24)
    let text = ""
    for (let left = length; left > 0; left--) {
      text += this.below(3) === 0 ? this.#events.pick(PARTS) : "x"
    }
    return isPlain ? text.replaceAll(/[\u0000-\u001f]/g, "~") : text
  }

  #value(depth: number): unknown {
    const kind = this.below(depth > 3 ? 3 : 6)
    if (kind < 2) return this.#text()
    if (kind === 2) return this.#events.pick([0, -1.5, 1e21, true, null, {}, []])
    const values = Array.from({ length: this.below(4) }, () => this.#value(depth + 1))
    return kind === 3
      ? values
      : Object.fromEntries(values.map((value) => [this.#text() || "k", value]))
  }

  #fields(): Fields {
    const optional = <A>(value: A): A | undefined => (this.below(2) === 0 ? value : undefined)
    const email = optional(this.#text())
    const name = optional(this.#text())
    return {
      id: this.#text(true),
      timestamp: this.#events.pick([
        "1900-01-01T00:00:00.000000Z",
        "1969-12-31T23:59:59.999999Z",
        "2000-02-29T12:30:59.123456Z",
        "2026-11-21T10:00:00.000001Z",
        "2254-12-31T23:59:59.999999Z",
        "2255-01-01T00:00:00.000000Z"
      ]),
      actor: { id: this.#text(true), type: "human", ...(email === undefined ? {} : { email }) },
      action: this.#events.pick(["a.b", "document.read", 'a"\\']),
      resource: {
        id: this.#text(true),
        type: this.#text(true),
        ...(name === undefined ? {} : { name })
      },
      ...(this.below(3) === 0 ? {} : { metadata: { a: this.#value(0), "b:": this.#value(0) } })
    }
  }

  #damaged(body: Buffer): Buffer {
    const at = this.below(body.length)
    if (this.below(3) > 0) {
      const piece = Buffer.from(this.#events.pick(DAMAGE))
      return Buffer.concat([body.subarray(0, at), piece, body.subarray(at + this.below(3))])
    }
    const changed = Buffer.from(body)
    changed[at] = this.#events.pick(BYTES)
    return this.below(2) === 0 ? changed : changed.subarray(0, at)
  }

  row(): Buffer {
    const body = this.#chain.append(this.#fields())
    const kind = this.below(60)
    if (kind === 0) return Buffer.from(erasedForm(body, "2026-11-22T08:00:00.000000Z"))
    return kind < 6 ? this.#damaged(Buffer.from(body)) : Buffer.from(body)
  }
}

/** Compares inserts with so many hostile rows; an error names the seed and the insert. */
export const fuzz = (seed: number, count: number): number => {
  const rows = new HostileRows(seed)
  let done = 0
  for (let left = count, insert = 0; left > 0; insert++) {
    const bodies = Array.from({ length: 1 + rows.below(40) }, () => rows.row())
    left -= bodies.length
    try {
      done += compare(bodies)
    } catch (error) {
      const shown = JSON.stringify(bodies.map((body) => body.toString("latin1")))
      throw new Error(`seed ${seed}, insert ${insert}: ${shown}`, { cause: error })
    }
  }
  return done
}
