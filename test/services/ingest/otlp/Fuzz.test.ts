/**
 * Recorded exports, changed at random: whatever is sent, each span is prepared or named as refused, what
 * is prepared can be stored, what becomes of a span does not depend on the others, and the executions
 * are the same in any order, in facts that verify. Every repair comes about. `npm run test:all` tries 100,000 exports in each
 * encoding, `TEST_EXPORTS` says another number.
 */
import { toBinary } from "@bufbuild/protobuf"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { GENESIS_HASH } from "../../../../src/domain/chain/Chains.ts"
import { canonicalize } from "../../../../src/domain/json/CanonicalJson.ts"
import type { JsonValue } from "../../../../src/domain/json/Json.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import { recomputeFact } from "../../../../src/domain/traces/FactText.ts"
import {
  decidedRepairs,
  type RepairCode,
  repairCodes
} from "../../../../src/domain/traces/Repairs.ts"
import type { RecordOtlpSpan } from "../../../../src/domain/traces/TraceOperation.ts"
import { decodeJson, decodeProtobuf } from "../../../../src/services/ingest/otlp/Decode.ts"
import {
  type ExportTraceServiceRequest,
  ExportTraceServiceRequestSchema
} from "../../../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { PreparedItems } from "../../../../src/services/ingest/otlp/Prepared.ts"
import { countSpans } from "../../../../src/services/ingest/otlp/PrepareSpans.ts"
import type { Decoded, ReadRequest } from "../../../../src/services/ingest/otlp/Reading.ts"
import { Partition } from "../../../actors/support/Traces.ts"
import { isWhole } from "../../../support/Runs.ts"
import { broken, changed, pick, type Random, randomOf } from "./support/Changed.ts"
import { fromJsonText, preparedRead } from "./support/Exports.ts"

const EXPORTS = Number(process.env["TEST_EXPORTS"] ?? (isWhole ? 100_000 : 1_000))
/** After which executions whose parents never came have ended. */
const A_LATER_TIME_SECONDS = 3_600
/** Bytes of a record that brokers and clients take by default, and of its key and headers. */
const RECORD_BYTES_MAX = 1_048_588
const HEADERS_BYTES = 4_096

/** The repairs that have come about. */
const came = new Set<RepairCode>()

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

/** What is answered about an execution, but for when it was stored. */
const seen = (partition: Partition, executionId: string) => {
  const { execution, spans } = partition.view(executionId)
  return {
    execution: { ...execution, created_at: "" },
    spans: spans.toSorted((left, right) => (left.id < right.id ? -1 : 1))
  }
}

/** Facts with room in a record, of the same hashes when they are computed again, each on the one before it. */
const verify = ({ bodies }: Partition): void => {
  let before = GENESIS_HASH
  for (const body of bodies) {
    const { contentHash, detailsHash, exact, fact, hash } = recomputeFact(body)!
    assert.isTrue(exact)
    assert.isBelow(Buffer.byteLength(body), RECORD_BYTES_MAX - HEADERS_BYTES)
    assert.deepStrictEqual(
      [fact.prev_hash, fact.hash, fact.content_hash, fact.details_hash],
      [before, hash, contentHash, detailsHash]
    )
    before = fact.hash
  }
}

/** Applies operations one by one, and gives the executions of which one was refused. */
const applied = (operations: ReadonlyArray<RecordOtlpSpan>) => {
  const partition = new Partition()
  const refused = new Set<string>()
  for (const operation of operations) {
    const { errors, results } = partition.run(operation)
    assert.lengthOf([...errors, ...results], 1)
    if (errors.length > 0) refused.add(operation.executionId)
  }
  partition.pass(A_LATER_TIME_SECONDS)
  verify(partition)
  return { partition, refused }
}

/**
 * The executions of both orders are the same, but for those of which a span was refused: which one of a
 * circle closes it is a matter of order, and it is named.
 */
const checkOrder = ({ commands }: PreparedItems): number => {
  // Of two that say other things of one span the order decides, so each is there once.
  const all = [
    ...new Map(commands.flat().map((one) => [`${one.executionId} ${one.spanId}`, one])).values()
  ]
  const forwards = applied(all)
  const backwards = applied(all.toReversed())
  let compared = 0
  for (const executionId of new Set(all.map((operation) => operation.executionId))) {
    if (forwards.refused.has(executionId) || backwards.refused.has(executionId)) continue
    assert.deepStrictEqual(
      seen(backwards.partition, executionId),
      seen(forwards.partition, executionId)
    )
    compared += 1
  }
  return compared
}

/** Throws if something does not hold; gives how many executions were compared in two orders. */
const check = (decoded: Decoded): number => {
  if ("problem" in decoded) {
    assert.isNotEmpty(decoded.problem.message)
    return 0
  }
  const { flaws, request }: ReadRequest = decoded
  const prepared = preparedRead(decoded)
  for (const { counts } of prepared.repaired) for (const code of counts.keys()) came.add(code)
  const compared = checkOrder(prepared)
  const became = becameOf(prepared)
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
  return compared
}

const holds = (name: string, decodedOf: (random: Random) => Decoded) => {
  it(`holds for ${name}`, { timeout: 60_000 + 10 * EXPORTS }, () => {
    let compared = 0
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 31 - 1 }), (seed) => {
        compared += check(decodedOf(randomOf(seed)))
      }),
      { numRuns: EXPORTS, endOnFailure: true }
    )
    assert.isAbove(compared, EXPORTS / 2)
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

  it.runIf(EXPORTS >= 1_000)("is repaired in every way that there is", () => {
    const decided = new Set<RepairCode>(decidedRepairs)
    assert.sameMembers([...came, ...decided], [...repairCodes])
  })
})
