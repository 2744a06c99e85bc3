/**
 * The filter that a query is read as chooses the events that the independent evaluator chooses, and
 * a query is refused where that one refuses it. The same cases are asked over HTTP in test/e2e.
 */
import { assert, describe, it } from "vitest"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import type { EventFilter } from "../../../src/domain/events/EventFilter.ts"
import { currentTime, parseTimestamp } from "../../../src/domain/Timestamp.ts"
import {
  conditionParameters,
  filterParameters,
  toFilter
} from "../../../src/http/events/EventParameters.ts"
import { ApiError } from "../../../src/http/messages/ApiError.ts"
import { checkQuery, readTexts } from "../../../src/http/messages/QueryParameters.ts"
import { Cases } from "../../support/FilterCases.ts"
import { type Expression, isRefused, matching } from "../../support/FilterEvaluator.ts"
import { matches } from "../../support/Matches.ts"
import { runs } from "../../support/Runs.ts"

const EVENTS = 60
const EXPRESSIONS = 500

const table = { parameters: filterParameters, conditions: conditionParameters }

/** The filter; undefined if the query is refused. */
const filterOf = (expression: Expression): EventFilter | undefined => {
  const query = expression.map((pair) =>
    pair.slice(0, 2).map(String).map(encodeURIComponent).join("=")
  )
  try {
    const { conditions, now, values } = readTexts(
      filterParameters,
      checkQuery(`/?${query.join("&")}`, table)
    )
    return toFilter(values, conditions, now)
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

describe("the filter of a query", () => {
  it.each(Array.from({ length: runs(100) }, (_, seed) => seed))(
    "means what the independent evaluator says: seed %i",
    (seed) => {
      const cases = new Cases(seed)
      const events = Array.from({ length: EVENTS }, (_, index) => cases.event(index))
      const stored = events.map(
        (event, index) =>
          ({
            ...event,
            timestamp: parseTimestamp(event["timestamp"]),
            created_at: currentTime(),
            sequence_number: index + 1
          }) as unknown as AuditEvent
      )
      for (let left = EXPRESSIONS; left > 0; left--) {
        const expression = cases.expression(events)
        const filter = filterOf(expression)
        const text = JSON.stringify(expression)
        assert.strictEqual(filter === undefined, isRefused(expression), text)
        if (filter === undefined) continue
        const found = stored.flatMap((event) =>
          matches(filter, event) ? [event.sequence_number] : []
        )
        assert.deepStrictEqual(found, matching(events, expression), text)
      }
    }
  )
})
