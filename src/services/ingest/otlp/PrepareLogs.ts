/**
 * From a decoded export of log records to operations: those that are events of a model's spans,
 * which several instrumentations send instead of attributes, become events of the span that they
 * name. All others are counted.
 */
import type { JsonObject } from "../../../domain/json/Json.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { YEAR_MAX } from "../../../domain/Timestamp.ts"
import { callsInEvents, namedCalls } from "../../../domain/traces/GraphHints.ts"
import type { RecordOtlpEvents } from "../../../domain/traces/TraceOperation.ts"
import { type Flaws, NO_FLAWS } from "./Flaws.ts"
import type { ExportLogsServiceRequest } from "./gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import type { LogRecord } from "./gen/opentelemetry/proto/logs/v1/logs_pb.js"
import { agentIdOf, eventTypeOf } from "./Mapping.ts"
import { type ExportTooLarge, Prepared, type PreparedItems } from "./Prepared.ts"
import { executionDetailsOf } from "./PrepareSpan.ts"
import { REQUEST_CHARACTERS_MAX, SPANS_MAX } from "./PrepareSpans.ts"
import { RepairLog } from "./RepairLog.ts"
import { EventMaker, type ReadEvent } from "./SpanEvents.ts"
import {
  executionIdOf,
  idOf,
  SPAN_ID_BYTES,
  spanIdOf,
  syntheticRootIdOf,
  TRACE_ID_BYTES
} from "./SpanIds.ts"
import {
  ATTRIBUTES_LEVEL,
  count,
  counted,
  member,
  orNothing,
  resourceOf,
  type SharedResource,
  textMember,
  unreadMembers
} from "./SpanOrigins.ts"
import { type Context, defaultSpanLimits, type SpanLimits, timeOf } from "./SpanParts.ts"
import { jsonOf, Unstorable } from "./Values.ts"

/** What the names of events of models begin with. */
const MODEL_EVENTS = "gen_ai."
/** Where the name of an event was before records had a member for it. */
const EVENT_NAME = "event.name"

/** Which record is at a place of an export, for people. */
export const logLabelOf = (index: number): string => `log record number ${index + 1} of the request`

/** The records of an export. */
export interface PreparedLogs extends PreparedItems<RecordOtlpEvents> {
  /** Records that are not events of models. */
  readonly others: number
}

const nameOf = ({ attributes, eventName }: LogRecord): string => {
  if (eventName !== "") return eventName
  const named = attributes.find(({ key }) => key === EVENT_NAME)?.value?.value
  return named?.case === "stringValue" ? named.value : ""
}

/** True for an event of a model, and for a record that can't be read and may be one. */
const isMeant = (record: LogRecord, flaws: Flaws): boolean =>
  nameOf(record).startsWith(MODEL_EVENTS) || flaws.unreadable(record) !== undefined

type ScopeLogs = ExportLogsServiceRequest["resourceLogs"][number]["scopeLogs"][number]

interface Scope {
  readonly value: JsonObject | undefined
  readonly repairs: RepairLog
}

interface RecordOptions {
  readonly index: number
  readonly scope: Scope
  readonly resource: SharedResource
  readonly tenantId: string
  readonly limits: SpanLimits
  readonly flaws: Flaws
}

const timestampOf = (nanos: bigint): string => {
  const timestamp = timeOf(nanos)
  if (timestamp !== undefined) return timestamp
  const wrong =
    nanos === 0n
      ? "missing; send nanoseconds since 1970"
      : `must be before the year ${YEAR_MAX + 1}`
  throw new Unstorable(`time_unix_nano: ${wrong}`)
}

/** Read once for all records of it: its texts may be most of the request. */
function* scopeOf(scopeLogs: ScopeLogs, flaws: Flaws): Sliced<Scope> {
  const repairs = new RepairLog()
  const value = orNothing({
    ...(yield* textMember("name", scopeLogs.scope?.name ?? "", repairs, "scope.")),
    ...(yield* textMember("version", scopeLogs.scope?.version ?? "", repairs, "scope.")),
    ...(yield* unreadMembers(scopeLogs, "scope", flaws, repairs))
  })
  yield* repairs.hashed()
  return { value, repairs }
}

/**
 * A record as an event: its attributes and body, how severe it is, which scope has made it, and
 * what was repaired of all this.
 */
function* readRecord(
  record: LogRecord,
  { flaws, resource, scope }: RecordOptions,
  repairs: RepairLog
): Sliced<ReadEvent> {
  const { body, observedTimeUnixNano, severityNumber, timeUnixNano } = record
  const nanos = timeUnixNano === 0n ? observedTimeUnixNano : timeUnixNano
  const timestamp = timestampOf(nanos)
  for (const { message, sent } of flaws.of(record)) {
    repairs.add("unknown_name", () => message, sent)
  }
  const name = yield* repairs.text(nameOf(record), () => "event_name")
  const { attributes, members } = yield* counted(
    record.attributes,
    record.droppedAttributesCount,
    ATTRIBUTES_LEVEL,
    "attributes",
    repairs
  )
  const payload: JsonObject = {
    ...members,
    ...member("body", body && (yield* jsonOf(body, ATTRIBUTES_LEVEL, () => "body", repairs))),
    ...count("severity_number", severityNumber),
    ...(yield* textMember("severity_text", record.severityText, repairs)),
    ...member("scope", scope.value)
  }
  yield* repairs.hashed()
  repairs.inherit(scope.repairs)
  const all = new RepairLog()
  for (const log of [repairs, resource.repairs]) all.inherit(log)
  const eventType = eventTypeOf(name)
  // As of an event of a span: what is large may leave the payload, the graph needs the ids.
  const calls = callsInEvents([{ name, attributes: { ...attributes, ...payload } }], {})
  return {
    name,
    attributes,
    timestamp,
    nanos,
    eventType,
    payload: orNothing({
      ...payload,
      ...namedCalls(calls),
      ...(name === eventType ? {} : { name }),
      ...member("repairs", all.all)
    })
  }
}

/** The operation of a record, and what was repaired of it. Throws Unstorable. */
function* prepareRecord(record: LogRecord, options: RecordOptions) {
  const { flaws, index, limits, resource, tenantId } = options
  const unread = flaws.unreadable(record)
  if (unread !== undefined) throw new Unstorable(`can't be read: ${unread.message}`)
  const traceId = idOf(record.traceId, TRACE_ID_BYTES, "trace_id")
  const spanId = idOf(record.spanId, SPAN_ID_BYTES, "span_id")
  const [apart, repairs] = [resource.apart.copy(), new RepairLog()]
  const context: Context = { tenantId, traceId, spanId, limits, apart, repairs }
  const event = yield* readRecord(record, options, repairs)
  const operation: RecordOtlpEvents = {
    op: "otlp.events",
    index,
    executionId: executionIdOf(tenantId, traceId),
    syntheticRootId: syntheticRootIdOf(tenantId, traceId),
    spanId: spanIdOf(tenantId, traceId, spanId),
    startedAt: event.timestamp,
    agentId: agentIdOf(event.attributes, resource.attributes),
    executionDetails: executionDetailsOf("", { resource }, context, false, event.attributes),
    events: [yield* new EventMaker(context).make(event, 0, apart)]
  }
  return { operation, apart, repairs }
}

function* addRecord(
  prepared: Prepared<RecordOtlpEvents>,
  record: LogRecord,
  options: RecordOptions
): Sliced<void> {
  const label = logLabelOf(options.index)
  try {
    const { repairs, ...operation } = yield* prepareRecord(record, options)
    yield* prepared.add(label, [operation], repairs)
  } catch (error) {
    prepared.refuse(label, options.index, error)
  }
}

const tooMany = (what: string): ExportTooLarge => ({
  tooLarge: `${what}; send fewer log records at once`
})

/**
 * Prepare the records of an export, one in a step. A record that comes again is the same event: its
 * id is derived from its span, its time and all that it says.
 */
export function* prepareLogs(
  request: ExportLogsServiceRequest,
  tenantId: string,
  limits: SpanLimits = defaultSpanLimits,
  flaws: Flaws = NO_FLAWS
): Sliced<PreparedLogs | ExportTooLarge> {
  const prepared = new Prepared<RecordOtlpEvents>()
  let [index, events, others] = [0, 0, 0]
  for (const [at, resourceLogs] of request.resourceLogs.entries()) {
    yield
    const resource = yield* resourceOf(resourceLogs, limits.metadataBytesMax, flaws)
    prepared.addRepairs(`resource number ${at + 1} of the request`, resource.repairs)
    for (const scopeLogs of resourceLogs.scopeLogs) {
      yield
      const scope = yield* scopeOf(scopeLogs, flaws)
      for (const record of scopeLogs.logRecords) {
        yield
        if (isMeant(record, flaws)) {
          events += 1
          if (events > SPANS_MAX) return tooMany(`more than ${SPANS_MAX} events of models`)
          yield* addRecord(prepared, record, { index, scope, resource, tenantId, limits, flaws })
          if (prepared.characters > REQUEST_CHARACTERS_MAX) {
            return tooMany(`the log records take over ${REQUEST_CHARACTERS_MAX} characters`)
          }
        } else others += 1
        index += 1
      }
    }
  }
  return { ...prepared.all, others }
}
