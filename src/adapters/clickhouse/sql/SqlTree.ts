/**
 * What a statement of a client may be made of, by the tree into which ClickHouse itself reads it: one
 * SELECT over the views, with functions of a list, and nothing that this file doesn't know.
 */
import { isAllowedFunction } from "../../../domain/sql/SqlFunctions.ts"
import { calledNames, selectsIn } from "./SqlText.ts"

/** One node, as a line of `EXPLAIN AST` says it. */
interface Node {
  readonly depth: number
  readonly kind: string
  readonly text: string
}

/** Nodes that say nothing but how a SELECT is put together. */
const PLAIN = new Set([
  "SelectWithUnionQuery",
  "SelectIntersectExceptQuery",
  "SelectQuery",
  "ExpressionList",
  "TablesInSelectQuery",
  "TablesInSelectQueryElement",
  "TableExpression",
  "TableJoin",
  "ArrayJoin",
  "Subquery",
  "WithElement",
  "Literal",
  "Identifier",
  "OrderByElement",
  "InterpolateElement",
  "Asterisk",
  "ColumnsTransformerList",
  "ColumnsExceptTransformer",
  "QualifiedAsterisk",
  "WindowListElement",
  "WindowDefinition"
])

/** What other nodes are, in words. */
const REFUSED: Readonly<Record<string, string>> = {
  Set: "settings can't be given",
  QueryParameter: "query parameters can't be given: write the value",
  ColumnsRegexpMatcher: "COLUMNS(…) can't be used: name the columns",
  ColumnsListMatcher: "COLUMNS(…) can't be used: name the columns",
  QualifiedColumnsRegexpMatcher: "COLUMNS(…) can't be used: name the columns",
  QualifiedColumnsListMatcher: "COLUMNS(…) can't be used: name the columns",
  ColumnsApplyTransformer: "APPLY can't be used: name the columns",
  ColumnsReplaceTransformer: "REPLACE behind * can't be used: name the columns",
  SampleRatio: "SAMPLE can't be used"
}

/** What ClickHouse puts where a SELECT has no FROM: one row, with nothing in it. */
const NO_TABLE = "system.one"

/** What ClickHouse puts around a list or tuple of constants, and around NULL. */
const CONSTANT = "_CAST"

/** Functions whose second argument may be the name of a table. */
const MEMBERSHIP = /^(global)?(not)?(null)?in(ignoreset)?$/i

const unknownFunction = (name: string): string => `the function ${name} can't be used`

const LINE = /^( *)(\S+)(?: (.*))?$/
const CHILDREN = / ?\(children \d+\)$/
const ALIAS = / ?\(alias .*\)$/

const nodeOf = (line: string): Node | undefined => {
  const [, indent = "", kind, rest = ""] = LINE.exec(line) ?? []
  if (kind === undefined) return undefined
  return { depth: indent.length, kind, text: rest.replace(CHILDREN, "").replace(ALIAS, "") }
}

/** The tables that a statement may name. */
export interface Tables {
  readonly views: ReadonlyArray<string>
  /** What it names itself, `WITH name AS (SELECT …)` at its beginning, in this order. */
  readonly named: ReadonlyArray<string>
}

/** A walk over the lines of one tree. */
class Walk {
  readonly #nodes: ReadonlyArray<Node>
  readonly #tables: Tables
  /** Of the tables that the statement names itself, those whose definition has begun. */
  #begun = 0
  /** Depth of the definition that the walk is in. */
  #within: number | undefined

  constructor(nodes: ReadonlyArray<Node>, tables: Tables) {
    this.#nodes = nodes
    this.#tables = tables
  }

  refusal(): string | undefined {
    if (this.#nodes[0]?.kind !== "SelectWithUnionQuery") return "only SELECT can be asked"
    for (const at of this.#nodes.keys()) {
      const refusal = this.#refusalAt(at)
      if (refusal !== undefined) return refusal
    }
    return this.#begun === this.#tables.named.length
      ? undefined
      : "WITH can't be used in a subquery: name it at the beginning"
  }

  #refusalAt(at: number): string | undefined {
    const { depth, kind, text } = this.#nodes[at]!
    if (this.#within !== undefined && depth <= this.#within) this.#within = undefined
    // Beside the SELECT itself stand FORMAT, INTO OUTFILE and SETTINGS.
    if (depth === 1 && kind !== "ExpressionList") return this.#besideSelect(kind)
    switch (kind) {
      case "WithElement":
        if (this.#within !== undefined)
          return "WITH can't be used in a subquery: name it at the beginning"
        this.#within = depth
        this.#begun += 1
        return undefined
      case "TableIdentifier":
        return this.#refusalOfTable(text)
      case "Function":
        return this.#refusalOfFunction(at)
      default:
        return PLAIN.has(kind) ? undefined : (REFUSED[kind] ?? `${kind} can't be used`)
    }
  }

  #besideSelect(kind: string): string {
    if (kind === "Identifier") return "FORMAT can't be written in the statement: use `format`"
    return REFUSED[kind] ?? "INTO OUTFILE can't be used"
  }

  /** A name is known from the end of its definition on; before, it would be a table of the server. */
  #refusalOfTable(name: string): string | undefined {
    const { named, views } = this.#tables
    const known = named.slice(0, this.#within === undefined ? this.#begun : this.#begun - 1)
    if (name === NO_TABLE || views.includes(name) || known.includes(name)) return undefined
    return `there is no table ${name}: there are ${[...views, ...known].join(", ")}`
  }

  #refusalOfFunction(at: number): string | undefined {
    const { depth, text } = this.#nodes[at]!
    const parent = this.#nodes.slice(0, at).findLast((node) => node.depth < depth)
    if (parent?.kind === "TableExpression") return `the table function ${text} can't be used`
    if (text !== CONSTANT && !isAllowedFunction(text)) return unknownFunction(text)
    if (!MEMBERSHIP.test(text)) return undefined
    const [list] = this.#childrenOf(at)
    const second = list === undefined ? undefined : this.#childrenOf(list)[1]
    // `x IN name` reads a table that no TableIdentifier names.
    return second === undefined || this.#nodes[second]!.kind === "Identifier"
      ? "IN needs values or a subquery on its right: write IN (SELECT …)"
      : undefined
  }

  #childrenOf(at: number): ReadonlyArray<number> {
    const { depth } = this.#nodes[at]!
    const children: Array<number> = []
    for (let next = at + 1; (this.#nodes[next]?.depth ?? 0) > depth; next++) {
      if (this.#nodes[next]!.depth === depth + 1) children.push(next)
    }
    return children
  }
}

/** Windows of a statement as a statement whose tree shows them. */
export const windowsStatement = (windows: ReadonlyArray<string>): string =>
  `SELECT 1 WINDOW ${windows.map((window, at) => `w${at} AS (${window})`).join(", ")}`

/**
 * Why a statement is refused that has more than its trees show, should ClickHouse leave out another
 * part than windows: any function that isn't known, and any SELECT that wasn't looked at. `trees` are
 * those of the statement and of `windowsStatement`.
 */
export const refusalOfHidden = (
  canonical: string,
  trees: ReadonlyArray<ReadonlyArray<string>>
): string | undefined => {
  const unknown = calledNames(canonical).find((name) => !isAllowedFunction(name))
  if (unknown !== undefined) return unknownFunction(unknown)
  const nodes = trees.flat().filter((line) => nodeOf(line)?.kind === "SelectQuery")
  const added = trees.length - 1
  return nodes.length - added === selectsIn(canonical)
    ? undefined
    : "a subquery is in a place where none can be looked at"
}

/**
 * Why the statement is refused, in words for its author; undefined if it may run. `lines` are those
 * of `EXPLAIN AST`. A text with a line break inside can only add lines, and each is looked at.
 */
export const refusalOf = (lines: ReadonlyArray<string>, tables: Tables): string | undefined => {
  const nodes = lines.map(nodeOf)
  return nodes.includes(undefined)
    ? "the statement can't be read"
    : new Walk(nodes as ReadonlyArray<Node>, tables).refusal()
}
