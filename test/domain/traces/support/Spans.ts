/** Spans of one execution, drawn small: what they name, and when they ran. */
import fc from "fast-check"
import type { JsonObject } from "../../../../src/domain/json/Json.ts"
import { formatMicros } from "../../../../src/domain/Timestamp.ts"
import type { Span } from "../../../../src/domain/traces/TraceResources.ts"

export const at = (micros: number): string => formatMicros(1_800_000_000_000_000 + micros)

export interface Shape {
  readonly id: string
  readonly parent?: string
  readonly causes?: ReadonlyArray<string>
  readonly start?: number
  readonly end?: number
  readonly type?: string
  readonly name?: string
  readonly failed?: boolean
  readonly metadata?: JsonObject
}

export const spanOf = ({
  causes = [],
  end,
  failed = false,
  id,
  metadata = {},
  name = id,
  parent,
  start = 0,
  type = "CUSTOM"
}: Shape): Span => ({
  id,
  execution_id: "x",
  ...(parent === undefined ? {} : { parent_span_id: parent }),
  caused_by_span_ids: causes,
  span_type: type,
  name,
  status: end === undefined ? "RUNNING" : failed ? "FAILED" : "COMPLETED",
  started_at: at(start),
  ...(end === undefined ? {} : { ended_at: at(end) }),
  metadata
})

/** Spans that may only name spans made before them, and some that never arrive. */
export const acyclic: fc.Arbitrary<ReadonlyArray<Shape>> = fc
  .array(
    fc.record({
      parent: fc.nat(),
      causes: fc.array(fc.nat(), { maxLength: 3 }),
      lost: fc.option(fc.nat({ max: 3 }), { nil: undefined, freq: 4 }),
      start: fc.nat({ max: 5 }),
      end: fc.option(fc.nat({ max: 9 }), { nil: undefined })
    }),
    { maxLength: 30 }
  )
  .map((drawn) => [
    { id: "root", end: 9 },
    ...drawn.map(({ causes, end, lost, parent, start }, n): Shape => {
      const earlier = ["root", ...Array.from({ length: n }, (_, before) => `s${before}`)]
      const named = causes.map((cause) => earlier[cause % earlier.length]!)
      return {
        id: `s${n}`,
        parent: lost === undefined ? earlier[parent % earlier.length]! : `lost${lost}`,
        causes: [...new Set(named)],
        start,
        ...(end === undefined ? {} : { end })
      }
    })
  ])
