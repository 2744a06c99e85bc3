/**
 * Recorded exports, changed at random: members of other types and values, taken out, put in twice, and
 * bytes changed, put in, taken out or cut off. A seed decides everything.
 */
import { globSync, readFileSync } from "node:fs"
import { attribute, type Json, TRACE } from "./Exports.ts"

/** Spans of one export, so that many can be tried. */
const SPANS = 3

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
export const randomOf = (seed: number) => {
  let state = seed >>> 0
  return (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
export type Random = () => number

const below = (random: Random, end: number): number => Math.floor(random() * end)
const oneOf = <A>(random: Random, all: ReadonlyArray<A>): A => all[below(random, all.length)]!

/** Every span of a recorded export as an export of its own parts. */
interface Recorded {
  readonly resource: Json
  readonly scope: Json
  readonly spans: ReadonlyArray<Json>
}

const recorded: ReadonlyArray<Recorded> = globSync([
  "test/examples/*/run.json",
  "test/services/ingest/otlp/examples/*.json"
]).flatMap((file) => {
  const { resourceSpans } = JSON.parse(readFileSync(file, "utf8")) as Json
  return (resourceSpans as ReadonlyArray<Json>).flatMap(({ resource, scopeSpans }) =>
    (scopeSpans as ReadonlyArray<Json>).map(({ scope, spans }) => ({ resource, scope, spans }))
  )
})

export const pick = (random: Random): Json => {
  const groups = Array.from({ length: 1 + below(random, 2) }, () => oneOf(random, recorded))
  return {
    resourceSpans: groups.map(({ resource, scope, spans }) => ({
      resource,
      scopeSpans: [
        {
          scope,
          spans: Array.from({ length: 1 + below(random, SPANS) }, () => oneOf(random, spans))
        }
      ]
    }))
  }
}

const nested = (levels: number): Json =>
  levels === 0 ? { stringValue: "x\u0000" } : { arrayValue: { values: [nested(levels - 1)] } }

/** What may be in any place. */
const junk: ReadonlyArray<unknown> = [
  null,
  5,
  -1,
  1.5,
  "",
  "0",
  "x",
  "\u0000",
  "half \ud83d",
  "\udc80\udcff",
  "NaN",
  "99999999999999999999",
  "9300000000000000000",
  "1",
  TRACE,
  "x".repeat(5_000),
  true,
  [],
  {},
  [{}],
  [null],
  { key: "k", value: { stringValue: "v" } },
  { stringValue: "v" },
  { intValue: "9007199254740993" },
  { doubleValue: "NaN" },
  { arrayValue: { values: 5 } },
  nested(40),
  nested(300),
  [attribute("twice", { stringValue: "1" }), attribute("twice", { intValue: 2 })],
  Array.from({ length: 1_200 }, () => ({ name: "e" }))
]

const manyLinks = Array.from({ length: 300 }, (_, at) => ({
  traceId: TRACE,
  spanId: (at + 1).toString(16).padStart(16, "0")
}))

/** Members of a span that have to be repaired, which changes in any place seldom make. */
const spoiled: ReadonlyArray<(span: Json) => Json> = [
  ({ spanId, traceId }) => ({ links: [{ traceId, spanId }] }),
  () => ({ links: manyLinks }),
  () => ({ events: [{ name: "e" }] }),
  () => ({ status: { code: 7 } }),
  () => ({ name: "n".repeat(2_000) }),
  () => ({ parentSpanId: "ab" }),
  () => ({ startTimeUnixNano: "0" }),
  () => ({ startTimeUnixNano: "9300000000000000000" }),
  () => ({ endTimeUnixNano: "1" }),
  () => ({ attributes: [attribute("k".repeat(5_000), {}), attribute("deep", nested(100))] })
]

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null

/** The records of a list by this name in some records, whatever they have become. */
const listed = (records: ReadonlyArray<Json>, name: string): ReadonlyArray<Json> =>
  records.flatMap((record) => (Array.isArray(record[name]) ? record[name].filter(isRecord) : []))

const spoil = (random: Random, root: Json): void => {
  const spans = ["resourceSpans", "scopeSpans", "spans"].reduce(listed, [root])
  if (spans.length === 0) return
  const span = oneOf(random, spans)
  Object.assign(span, structuredClone(oneOf(random, spoiled)(span)))
}

/** A container anywhere in a value, the outer ones as often as the inner ones. */
const containerIn = (random: Random, root: Json): Json => {
  let found = root
  for (let depth = below(random, 12); depth > 0; depth--) {
    const inner = Object.values(found).filter((one) => typeof one === "object" && one !== null)
    if (inner.length === 0) break
    found = oneOf(random, inner) as Json
  }
  return found
}

const change = (random: Random, root: Json): void => {
  const container = containerIn(random, root)
  const keys = Object.keys(container)
  if (keys.length === 0) return
  const key = oneOf(random, keys)
  const how = random()
  if (how < 0.6) container[key] = structuredClone(oneOf(random, junk))
  else if (how < 0.75 && Array.isArray(container)) {
    container.push(structuredClone(container[Number(key)]))
  } else if (how < 0.9) delete container[key]
  else container[`${key}x`] = structuredClone(container[key])
}

export const changed = (random: Random): Json => {
  const body = structuredClone(pick(random))
  for (let left = below(random, 5); left > 0; left--)
    (random() < 0.1 ? spoil : change)(random, body)
  return body
}

/** Bytes changed, put in, taken out or cut off. */
export const broken = (random: Random, bytes: Uint8Array): Buffer => {
  let buffer = Buffer.from(bytes)
  for (let left = below(random, 4); left > 0 && buffer.length > 0; left--) {
    const at = below(random, buffer.length)
    const how = random()
    if (how < 0.6) buffer[at] = below(random, 256)
    else if (how < 0.75) {
      const more = Buffer.of(below(random, 256))
      buffer = Buffer.concat([buffer.subarray(0, at), more, buffer.subarray(at)])
    } else if (how < 0.9) buffer = Buffer.concat([buffer.subarray(0, at), buffer.subarray(at + 1)])
    else buffer = buffer.subarray(0, at)
  }
  return buffer
}
