/** Which known name a mistyped one was meant to be: what an error message proposes. */

/** Edits of a name of this length that may be mistakes: of three characters one is enough. */
const mistakesMax = (length: number): number => (length > 3 ? 2 : 1)

/** Characters of an unknown name that are compared at most: no known name comes near it. */
const COMPARED_LENGTH_MAX = 128

/** The name as it is compared: `actorId`, `actor-id` and `ACTOR_ID` are `actor_id`. */
const plain = (name: string): string =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}.]+/gu, "_")
    .replaceAll(/^_+|_+$/g, "")

/**
 * How many characters have to be inserted, removed, replaced or swapped with their neighbour to
 * make one name of the other (optimal string alignment).
 */
export const editDistance = (left: string, right: string): number => {
  let before: ReadonlyArray<number> = []
  let row: ReadonlyArray<number> = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let line = 1; line <= left.length; line++) {
    const next = [line]
    for (let column = 1; column <= right.length; column++) {
      const isSame = left[line - 1] === right[column - 1]
      const isSwapped =
        line > 1
        && column > 1
        && left[line - 1] === right[column - 2]
        && left[line - 2] === right[column - 1]
      next.push(
        Math.min(
          row[column - 1]! + (isSame ? 0 : 1),
          row[column]! + 1,
          next[column - 1]! + 1,
          isSwapped ? before[column - 2]! + 1 : Infinity
        )
      )
    }
    before = row
    row = next
  }
  return row[right.length]!
}

/** The known name that needs the fewest edits, the first of several; undefined if none is near. */
export const nearestName = (
  name: string,
  known: Iterable<string>,
  mistakes: (length: number) => number = mistakesMax
): string | undefined => {
  if (name.length > COMPARED_LENGTH_MAX) return undefined
  const given = plain(name)
  let nearest: string | undefined
  let fewest = mistakes(given.length) + 1
  for (const candidate of known) {
    const target = plain(candidate)
    if (Math.abs(target.length - given.length) >= fewest) continue
    const edits = editDistance(given, target)
    if (edits < fewest) {
      nearest = candidate
      fewest = edits
    }
  }
  return nearest
}

/** Why a field is refused that something doesn't have. */
export const unknownField = (name: string, known: ReadonlyArray<string>, what: string): string => {
  const meant = nearestName(name, known)
  const proposal = meant === undefined ? `it has ${known.join(", ")}` : `did you mean ${meant}?`
  return `is not a field of ${what}; ${proposal}`
}
