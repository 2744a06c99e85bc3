/**
 * Recorded exports, changed at random: whatever is sent, each span is prepared or named as refused, what
 * is prepared can be stored, and what becomes of a span does not depend on the others.
 * `TEST_EXPORTS=100000` is how many exports are tried in each encoding.
 */
import { globSync, readFileSync } from "node:fs"
import { toBinary } from "@bufbuild/protobuf"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { canonicalize } from "../../../../src/domain/json/CanonicalJson.ts"
import type { JsonValue } from "../../../../src/domain/json/Json.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import { decodeJson, decodeProtobuf } from "../../../../src/services/ingest/otlp/Decode.ts"
import {
  type ExportTraceServiceRequest,
  ExportTraceServiceRequestSchema
} from "../../../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { PreparedItems } from "../../../../src/services/ingest/otlp/Prepared.ts"
import { countSpans } from "../../../../src/services/ingest/otlp/PrepareSpans.ts"
import type { Decoded, ReadRequest } from "../../../../src/services/ingest/otlp/Reading.ts"
import { attribute, fromJsonText, type Json, preparedRead, TRACE } from "./support/Exports.ts"

const EXPORTS = Number(process.env["TEST_EXPORTS"] ?? 2_000)
/** Spans of one export, so that many can be tried. */
const SPANS = 3

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
const randomOf = (seed: number) => {
  let state = seed >>> 0
  return (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
type Random = () => number

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

const pick = (random: Random): Json => {
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

const changed = (random: Random): Json => {
  const body = structuredClone(pick(random))
  for (let left = below(random, 5); left > 0; left--) change(random, body)
  return body
}

/** Bytes changed, put in, taken out or cut off. */
const broken = (random: Random, bytes: Uint8Array): Buffer => {
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

const isStorable = (text: string): boolean =>
  text.isWellFormed()
  && !/(?<!\\)(?:\\\\)*\\u0000/.test(text)
  && canonicalize(JSON.parse(text) as JsonValue) === text

/** What became of each span, by its place: the texts of its operations, or why it is refused. */
const becameOf = ({ commands, refused }: PreparedItems): ReadonlyMap<number, string> => {
  const became = new Map<number, string>()
  for (const operation of commands.flat()) {
    const { details, endDetails, events, executionDetails, index, payloads: _, ...rest } = operation
    const payloads = events.map((event) => event.details)
    for (const one of [details, endDetails, executionDetails, ...payloads]) {
      assert.isTrue(one === undefined || isStorable(one.text), one?.text)
    }
    const said = JSON.stringify([
      rest,
      details.text,
      endDetails?.text,
      events.map((event) => [event.eventId, event.timestamp, event.details?.text])
    ])
    became.set(index, (became.get(index) ?? "") + said)
  }
  for (const { index, message } of refused) {
    assert.isFalse(became.has(index))
    became.set(index, message.replace(/span number \d+/, "a span"))
  }
  return became
}

/** The same spans, each scope's the other way round, and which place each has had. */
const reversed = (request: ExportTraceServiceRequest) => {
  const places: Array<number> = []
  const resourceSpans = request.resourceSpans.map((resource) => ({
    ...resource,
    scopeSpans: resource.scopeSpans.map((scope) => {
      const first = places.length
      scope.spans.forEach((_, at) => places.push(first + scope.spans.length - 1 - at))
      return { ...scope, spans: scope.spans.toReversed() }
    })
  }))
  return { request: { ...request, resourceSpans }, places }
}

const check = (decoded: Decoded): void => {
  if ("problem" in decoded) return assert.isNotEmpty(decoded.problem.message)
  const { flaws, request }: ReadRequest = decoded
  const became = becameOf(preparedRead(decoded))
  assert.strictEqual(became.size, countSpans(request))
  const other = reversed(request)
  // Flaws are known by the message, which is the same one.
  other.request.resourceSpans.forEach((resource, at) => {
    const before = request.resourceSpans[at]!
    flaws.add(resource, ...flaws.of(before))
    resource.scopeSpans.forEach((scope, inner) => {
      flaws.add(scope, ...flaws.of(before.scopeSpans[inner]!))
    })
  })
  const again = becameOf(preparedRead({ flaws, request: other.request }))
  other.places.forEach((before, at) => {
    assert.strictEqual(again.get(at), became.get(before))
  })
}

const holds = (name: string, decodedOf: (random: Random) => Decoded) => {
  it(`holds for ${name}`, { timeout: 60_000 + 10 * EXPORTS }, () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 31 - 1 }), (seed) => check(decodedOf(randomOf(seed)))),
      { numRuns: EXPORTS, endOnFailure: true }
    )
  })
}

describe("any export", () => {
  holds("JSON", (random) => {
    const text = Buffer.from(JSON.stringify(changed(random)))
    return finish(decodeJson(random() < 0.7 ? text : broken(random, text)))
  })

  holds("protobuf", (random) => {
    const decoded = finish(decodeJson(Buffer.from(JSON.stringify(changed(random)))))
    const request = "problem" in decoded ? fromJsonText(pick(random)) : decoded.request
    const bytes = toBinary(ExportTraceServiceRequestSchema, request)
    return finish(decodeProtobuf(random() < 0.3 ? bytes : broken(random, bytes)))
  })
})
