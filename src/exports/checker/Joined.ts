/** The records of a chain, events or facts, side by side with its links: both ascending. */
import { type Fault, type Findings, range } from "./Findings.ts"
import type { Link, PackChain } from "./PackChain.ts"

/** The records of one file, and how they are held against their links. */
export interface Records<Item> {
  readonly found: Findings
  readonly file: string
  readonly lines: AsyncIterable<string | undefined>
  readonly chain: PackChain
  /** True if there has to be one for each link. */
  readonly isComplete: boolean
  /** The record of a line; undefined if it is not one. */
  read(line: string): Item | undefined
  sequenceOf(item: Item): number
  /** The sequence in a line that is not a record, or 0. */
  saidIn(line: string): number
  /** What is wrong with the number of a record that is in the place of another one. */
  renumbered(item: Item, link: Link): Fault | undefined
  /** A record in its place; `link` is undefined for a sequence without one. */
  take(line: string, item: Item, link: Link | undefined): void
}

/** How many lines there were. */
export const joinRecords = async <Item>(records: Records<Item>): Promise<number> => {
  const { chain, file, found, isComplete, lines } = records
  const links = chain.checkedLinks()
  let link: Link | undefined
  const next = async (): Promise<void> => {
    link = (await links.next()).value
  }
  const skipTo = async (sequence: number): Promise<void> => {
    while (link !== undefined && link.sequence_number < sequence) await next()
  }
  await next()
  let previous = 0
  let count = 0
  for await (const line of lines) {
    count += 1
    const item = line === undefined ? undefined : records.read(line)
    if (line === undefined || item === undefined) {
      const said = records.saidIn(line ?? "")
      const own = said > previous ? said : previous + 1
      previous = isComplete && link !== undefined ? link.sequence_number : own
      const expected = `the JSON of ${chain.files.noun === "event" ? "an event" : "a fact"}`
      found.mismatch(file, previous, expected, "bytes that are none")
      await skipTo(previous + 1)
      continue
    }
    const sequence = records.sequenceOf(item)
    const isOther = isComplete && link !== undefined && sequence !== link.sequence_number
    const wrongness = isOther ? records.renumbered(item, link!) : undefined
    if (wrongness !== undefined) {
      previous = link!.sequence_number
      found.fault(file, previous, wrongness)
      await next()
      continue
    }
    if (sequence <= previous) {
      const reason = sequence === previous ? "duplicate_sequence" : "out_of_order"
      const expected = `a sequence above ${previous}`
      found.problem(file, sequence, reason, expected, `sequence ${sequence}`)
      continue
    }
    if (isOther && sequence > link!.sequence_number) {
      const missing = range(link!.sequence_number, sequence - 1)
      found.problem(file, link!.sequence_number, "sequence_gap", missing, "none")
    }
    await skipTo(sequence)
    previous = sequence
    const own: Link | undefined = link
    const isLinked = own?.sequence_number === sequence
    records.take(line, item, isLinked ? own : undefined)
    if (isLinked) await next()
  }
  const tail: Link | undefined = isComplete ? link : undefined
  while (link !== undefined) await next()
  if (tail !== undefined) {
    const missing = range(tail.sequence_number, chain.end)
    found.problem(file, tail.sequence_number, "tail_missing", missing, "none")
  }
  return count
}
