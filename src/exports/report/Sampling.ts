/**
 * Draws a random sample that a reader can draw again with a SHA-256 tool: positions in the
 * population follow from a seed, the seed from the head of the chain. Reads no events.
 */
import { hash } from "node:crypto"

/** Events of a sample. */
export const SAMPLE_SIZE = 25
/** Draws before giving up on finding positions that were not drawn yet. */
const DRAWS_MAX = 10_000
/** Hexadecimal digits of a draw: 52 bits, which a double and any calculator hold. */
const DRAW_DIGITS = 13

const sha256 = (text: string): string => hash("sha256", text, "hex")

/** SHA-256 of `alk-sample-v1`, tenant and head hash, each on a line of its own. */
export const seedOf = (tenantId: string, headHash: string): string =>
  sha256(`alk-sample-v1\n${tenantId}\n${headHash}`)

/** One drawn place. */
export interface Draw {
  /** From 1: which draw it was. Draws that hit a position again are skipped. */
  readonly draw: number
  /** From 1: place in the population by ascending sequence number. */
  readonly position: number
}

/** The position, from 1 to `population`, that the n-th draw of a seed hits. */
export const positionOf = (seed: string, draw: number, population: number): number =>
  (Number.parseInt(sha256(`${seed}\n${draw}`).slice(0, DRAW_DIGITS), 16) % population) + 1

/** Every position of a small population, else `size` different ones by ascending position. */
export const drawSample = (
  seed: string,
  population: number,
  size = SAMPLE_SIZE
): ReadonlyArray<Draw> => {
  if (population <= size) {
    return Array.from({ length: population }, (_, index) => ({ draw: 0, position: index + 1 }))
  }
  const drawn = new Map<number, number>()
  for (let draw = 1; drawn.size < size && draw <= DRAWS_MAX; draw++) {
    const position = positionOf(seed, draw, population)
    if (!drawn.has(position)) drawn.set(position, draw)
  }
  return [...drawn]
    .map(([position, draw]) => ({ draw, position }))
    .sort((left, right) => left.position - right.position)
}
