/**
 * From a request on a trace to an operation: what is refused, with which code and field, what is
 * filled in, which ids are made of what, and that what is made equals a naive definition of it.
 */

import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import jcs from "canonicalize"
import fc from "fast-check"
import { parseStrict } from "../../../src/domain/json/StrictJson.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { wholeValue } from "../../../src/domain/traces/Payload.ts"
import { SPAN_TYPE_LENGTH_MAX } from "../../../src/domain/traces/TraceFact.ts"
import { decodeOperation, encodeOperation } from "../../../src/domain/traces/TraceOperation.ts"
import { valuesBudget } from "../../../src/services/ingest/LargeValues.ts"
import {
  CAUSES_MAX,
  ERROR_BYTES_MAX,
  executionIdOf,
  type OperationName,
  type PrepareTraceOptions,
  prepareOperation,
  prepareTraces,
  REASON_LENGTH_MAX,
  rootSpanIdOf,
  type Target,
  TRACE_NAME_LENGTH_MAX,
  TRIGGER_LENGTH_MAX
} from "../../../src/services/ingest/PrepareTrace.ts"
import { jsonText, jsonValue } from "../../support/JsonTexts.ts"

const ACCEPTED_AT = "2026-11-21T10:00:00.123456Z"
const limits = { metadataBytesMax: 32_768, payloadBytesMax: 65_536, eventBytesMax: 65_536 }
const options: PrepareTraceOptions = {
  index: 3,
  tenantId: "acme",
  keyId: "key_1",
  acceptedAt: ACCEPTED_AT,
  secret: "a secret that all processes share",
  limits,
  room: valuesBudget()
}
const keyed = { ...options, idempotencyKey: "POST /path key" }

const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

const at = (op: OperationName, id = "there"): Target => ({ op, id })

const accepted = (value: unknown, target: Target, using: PrepareTraceOptions = options): any => {
  const prepared = finish(prepareOperation(value, target, using))
  assert("ok" in prepared, JSON.stringify(prepared))
  return prepared.ok
}

const refused = (value: unknown, target: Target, using: PrepareTraceOptions = options) => {
  const prepared = finish(prepareOperation(value, target, using))
  assert("error" in prepared, JSON.stringify(prepared))
  return prepared.error
}

const detailsOf = (details: any): unknown => {
  assert.strictEqual(details.hash, sha256(`${details.salt}\n${details.text}`))
  assert.match(details.salt, /^[0-9a-f]{32}$/)
  const value: unknown = JSON.parse(details.text)
  assert.strictEqual(details.text, jcs(value))
  return value
}

const start = at("execution.start")
const span = { span_type: "TOOL_CALL", name: "search" }

describe("starting an execution", () => {
  it("fills in what was not sent and makes a fresh id", () => {
    const made = accepted({ agent_id: "a" }, start)
    const { details, executionId, rootDetails, rootSpanId, ...rest } = made
    assert.deepStrictEqual(rest, {
      op: "execution.start",
      index: 3,
      fresh: true,
      agentId: "a",
      startedAt: ACCEPTED_AT,
      startedAtGiven: false
    })
    assert.isUndefined(details)
    assert.match(executionId, /^[0-9a-f-]{14}7/)
    assert.strictEqual(rootSpanId, rootSpanIdOf("acme", executionId))
    assert.deepStrictEqual(detailsOf(rootDetails), { name: "a" })
  })

  it("keeps what was sent, canonical, and only that", () => {
    const made = accepted(
      {
        agent_id: "a",
        trigger: "",
        metadata: JSON.parse('{"b":1,"a":{"__proto__":2}}'),
        agent_name: "é",
        started_at: "2026-11-21T11:00:00.1234569+01:00"
      },
      start
    )
    assert.strictEqual(
      made.details.text,
      '{"agent_name":"é","metadata":{"a":{"__proto__":2},"b":1},"trigger":""}'
    )
    detailsOf(made.details)
    assert.deepStrictEqual([made.startedAt, made.startedAtGiven], [ACCEPTED_AT, true])
    assert.deepStrictEqual(detailsOf(made.rootDetails), { name: "é" })
    assert.strictEqual(
      accepted({ agent_id: "a", metadata: {} }, start).details.text,
      '{"metadata":{}}'
    )
  })

  it("makes the id of tenant, agent and idempotency_key", () => {
    const item = { agent_id: "a", idempotency_key: "k" }
    const made = accepted(item, start)
    assert.strictEqual(made.executionId, executionIdOf("acme", "a", "k"))
    assert.match(made.executionId, /^[0-9a-f-]{14}8/)
    assert.isFalse(made.fresh)
    const others = [
      accepted({ ...item, agent_id: "b" }, start),
      accepted({ ...item, idempotency_key: "l" }, start),
      accepted(item, start, { ...options, tenantId: "other" }),
      // The boundary between the parts counts.
      accepted({ agent_id: "ak", idempotency_key: "" + "k" }, start)
    ]
    assert.strictEqual(new Set([made, ...others].map(({ executionId }) => executionId)).size, 5)
    assert.strictEqual(accepted(item, start, keyed).executionId, made.executionId)
  })

  it("makes the id of the request's key where there is nothing else", () => {
    const made = accepted({ agent_id: "a" }, start, keyed)
    assert.strictEqual(accepted({ agent_id: "a" }, start, keyed).executionId, made.executionId)
    assert.isFalse(made.fresh)
    const elsewhere = { ...keyed, index: 4 }
    assert.notStrictEqual(
      accepted({ agent_id: "a" }, start, elsewhere).executionId,
      made.executionId
    )
  })
})

describe("starting a span", () => {
  const target = at("span.start", "run")

  it("fills in what was not sent", () => {
    const { details, spanId, ...rest } = accepted(span, target)
    assert.match(spanId, /^[0-9a-f-]{14}7/)
    assert.deepStrictEqual(detailsOf(details), { name: "search" })
    assert.deepStrictEqual(rest, {
      op: "span.start",
      index: 3,
      executionId: "run",
      fresh: true,
      causedBy: [],
      spanType: "TOOL_CALL",
      startedAt: ACCEPTED_AT,
      startedAtGiven: false
    })
  })

  it("is fresh only where nothing can stand under its id", () => {
    const named = accepted({ ...span, id: "s" }, target)
    const byKey = accepted({ ...span, idempotency_key: "s" }, target)
    const byRequest = accepted(span, target, keyed)
    for (const made of [named, byKey, byRequest]) {
      assert.isFalse(made.fresh)
    }
    assert.isTrue(accepted(span, target).fresh)
    assert.strictEqual(named.spanId, "s")
    const elsewhere = accepted({ ...span, idempotency_key: "s" }, at("span.start", "other"))
    assert.notStrictEqual(byKey.spanId, elsewhere.spanId)
  })

  it("is the same alone and in a batch", () => {
    const alone = accepted({ ...span, id: "s" }, target)
    const batched = accepted({ op: "span.start", execution_id: "run", id: "s", ...span }, undefined)
    assert.strictEqual(batched.spanId, alone.spanId)
    assert.strictEqual(batched.details.text, alone.details.text)
  })
})

describe("a trace event", () => {
  const target = at("span.event", "s")
  it("is told apart by the id that the client gave", () => {
    const own = accepted({ event_type: "a", id: "e", payload: {} }, target)
    assert.strictEqual(own.eventId, "e")
    assert.match(own.dedupKey, /^[0-9a-f]{32}$/)
    assert.strictEqual(own.details.text, '{"payload":{}}')
    const batched = accepted(
      { op: "span.event", span_id: "s", event_type: "a", id: "e", payload: {} },
      undefined
    )
    assert.deepStrictEqual([batched.dedupKey, batched.fingerprint], [own.dedupKey, own.fingerprint])
    const made = accepted({ event_type: "Any name, really" }, target)
    assert.match(made.eventId, /^[0-9a-f-]{14}7/)
    assert.isUndefined(made.dedupKey)
    assert.isUndefined(made.details)
    assert.strictEqual(made.timestamp, ACCEPTED_AT)
  })
})

describe("ends and erasures", () => {
  it("complete by default, now", () => {
    assert.deepStrictEqual(accepted({}, at("execution.end", "run")), {
      op: "execution.end",
      index: 3,
      executionId: "run",
      status: "COMPLETED",
      endedAt: ACCEPTED_AT,
      endedAtGiven: false
    })
    const end = { status: "FAILED", ended_at: "2026-11-21T10:00:01Z", error: { b: 1, a: [] } }
    const { details, ...rest } = accepted({ ...end, metadata: { m: 1 } }, at("span.end", "s"))
    assert.strictEqual(details.text, '{"error":{"a":[],"b":1},"metadata":{"m":1}}')
    assert.deepInclude(rest, {
      spanId: "s",
      status: "FAILED",
      endedAt: "2026-11-21T10:00:01.000000Z",
      endedAtGiven: true
    })
  })

  it("say who asked for the erasure and why", () => {
    assert.deepStrictEqual(accepted({ reason: "r" }, at("execution.erase", "run")), {
      op: "execution.erase",
      index: 3,
      executionId: "run",
      reason: "r",
      erasedBy: "key_1"
    })
  })
})

describe("refusals", () => {
  const long = (length: number) => "x".repeat(length + 1)
  /** So many members that not even their values alone could go. */
  const crowded = (length: number) =>
    Object.fromEntries(Array.from({ length: length / 8 }, (_, n) => [`k${n}`, n]))
  const cases: ReadonlyArray<[string, string, unknown, OperationName?]> = [
    ["missing_field", "agent_id", {}],
    ["missing_field", "agent_id", { agent_id: null }],
    ["invalid_value", "agent_id", { agent_id: "" }],
    ["invalid_value", "agent_id", { agent_id: 5 }],
    ["invalid_value", "agent_id", { agent_id: long(256) }],
    ["invalid_value", "agent_id", { agent_id: "a\nb" }],
    ["invalid_value", "agent_name", { agent_id: "a", agent_name: long(TRACE_NAME_LENGTH_MAX) }],
    ["invalid_value", "agent_name", { agent_id: "a", agent_name: {} }],
    ["invalid_value", "trigger", { agent_id: "a", trigger: long(TRIGGER_LENGTH_MAX) }],
    ["invalid_value", "idempotency_key", { agent_id: "a", idempotency_key: "" }],
    ["invalid_value", "idempotency_key", { agent_id: "a", idempotency_key: 1 }],
    ["invalid_value", "id", { agent_id: "a", id: "" }],
    ["invalid_value", "id", { agent_id: "a", id: "i", idempotency_key: "k" }],
    ["invalid_timestamp", "started_at", { agent_id: "a", started_at: "yesterday" }],
    ["invalid_timestamp", "started_at", { agent_id: "a", started_at: 1_700_000_000 }],
    ["invalid_timestamp", "started_at", { agent_id: "a", started_at: "2026-11-21T10:00:60Z" }],
    ["invalid_value", "metadata", { agent_id: "a", metadata: [] }],
    ["invalid_value", "operation", []],
    ["invalid_value", "operation", null],
    ["invalid_value", "status", { status: "RUNNING" }, "execution.end"],
    ["invalid_value", "status", { status: "completed" }, "execution.end"],
    ["invalid_timestamp", "ended_at", { ended_at: "2026-02-30T00:00:00Z" }, "execution.end"],
    ["missing_field", "reason", {}, "execution.erase"],
    ["missing_field", "reason", { reason: "" }, "execution.erase"],
    ["invalid_value", "reason", { reason: long(REASON_LENGTH_MAX) }, "execution.erase"],
    ["missing_field", "span_type", { name: "n" }, "span.start"],
    ["invalid_value", "span_type", { ...span, span_type: "tool_call" }, "span.start"],
    ["invalid_value", "span_type", { ...span, span_type: "_A" }, "span.start"],
    ["invalid_value", "span_type", { ...span, span_type: "A\n" }, "span.start"],
    [
      "invalid_value",
      "span_type",
      { ...span, span_type: "A".repeat(SPAN_TYPE_LENGTH_MAX + 1) },
      "span.start"
    ],
    ["missing_field", "name", { span_type: "A" }, "span.start"],
    ["missing_field", "name", { ...span, name: "" }, "span.start"],
    ["invalid_value", "name", { ...span, name: long(TRACE_NAME_LENGTH_MAX) }, "span.start"],
    ["invalid_value", "parent_span_id", { ...span, parent_span_id: "" }, "span.start"],
    ["invalid_value", "caused_by_span_ids", { ...span, caused_by_span_ids: "a" }, "span.start"],
    [
      "invalid_value",
      "caused_by_span_ids[1]",
      { ...span, caused_by_span_ids: ["a", null] },
      "span.start"
    ],
    [
      "invalid_value",
      "caused_by_span_ids[1]",
      { ...span, caused_by_span_ids: ["a", "a"] },
      "span.start"
    ],
    [
      "invalid_value",
      "caused_by_span_ids",
      { ...span, caused_by_span_ids: Array.from({ length: CAUSES_MAX + 1 }, (_, n) => `s${n}`) },
      "span.start"
    ],
    [
      "event_too_large",
      "operation",
      {
        ...span,
        caused_by_span_ids: Array.from({ length: 256 }, (_, n) => `${n}`.padEnd(256, "x"))
      },
      "span.start"
    ],
    ["invalid_value", "error", { error: 5 }, "span.end"],
    ["invalid_value", "error", { error: [] }, "span.end"],
    ["missing_field", "event_type", {}, "span.event"],
    ["invalid_value", "event_type", { event_type: "" }, "span.event"],
    ["invalid_value", "event_type", { event_type: long(256) }, "span.event"],
    ["invalid_timestamp", "timestamp", { event_type: "a", timestamp: "" }, "span.event"],
    ["invalid_value", "payload", { event_type: "a", payload: "text" }, "span.event"]
  ]
  it("are none for large values: what they are in refers to them", () => {
    const large = (name: string, text: string) => ({ [name]: { kept: 1, large: text } })
    const sent: ReadonlyArray<readonly [OperationName, object, string]> = [
      ["execution.start", { agent_id: "a" }, "metadata"],
      ["execution.end", { status: "COMPLETED" }, "metadata"],
      ["span.start", { name: "a", span_type: "CUSTOM" }, "metadata"],
      ["span.end", { status: "FAILED" }, "error"],
      ["span.event", { event_type: "a" }, "payload"]
    ]
    for (const [op, rest, name] of sent) {
      const text = `${op} `.repeat(20_000)
      const { details, payloads } = accepted({ ...rest, ...large(name, text) }, at(op))
      const found = JSON.parse(details.text)[name]
      const hash = sha256(text)
      assert.strictEqual(found.kept, 1)
      assert.strictEqual(found.large.$ref, `sha256:${hash}`)
      assert.strictEqual(payloads.length, 1)
      const pieces = payloads[0].chunks.map(({ text }: any) => JSON.parse(text).payload)
      assert.strictEqual(wholeValue(hash, pieces), text)
      const fits = accepted({ ...rest, ...large(name, "x".repeat(20_000)) }, at(op))
      assert.strictEqual(JSON.parse(fits.details.text)[name].large.length, 20_000)
      assert.notProperty(fits, "payloads")
    }
    const members = crowded(ERROR_BYTES_MAX)
    for (const [op, rest, name] of sent.filter(([, , name]) => name !== "payload")) {
      const { details, payloads } = accepted({ ...rest, [name]: members }, at(op))
      const { $ref, media_type } = JSON.parse(details.text)[name]
      assert.strictEqual($ref, `sha256:${payloads[0].sha256}`)
      assert.strictEqual(media_type, "application/json")
    }
    // Not even for a reference is there room.
    const small = { ...options, limits: { ...limits, metadataBytesMax: 50, payloadBytesMax: 50 } }
    const text = "x".repeat(100)
    const tight = [
      refused({ agent_id: "a", metadata: { text } }, at("execution.start"), small),
      refused({ event_type: "a", payload: { text } }, at("span.event"), small)
    ]
    assert.deepStrictEqual(
      tight.map(({ code }) => code),
      ["metadata_too_large", "payload_too_large"]
    )
    const error = "no ".repeat(20_000)
    const { details } = accepted({ status: "FAILED", error }, at("span.end"))
    assert.strictEqual(JSON.parse(details.text).error.$ref, `sha256:${sha256(error)}`)
  })

  it.each(cases)("%s of %s: %j", (code, field, value, op) => {
    const error = refused(value, at(op ?? "execution.start"))
    assert.strictEqual(error.code, code, error.message)
    assert.isTrue(error.message.startsWith(`${field}: `), error.message)
  })

  it("of a batch name what the operation is about", () => {
    const wrong: ReadonlyArray<readonly [string, unknown]> = [
      ["op", {}],
      ["op", { op: "execution.erase", execution_id: "a", reason: "r" }],
      ["op", { op: "otlp.span" }],
      ["op", { op: "toString" }],
      ["execution_id", { op: "execution.end" }],
      ["execution_id", { op: "span.start", ...span }],
      ["span_id", { op: "span.end" }],
      ["span_id", { op: "span.event", span_id: "", event_type: "a" }]
    ]
    for (const [field, value] of wrong) {
      const { message } = refused(value, undefined)
      assert.isTrue(message.startsWith(`${field}: `), message)
    }
  })

  it("are exact at the limits", () => {
    const payload = { v: "x".repeat(65_536 - '{"v":""}'.length) }
    accepted({ event_type: "a", payload }, at("span.event"))
    const metadata = { v: "é".repeat((32_768 - '{"v":""}'.length) / 2) }
    accepted({ agent_id: "a", metadata }, start)
    accepted({ agent_id: "😀".repeat(256) }, start)
  })
})

describe("an unknown field", () => {
  const cases: ReadonlyArray<[message: string, value: unknown, op?: OperationName]> = [
    [
      "state: is not a field of execution.end; did you mean status?",
      { state: "FAILED" },
      "execution.end"
    ],
    ["Status: is not a field of span.end; did you mean status?", { Status: "FAILED" }, "span.end"],
    ["endedAt: is not a field of span.end; did you mean ended_at?", { endedAt: null }, "span.end"],
    [
      "end_at: is not a field of execution.end; did you mean ended_at?",
      { end_at: "x" },
      "execution.end"
    ],
    ["agent: is not a field of execution.start; it has id, agent_id, agent_name,", { agent: "a" }],
    ["agentid: is not a field of execution.start; did you mean agent_id?", { agentid: "a" }],
    [
      "spantype: is not a field of span.start; did you mean span_type?",
      { spantype: "A" },
      "span.start"
    ],
    ["parent_id: is not a field of span.start; it has", { parent_id: "a" }, "span.start"],
    ["type: is not a field of span.event; it has id, event_type,", { type: "a" }, "span.event"],
    [
      "payloads: is not a field of span.event; did you mean payload?",
      { payloads: {} },
      "span.event"
    ],
    [
      "reasons: is not a field of execution.erase; did you mean reason?",
      { reasons: "r" },
      "execution.erase"
    ],
    [
      "op: is not a field of execution.end; it has status,",
      { op: "execution.end" },
      "execution.end"
    ],
    ['"": is not a field of execution.end', { "": 1 }, "execution.end"],
    ["__proto__: is not a field of execution.end", JSON.parse('{"__proto__":1}'), "execution.end"]
  ]
  it.each(cases)("%s", (message, value, op = "execution.start") => {
    const error = refused(value, at(op))
    assert.strictEqual(error.code, "invalid_value")
    assert.isTrue(error.message.startsWith(message), error.message)
  })

  it("refuses an item of a batch, whose own names are those of the operation and its id", () => {
    const item = { op: "span.end", span_id: "s" }
    assert.strictEqual(accepted(item, undefined).spanId, "s")
    const { message } = refused({ ...item, execution_id: "e" }, undefined)
    assert.match(message, /^execution_id: is not a field of span\.end; it has op, span_id, status/)
  })

  it("is repeated only as far as it is short", () => {
    const { message } = refused({ ["x".repeat(10_000)]: 1 }, at("span.end"))
    assert.isBelow(message.length, 300)
  })
})

/** Everything that a client may say of a span, right or wrong. */
const member = <A>(arbitrary: fc.Arbitrary<A>) =>
  fc.option(fc.oneof({ weight: 6, arbitrary }, { weight: 1, arbitrary: fc.constant(null) }), {
    nil: undefined
  })
const idText = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme" })
const time = fc
  .date({ min: new Date("1970-01-02"), max: new Date("2261-12-30"), noInvalidDate: true })
  .map((date) => date.toISOString())
const spanItem = fc
  .record({
    id: member(idText),
    idempotency_key: member(idText),
    parent_span_id: member(idText),
    caused_by_span_ids: member(fc.uniqueArray(idText, { maxLength: 3 })),
    span_type: fc.constantFrom("A", "TOOL_CALL", "Z9_"),
    name: fc.string({ minLength: 1, maxLength: 20, unit: "grapheme" }),
    started_at: member(time),
    metadata: member(jsonValue.filter((value) => !Array.isArray(value)))
  })
  .map((item) =>
    Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined))
  )

describe("laws", () => {
  const isId = (value: unknown) =>
    value === null
    || value === undefined
    || /^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]{1,256}$/u.test(String(value))

  it("what is made of a span equals the naive definition", () => {
    fc.assert(
      fc.property(spanItem, (item: any) => {
        const target = at("span.start", "run")
        const prepared = finish(prepareOperation(item, target, options))
        const ids = [
          item.id,
          item.idempotency_key,
          item.parent_span_id,
          ...(item.caused_by_span_ids ?? [])
        ]
        const fits = ids.every(isId) && !item.name.includes("\u0000")
        if (!fits) return assert.property(prepared, "error")
        assert("ok" in prepared, JSON.stringify(prepared))
        const made: any = prepared.ok
        const { metadata, name } = item
        assert.strictEqual(
          made.details.text,
          jcs({ name, ...(metadata === undefined || metadata === null ? {} : { metadata }) })
        )
        assert.strictEqual(made.details.hash, sha256(`${made.details.salt}\n${made.details.text}`))
        assert.deepStrictEqual(made.causedBy, item.caused_by_span_ids ?? [])
        assert.strictEqual(made.parentSpanId, item.parent_span_id ?? undefined)
        assert.strictEqual(made.startedAtGiven, typeof item.started_at === "string")
        const isFresh = (item.id ?? item.idempotency_key ?? undefined) === undefined
        assert.strictEqual(made.fresh, isFresh)
        assert.deepStrictEqual(decodeOperation(encodeOperation(made)), made)
      }),
      { numRuns: 300 }
    )
  })

  it("hostile texts are refused or become operations that survive the log, in every place", () => {
    const template = (text: string) => `{"items":[
      {"op":"execution.start","agent_id":"a","metadata":{"v":${text}},"trigger":${text}},
      {"op":"span.start","execution_id":${text},"span_type":"A","name":${text}},
      {"op":"span.end","span_id":"s","error":${text}},
      {"op":"span.event","span_id":"s","event_type":${text},"payload":{"v":${text}}},
      {"op":${text}}, ${text}]}`
    fc.assert(
      fc.property(jsonText, (text) => {
        const read = parseStrict(Buffer.from(template(text)))
        if ("problem" in read) return
        const items = (read.value as any).items.map((value: unknown) => ({ value }))
        const { errors, traces } = finish(
          prepareTraces(items, {
            ...options,
            target: undefined,
            idempotency: undefined
          })
        )
        assert.strictEqual(traces.length + errors.length, items.length)
        for (const operation of traces) {
          const line = encodeOperation(operation)
          assert.notInclude(line, "\n")
          assert.deepStrictEqual(decodeOperation(line), operation)
        }
        for (const { message } of errors) assert.match(message, /^[\w.[\]]+: /)
      }),
      { numRuns: 300 }
    )
  })
})
