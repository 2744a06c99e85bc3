/**
 * What a break means and what to do about it, in words, and where its two sides differ. Pure; knows
 * the closed list of reasons, not how they are found.
 */
import type { Break } from "../../../client/gen/Api.d.ts"

export type Reason = Break["reason"]

export interface ReasonText {
  /** Follows "#8: ". */
  readonly title: string
  readonly meaning: string
}

export const reasonTexts: Readonly<Record<Reason, ReasonText>> = {
  content_mismatch: {
    title: "the stored content is not what was recorded",
    meaning:
      "The content was recomputed from the stored row, and it does not fit the hash that the chain "
      + "holds for it. The row was changed after it was recorded."
  },
  hash_mismatch: {
    title: "the stored hash is not that of this record",
    meaning:
      "The hash of the record was recomputed from its place, time, content and the hash before it, "
      + "and another one is stored. The row was changed, or does not belong in this place."
  },
  prev_hash_mismatch: {
    title: "the record does not link to the one before it",
    meaning:
      "Each record holds the hash of the one before it. This one holds another hash: it, or the one "
      + "before it, was changed or exchanged."
  },
  sequence_gap: {
    title: "a record is missing",
    meaning:
      "The chain numbers its records without gaps. Here the store has none: the row was removed, or "
      + "given another number."
  },
  duplicate_sequence: {
    title: "a place is taken twice, or does not exist",
    meaning:
      "Each number of the chain has exactly one record. The store has more than one for this number, "
      + "or a record below the first number: a row was added."
  },
  tail_missing: {
    title: "the end of the chain is missing",
    meaning:
      "The log says that the chain goes on to here, and the store ends before it: rows at the end "
      + "were removed, or the log has lost its last records."
  },
  checkpoint_mismatch: {
    title: "the chain does not lead to a signed checkpoint",
    meaning:
      "The root of the Merkle tree was recomputed from the stored records, and it is not the one that "
      + "was signed: the history was written anew up to here, or the checkpoint is none of this chain."
  }
}

/** Two texts with what they share at both ends taken off. */
export interface Difference {
  readonly before: string
  readonly expected: string
  readonly actual: string
  readonly after: string
}

/** Texts that share less than this part of the shorter one are different as a whole. */
const SHARED_MIN = 0.25

const sharedStart = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): number => {
  const length = Math.min(one.length, other.length)
  let at = 0
  while (at < length && one[at] === other[at]) at += 1
  return at
}

/** Words and what is between them: hashes differ as a whole, sentences in a word. */
const piecesOf = (text: string): ReadonlyArray<string> => text.match(/\w+|\W/gu) ?? []

/** Where two texts differ. */
export const differenceOf = (expected: string, actual: string): Difference => {
  const [left, right] = [piecesOf(expected), piecesOf(actual)]
  const start = sharedStart(left, right)
  const end = sharedStart(left.slice(start).toReversed(), right.slice(start).toReversed())
  const shared = [...left.slice(0, start), ...left.slice(left.length - end)].join("").length
  if (shared < SHARED_MIN * Math.min(expected.length, actual.length)) {
    return { before: "", expected, actual, after: "" }
  }
  return {
    before: left.slice(0, start).join(""),
    expected: left.slice(start, left.length - end).join(""),
    actual: right.slice(start, right.length - end).join(""),
    after: left.slice(left.length - end).join("")
  }
}
