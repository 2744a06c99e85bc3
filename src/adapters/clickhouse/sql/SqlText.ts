/**
 * A statement as ClickHouse writes it (`formatQuerySingleLine`): without comments, texts in single
 * quotes with backslashes, odd names in backticks. Which tables it names at its beginning, what in it
 * has no place in the tree, and where the views go.
 */

const TOKEN = /'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|[A-Za-z_][A-Za-z0-9_]*|[()[\],]|[^\s]/gs

const OPEN = new Set(["(", "["])
const CLOSE = new Set([")", "]"])

const WITH = "WITH "

/** `WITH name AS (…), …` before the first SELECT: the names, in their order. */
export const namedTables = (canonical: string): ReadonlyArray<string> => {
  if (!canonical.startsWith(WITH)) return []
  const tokens = canonical.slice(WITH.length).match(TOKEN) ?? []
  const names: Array<string> = []
  let depth = 0
  let first = 0
  for (const [at, token] of tokens.entries()) {
    if (depth === 0 && token === "SELECT") break
    if (OPEN.has(token)) {
      const isDefinition =
        depth === 0
        && at === first + 2
        && tokens[at - 1] === "AS"
        && (tokens[at + 1] === "SELECT" || tokens[at + 1] === "WITH" || tokens[at + 1] === "(")
      if (isDefinition) names.push(nameOf(tokens[first]!))
      depth += 1
    } else if (CLOSE.has(token)) depth -= 1
    else if (depth === 0 && token === ",") first = at + 1
  }
  return names
}

/** Names with escapes are refused before, see `refusalOfNames`. */
const nameOf = (token: string): string => (token.startsWith("`") ? token.slice(1, -1) : token)

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Why names in a statement can't be told from something else: one with a line break would add lines to
 * the tree that it is looked at by, and a table with a dot in its name reads like one of the server.
 */
export const refusalOfNames = (canonical: string): string | undefined => {
  const tokens = canonical.match(TOKEN) ?? []
  if (tokens.some((token) => token.startsWith("`") && token.includes("\\"))) {
    return "a name holds a backslash, a backtick or a control character: choose another"
  }
  const odd = namedTables(canonical).find((name) => !PLAIN_NAME.test(name))
  return odd && `the name ${odd} behind WITH can't be used: letters, digits and _ can`
}

/**
 * What is in the brackets of each `OVER (…)`, those inside of others too: `EXPLAIN AST` shows nothing
 * of it.
 */
export const inlineWindows = (canonical: string): ReadonlyArray<string> => {
  const tokens = [...canonical.matchAll(TOKEN)]
  return tokens.flatMap(([token], at) => {
    const open = tokens[at + 1]
    if (token.toUpperCase() !== "OVER" || open?.[0] !== "(") return []
    let depth = 0
    const close = tokens.slice(at + 1).find(([next]) => {
      depth += next === "(" ? 1 : next === ")" ? -1 : 0
      return depth === 0
    })
    return close === undefined ? [] : [canonical.slice(open.index + 1, close.index)]
  })
}

/** Names of what is called in a statement: between a function and its bracket is no space. */
export const calledNames = (canonical: string): ReadonlyArray<string> => {
  const tokens = [...canonical.matchAll(TOKEN)]
  return tokens.flatMap(({ 0: token, index }, at) => {
    const next = tokens[at + 1]
    const isCall = next?.[0] === "(" && next.index === index + token.length
    return isCall && /^[A-Za-z_`]/.test(token) ? [nameOf(token)] : []
  })
}

/** How often a statement has the word SELECT, outside of texts and names. */
export const selectsIn = (canonical: string): number =>
  (canonical.match(TOKEN) ?? []).filter((token) => token === "SELECT").length

/** True for a statement that views can stand before. */
export const takesViews = (canonical: string): boolean =>
  canonical.startsWith("SELECT ")
  || (canonical.startsWith(WITH) && !canonical.startsWith("WITH RECURSIVE "))

/** The statement with the views before what it names itself. */
export const withViews = (canonical: string, views: string): string =>
  canonical.startsWith(WITH)
    ? `WITH ${views}, ${canonical.slice(WITH.length)}`
    : `WITH ${views} ${canonical}`
