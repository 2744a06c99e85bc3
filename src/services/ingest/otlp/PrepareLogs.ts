/**
 * From a decoded export of log records to operations: those that are events of a model's spans, which
 * several instrumentations send instead of attributes, become events of the span that they name. All
 * others are counted and refused. Knows no request and no answer.
 */
import { create } from "@bufbuild/protobuf"
import type { JsonObject } from "../../../domain/json/Json.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import type { RecordOtlpEvents } from "../../../domain/traces/TraceOperation.ts"
import type { ValuesApart } from "../LargeValues.ts"
import type { ExportLogsServiceRequest } from "./gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import { KeyValueSchema } from "./gen/opentelemetry/proto/common/v1/common_pb.js"
import type { LogRecord } from "./gen/opentelemetry/proto/logs/v1/logs_pb.js"
import { agentIdOf, eventTypeOf } from "./Mapping.ts"
import {
  ATTRIBUTES_LEVEL,
  Commands,
  type Context,
  counted,
  defaultSpanLimits,
  type ExportTooLarge,
  executionDetailsOf,
  executionIdOf,
  idOf,
  orNothing,
  REQUEST_CHARACTERS_MAX,
  type ReadEvent,
  type RefusedSpan,
  resourceOf,
  type SharedResource,
  SPAN_ID_BYTES,
  SPANS_MAX,
  type SpanLimits,
  spanIdOf,
  syntheticRootIdOf,
  TRACE_ID_BYTES,
  text,
  timeOf,
  toEvents
} from "./PrepareSpans.ts"
import { attributesOf, LeftOut, type LeftOutPart, textOf, Unstorable } from "./Values.ts"

/** What the names of events of models begin with. */
const MODEL_EVENTS = "gen_ai."
/** Where the name of an event was before records had a member for it. */
const EVENT_NAME = "event.name"

/** Which record is at a place of an export, for people. */
export const logLabelOf = (index: number): string => `log record number ${index + 1} of the request`

/** The records of an export. */
export interface PreparedLogs {
  readonly commands: ReadonlyArray<ReadonlyArray<RecordOtlpEvents>>
  /** Events of models that can't be stored. */
  readonly refused: ReadonlyArray<RefusedSpan>
  /** Records that are no events of models. */
  readonly others: number
  /** What is kept of records, not as it was sent. */
  readonly leftOut: ReadonlyArray<{
    readonly message: string
    readonly reasons: ReadonlyArray<LeftOutPart["reason"]>
  }>
  readonly cut: ReadonlyArray<{ readonly message: string; readonly values: number }>
  /** Values that are stored apart from their events. */
  readonly apart: number
}

const nameOf = ({ attributes, eventName }: LogRecord): string => {
  if (eventName !== "") return eventName
  const named = attributes.find(({ key }) => key === EVENT_NAME)?.value?.value
  return named?.case === "stringValue" ? named.value : ""
}

type Scope = NonNullable<
  ExportLogsServiceRequest["resourceLogs"][number]["scopeLogs"][number]["scope"]
>

/** A record as an event: its attributes and body, how severe it is, and which scope has made it. */
const readRecord = (
  record: LogRecord,
  name: string,
  scope: Scope | undefined,
  leftOut: LeftOut
): ReadEvent => {
  const { body, observedTimeUnixNano, severityNumber, timeUnixNano } = record
  const nanos = timeUnixNano === 0n ? observedTimeUnixNano : timeUnixNano
  const timestamp = timeOf(nanos, "time_unix_nano")
  const { attributes, members } = counted(
    record.attributes,
    record.droppedAttributesCount,
    ATTRIBUTES_LEVEL,
    "attributes",
    leftOut
  )
  const bodyPair = body === undefined ? [] : [create(KeyValueSchema, { key: "body", value: body })]
  const scopeMember = orNothing({
    ...text("name", scope?.name ?? "", leftOut),
    ...text("version", scope?.version ?? "", leftOut)
  })
  const payload: JsonObject = {
    ...members,
    ...attributesOf(bodyPair, ATTRIBUTES_LEVEL - 1, "log", leftOut),
    ...(severityNumber === 0 ? {} : { severity_number: severityNumber }),
    ...text("severity_text", record.severityText, leftOut),
    ...(scopeMember === undefined ? {} : { scope: scopeMember })
  }
  const eventType = eventTypeOf(name)
  return {
    name,
    attributes,
    timestamp,
    nanos,
    eventType,
    payload: orNothing({ ...payload, ...(name === eventType ? {} : { name }) })
  }
}

interface RecordOptions {
  readonly index: number
  readonly name: string
  readonly scope: Scope | undefined
  readonly resource: SharedResource
  readonly tenantId: string
  readonly limits: SpanLimits
}

interface PreparedRecord {
  readonly operation: RecordOtlpEvents
  readonly apart: ValuesApart
  readonly leftOut: ReadonlyArray<LeftOutPart>
}

/** The operation of a record. Throws Unstorable. */
const prepareRecord = (record: LogRecord, options: RecordOptions): PreparedRecord => {
  const { index, limits, name, resource, scope, tenantId } = options
  const traceId = idOf(record.traceId, TRACE_ID_BYTES, "trace_id")
  const spanId = idOf(record.spanId, SPAN_ID_BYTES, "span_id")
  const [apart, leftOut] = [resource.apart.copy(), new LeftOut()]
  const context: Context = { tenantId, traceId, spanId, limits, apart, leftOut }
  const event = readRecord(record, textOf(name, "event_name"), scope, leftOut)
  const operation: RecordOtlpEvents = {
    op: "otlp.events",
    index,
    executionId: executionIdOf(tenantId, traceId),
    syntheticRootId: syntheticRootIdOf(tenantId, traceId),
    spanId: spanIdOf(tenantId, traceId, spanId),
    startedAt: event.timestamp,
    agentId: agentIdOf(event.attributes, resource.attributes),
    executionDetails: executionDetailsOf("", { resource }, context, false, event.attributes),
    events: toEvents([event], context)
  }
  return { operation, apart, leftOut: leftOut.parts }
}

const tooMany = (what: string): ExportTooLarge => ({
  tooLarge: `${what}; send fewer log records at once`
})

/** What the records of an export have become, so far. */
class Prepared {
  readonly commands = new Commands<RecordOtlpEvents>()
  readonly refused: Array<RefusedSpan> = []
  readonly leftOut: Array<PreparedLogs["leftOut"][number]> = []
  readonly cut: Array<PreparedLogs["cut"][number]> = []
  others = 0
  apart = 0

  addLeftOut(label: string, parts: ReadonlyArray<LeftOutPart>): void {
    if (parts.length === 0) return
    const said = parts.map(({ message }) => message).join(", ")
    const reasons = parts.map(({ reason }) => reason)
    this.leftOut.push({ message: `${label}: is not stored as sent: ${said}`, reasons })
  }

  add(record: LogRecord, options: RecordOptions): void {
    const label = logLabelOf(options.index)
    try {
      const { apart, leftOut, operation } = prepareRecord(record, options)
      this.commands.add(operation, apart)
      this.apart += apart.referred
      if (apart.truncated > 0) {
        const message = `${label}: values are too large; beginning, size and SHA-256 are kept`
        this.cut.push({ message, values: apart.truncated })
      }
      this.addLeftOut(label, leftOut)
    } catch (error) {
      if (!(error instanceof Unstorable)) throw error
      const message = `${label}: ${error.message}`
      this.refused.push({ index: options.index, code: "unstorable_value", message })
    }
  }
}

/**
 * Prepare the records of an export, one in a step. A record that comes again is the same event: its
 * id is derived from its span, its time and all that it says.
 */
export function* prepareLogs(
  request: ExportLogsServiceRequest,
  tenantId: string,
  limits: SpanLimits = defaultSpanLimits
): Sliced<PreparedLogs | ExportTooLarge> {
  const prepared = new Prepared()
  let index = 0
  let events = 0
  for (const [at, { resource: sent, schemaUrl, scopeLogs }] of request.resourceLogs.entries()) {
    yield
    const leftOut = new LeftOut()
    const resource = yield* resourceOf({ resource: sent, schemaUrl }, limits, leftOut)
    prepared.addLeftOut(`resource number ${at + 1} of the request`, leftOut.parts)
    for (const { logRecords, scope } of scopeLogs) {
      for (const record of logRecords) {
        yield
        const name = nameOf(record)
        if (name.startsWith(MODEL_EVENTS)) {
          events += 1
          if (events > SPANS_MAX) return tooMany(`more than ${SPANS_MAX} events of models`)
          prepared.add(record, { index, name, scope, resource, tenantId, limits })
          if (prepared.commands.characters > REQUEST_CHARACTERS_MAX) {
            return tooMany(`the log records take over ${REQUEST_CHARACTERS_MAX} characters`)
          }
        } else prepared.others += 1
        index += 1
      }
    }
  }
  const { apart, commands, cut, leftOut, others, refused } = prepared
  return { commands: commands.all, refused, others, leftOut, cut, apart }
}
