/** Which regular expressions take time that grows no faster than the text. */

/** Characters of a pattern. */
const LENGTH_MAX = 500
/** Parts of a pattern, each as often as it is repeated: the time for a character of the text. */
const PARTS_MAX = 1_000
/** Parts of a class of Unicode. */
const UNICODE_CLASS = 100

/** What ClickHouse reads in a literal as one character. */
const ESCAPES = /\\x([\da-fA-F]{2})|\\([\\'"`/=])|\\([abefnrtv0])/g

const contentOf = (text: string): string =>
  text.replaceAll(ESCAPES, (_, code?: string, sign?: string) =>
    code === undefined ? (sign ?? " ") : String.fromCharCode(Number.parseInt(code, 16))
  )

const TOKEN =
  /\\Q[^]*?(?:\\E|$)|\\[pP](?:\{[^}]*\}|[^])|\\[^]|\[\^?\]?(?:\\[^]|\[:\^?\w+:\]|[^\]\\])*\]|[*+?][?+]?|\{\d*,?\d*\}\??|[^]/g
const REPEATED = /^[*+?{][^]*/
const COUNTS = /^\{(\d*)(,?)(\d*)\}/

/** What is between two brackets, or the whole. */
interface Group {
  parts: number
  /** What the last thing in it counts. */
  last: number
  isLastUnbounded: boolean
  hasAlternatives: boolean
  isUnbounded: boolean
}

const newGroup = (): Group => ({
  parts: 0,
  last: 0,
  isLastUnbounded: false,
  hasAlternatives: false,
  isUnbounded: false
})

/** How often what is before a repetition is taken at most; undefined without an end. */
const mostOf = (repetition: string): number | undefined => {
  if (repetition.startsWith("?")) return 1
  const [, from = "", comma, to = ""] = COUNTS.exec(repetition) ?? []
  if (comma === undefined || (comma !== "" && to === "")) return undefined
  return Math.max(Number(from), Number(to))
}

/**
 * The parts of a pattern, and whether looking for all its matches may take time by the square of the
 * text: where one way to match reads on without an end, and another one that is shorter is taken.
 */
const read = (pattern: string): { readonly parts: number; readonly isSquare: boolean } => {
  const groups = [newGroup()]
  let isSquare = false
  const end = (group: Group) => {
    isSquare ||= group.hasAlternatives && group.isUnbounded
  }
  for (const [token] of pattern.matchAll(TOKEN)) {
    const group = groups.at(-1)!
    if (token === "(") groups.push(newGroup())
    else if (token === ")" && groups.length > 1) {
      end(group)
      groups.pop()
      const around = groups.at(-1)!
      around.parts += group.parts + 1
      around.last = group.parts + 1
      around.isLastUnbounded = group.isUnbounded
      around.isUnbounded ||= group.isUnbounded
    } else if (token === "|") group.hasAlternatives = true
    else if (REPEATED.test(token) && token !== "{") {
      const most = mostOf(token)
      isSquare ||= group.isLastUnbounded
      group.isUnbounded ||= most === undefined
      const times = Math.max(1, most ?? Number(COUNTS.exec(token)?.[1] ?? 1))
      group.parts += group.last * (times - 1)
      group.last *= times
    } else {
      const size = token.startsWith("\\Q")
        ? token.length
        : /^\\[pP]/.test(token)
          ? UNICODE_CLASS
          : 1
      group.parts += size
      group.last = size
      group.isLastUnbounded = false
    }
  }
  for (const group of groups) end(group)
  return { parts: groups.reduce((sum, { parts }) => sum + parts, 0), isSquare }
}

/** Why a pattern isn't used, as the end of a sentence; of one that is not a literal, too. */
export const patternProblem = (text: string | undefined, ofAll: boolean): string | undefined => {
  if (text === undefined) return "has to be a text"
  const pattern = contentOf(text)
  if (pattern.length > LENGTH_MAX) return `has more than ${LENGTH_MAX} characters`
  const { isSquare, parts } = read(pattern)
  if (parts > PARTS_MAX)
    return `repeats too much: more than ${PARTS_MAX} parts, repeated ones counted`
  return isSquare && ofAll
    ? "has *, + or {1,} in alternatives, or in a group that is repeated: write {1,99}"
    : undefined
}
