/**
 * Reads the items of a request one by one: `{"events": [...]}`, the array alone, or one a line.
 * StrictJson reads what an item holds; here is where it begins and ends, and how many there may be.
 * No more than one item is read in one step.
 */
import { isUtf8 } from "node:buffer"
import type { Sliced } from "../Slices.ts"
import { afterSpace, JsonCursor, NotJson, type ValueWalk } from "./JsonBytes.ts"
import {
  ITEM_VALUES_MAX,
  itemTooLarge,
  type JsonProblem,
  KEY_TWICE,
  notJson,
  notUtf8,
  parseCounted,
  parseWalked,
  refuse,
  type StrictOptions,
  type StrictResult
} from "./StrictJson.ts"

export type StrictBatch =
  | {
      readonly items: ReadonlyArray<StrictResult>
      /** Names of the other members of the wrapper, whatever they hold. */
      readonly beside: ReadonlyArray<string>
    }
  | { readonly problem: JsonProblem }

/** Values of all items together: what is made of them is in memory at once. */
export const REQUEST_VALUES_MAX = 1_000_000
/** Members that may stand beside the items. */
const BESIDE_MAX = 1_000
const LINE_FEED = 0x0a

const checkCount = (count: number, what: string, itemsMax: number) =>
  count > 0 && count <= itemsMax
    ? undefined
    : refuse(
        "invalid_request",
        `${what}: ${count === 0 ? "no" : `more than ${itemsMax}`} items; send 1 to ${itemsMax}`
      )

const noArray = (member: string) =>
  refuse("invalid_request", `${member}: missing or no array; send {"${member}": [...]} or [...]`)

const memberTwice = (member: string): { readonly problem: JsonProblem } => ({
  problem: { code: "invalid_request", path: member, message: `${member}: ${KEY_TWICE}` }
})

const tooManyValues = (what: string) =>
  refuse(
    "too_large",
    `${what}: over ${REQUEST_VALUES_MAX} values in all items; send fewer items at once`
  )

const tooManyBeside = (member: string) =>
  refuse("invalid_request", `${member}: over ${BESIDE_MAX} members beside it; send it alone`)

/** Counts the values of a request. */
interface Count {
  values: number
}

/** What items may be, and how many values they have. */
interface ItemsRead {
  readonly count: Count
  readonly itemsMax: number
  readonly member: string
  readonly options: StrictOptions
}

/** The value that is next. @throws NotJson */
function* valueAt(
  cursor: JsonCursor,
  count: Count,
  options: StrictOptions = {}
): Sliced<StrictResult | ValueWalk> {
  const walk = cursor.value(ITEM_VALUES_MAX)
  count.values += walk.values
  if (walk.isTooMuch) return walk
  const text = cursor.textOf(walk)
  const read = yield* parseWalked(text, walk, options, ({ at, what }) =>
    cursor.expected(what, walk.start + Buffer.byteLength(text.slice(0, at)))
  )
  // That a text is too long does not say yet that it never ends.
  return walk.isWhole ? read : cursor.expected("a closing quote")
}

/** The same, and behind a value that holds too much. @throws NotJson */
function* valueBehind(cursor: JsonCursor, count: Count): Sliced<StrictResult> {
  yield
  const read = yield* valueAt(cursor, count)
  if (!("isTooMuch" in read)) return read
  yield* cursor.skip(read)
  return itemTooLarge
}

/** One more than may be sent at most, and as many as have no more values. @throws NotJson */
function* itemsAt(
  cursor: JsonCursor,
  { count, itemsMax, options }: ItemsRead
): Sliced<ReadonlyArray<StrictResult>> {
  const items: Array<StrictResult> = []
  for (const _ of cursor.elements()) {
    yield
    const read = yield* valueAt(cursor, count, options)
    const isTooMuch = "isTooMuch" in read
    if (isTooMuch) yield* cursor.skip(read)
    const many = items.push(isTooMuch ? itemTooLarge : read)
    if (many > itemsMax || count.values > REQUEST_VALUES_MAX) break
  }
  return items
}

/** The batch of the items that were read, at the end of the text. @throws NotJson */
const ended = (
  cursor: JsonCursor,
  items: ReadonlyArray<StrictResult>,
  beside: ReadonlyArray<string>,
  { count, itemsMax, member }: ItemsRead
): StrictBatch => {
  const miscounted = checkCount(items.length, member, itemsMax)
  if (miscounted !== undefined) return miscounted
  if (count.values > REQUEST_VALUES_MAX) return tooManyValues(member)
  cursor.end()
  return { items, beside }
}

/** @throws NotJson */
function* readWrapper(cursor: JsonCursor, reading: ItemsRead): Sliced<StrictBatch> {
  const { count, itemsMax, member } = reading
  if (cursor.isAtArray) return ended(cursor, yield* itemsAt(cursor, reading), [], reading)
  if (!cursor.isAtObject) {
    yield* valueBehind(cursor, count)
    cursor.end()
    return noArray(member)
  }
  const beside = new Set<string>()
  let members = 0
  let isThere = false
  let items: ReadonlyArray<StrictResult> | undefined
  for (const key of cursor.members()) {
    if (key !== member) {
      if (++members > BESIDE_MAX) return tooManyBeside(member)
      beside.add(key)
      yield* valueBehind(cursor, count)
      continue
    }
    if (isThere) return memberTwice(member)
    isThere = true
    if (cursor.isAtArray) items = yield* itemsAt(cursor, reading)
    else yield* valueBehind(cursor, count)
    if (items !== undefined && items.length > itemsMax) break
    if (count.values > REQUEST_VALUES_MAX) return tooManyValues(member)
  }
  if (items === undefined) {
    cursor.end()
    return noArray(member)
  }
  return ended(cursor, items, [...beside], reading)
}

/**
 * Read a batch, `{"<member>": [...]}` or the array alone, with 1 to `itemsMax` items. What is wrong
 * inside an item is that item's problem, with the path inside it, and the other items are read.
 * What is beside the array is not stored, so it may be unstorable; the whole text is refused if it
 * is no JSON (`invalid_json`) or has no such array or two of them (`invalid_request`).
 */
export function* parseStrictBatch(
  body: Buffer,
  member: string,
  itemsMax: number,
  options: StrictOptions = {}
): Sliced<StrictBatch> {
  if (!isUtf8(body)) return notUtf8
  const count = { values: 0 }
  try {
    return yield* readWrapper(new JsonCursor(body), { count, itemsMax, member, options })
  } catch (error) {
    if (error instanceof NotJson) return notJson(error.message)
    throw error
  }
}

/**
 * True if a text is an array or an object with this member, as batches are; of what is no JSON it may
 * say either.
 */
export function* isBatch(body: Buffer, member: string): Sliced<boolean> {
  const cursor = new JsonCursor(body)
  if (!cursor.isAtObject) return cursor.isAtArray
  let members = 0
  try {
    for (const key of cursor.members()) {
      if (key === member) return true
      // The reader of the body says that this is too many.
      if (++members > BESIDE_MAX) return false
      yield
      yield* cursor.skip(cursor.value(ITEM_VALUES_MAX))
    }
  } catch (error) {
    if (!(error instanceof NotJson)) throw error
  }
  return false
}

/**
 * Read NDJSON: one text per line, blank lines don't count. A line that can't be read is the problem
 * of that item alone; only a body without lines or with more than `itemsMax` is refused as a whole.
 */
export function* parseStrictLines(
  body: Buffer,
  itemsMax: number,
  options: StrictOptions = {}
): Sliced<StrictBatch> {
  const items: Array<StrictResult> = []
  let count = 0
  for (let line = nextLine(body, 0); line !== undefined; line = nextLine(body, line.end)) {
    if (items.length === itemsMax) return checkCount(itemsMax + 1, "lines", itemsMax)!
    yield
    const { read, values } = yield* parseCounted(body.subarray(line.start, line.end), options)
    items.push(read)
    count += values
    if (count > REQUEST_VALUES_MAX) return tooManyValues("lines")
  }
  return checkCount(items.length, "lines", itemsMax) ?? { items, beside: [] }
}

/** True if an object follows the first value of a text: lines of JSON, which are no text of it. */
export const areLines = (body: Buffer): boolean => {
  const cursor = new JsonCursor(body)
  return cursor.isAtObject && cursor.value(ITEM_VALUES_MAX).isWhole && cursor.isAtObject
}

/** The next line that is not blank, from its beginning. */
const nextLine = (
  body: Buffer,
  from: number
): { readonly start: number; readonly end: number } | undefined => {
  const at = afterSpace(body, from)
  if (at === body.length) return undefined
  const start = Math.max(from, body.lastIndexOf(LINE_FEED, at) + 1)
  const feed = body.indexOf(LINE_FEED, at)
  return { start, end: feed === -1 ? body.length : feed }
}
