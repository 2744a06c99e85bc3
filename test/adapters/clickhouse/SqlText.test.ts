/** What is read in the text of a statement, and what is refused that no tree shows. */
import { assert, describe, it } from "@effect/vitest"
import {
  calledNames,
  inlineWindows,
  selectsIn
} from "../../../src/adapters/clickhouse/sql/SqlText.ts"
import { refusalOfHidden, windowsStatement } from "../../../src/adapters/clickhouse/sql/SqlTree.ts"

describe("the text of a statement", () => {
  it("has windows in brackets, inside of others too, and not in texts and names", () => {
    const inner = "PARTITION BY ')', `(` ORDER BY max(b)"
    const outer = `ORDER BY count() OVER (${inner}), '\\')'`
    assert.deepStrictEqual(
      inlineWindows(
        `SELECT sum(1) OVER (${outer}) AS a, 'x OVER (y)', \`OVER (z)\`, b OVER w, c OVER ()`
      ),
      [outer, inner, ""]
    )
    assert.deepStrictEqual(inlineWindows("SELECT 1 AS over, over FROM (SELECT 1)"), [])
    assert.strictEqual(
      windowsStatement(["ORDER BY a", ""]),
      "SELECT 1 WINDOW w0 AS (ORDER BY a), w1 AS ()"
    )
  })

  it("calls functions, in whatever place", () => {
    const text =
      "SELECT a(b(1)), quantile(0.5)(c), 'd(1)', `e f`(1), `g` (1) FROM t WHERE h IN (1) OVER (i(1))"
    assert.deepStrictEqual(calledNames(text), ["a", "b", "quantile", "e f", "i"])
  })

  it("is refused for a function or a SELECT that no tree shows", () => {
    const tree = ["SelectWithUnionQuery (children 1)", " ExpressionList", "  SelectQuery"]
    assert.isUndefined(refusalOfHidden("SELECT 1", [tree]))
    assert.isUndefined(refusalOfHidden("SELECT max(a) OVER (ORDER BY 1)", [tree, tree]))
    assert.match(refusalOfHidden("SELECT 1 NEW (file('x'))", [tree])!, /function file can't/)
    const hidden = "SELECT 1 NEW (SELECT 2), 'SELECT'"
    assert.strictEqual(selectsIn(hidden), 2)
    assert.match(refusalOfHidden(hidden, [tree])!, /a subquery is in a place/)
    assert.match(refusalOfHidden(hidden, [tree, tree])!, /a subquery is in a place/)
  })
})
