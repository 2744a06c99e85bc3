/**
 * From a decoded export to the commands that the sequencer decides on: what its spans share, which
 * of them are in a command, and what of the request was repaired or refused.
 */
import { defined } from "../../../domain/Defined.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import type { RepairCode } from "../../../domain/traces/Repairs.ts"
import type { RecordOtlpSpan } from "../../../domain/traces/TraceOperation.ts"
import type { ValuesApart } from "../LargeValues.ts"
import { type Flaws, NO_FLAWS } from "./Flaws.ts"
import type { ExportTraceServiceRequest } from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { Span } from "./gen/opentelemetry/proto/trace/v1/trace_pb.js"
import { type PrepareOptions, prepareSpan } from "./PrepareSpan.ts"
import { describeRepairs, type RepairLog } from "./RepairLog.ts"
import { charactersOf, OPERATION_CHARACTERS } from "./SpanEvents.ts"
import { hexOf, isId, isZero, SPAN_ID_BYTES, TRACE_ID_BYTES } from "./SpanIds.ts"
import { charactersIn, type Origin, originOf, resourceOf } from "./SpanOrigins.ts"
import { COMMAND_CHARACTERS_MAX, defaultSpanLimits, type SpanLimits } from "./SpanParts.ts"
import { Unstorable } from "./Values.ts"

/** Spans of one request: twenty times what an SDK sends at once, and more than a collector does. */
export const SPANS_MAX = 20_000
/** Spans of one command, as many as other writes have items. */
export const SPANS_PER_COMMAND_MAX = 1_000
/** Characters of all operations of a request: what resources and scopes repeated may add up to. */
export const REQUEST_CHARACTERS_MAX = 64 * 1_048_576

/** Repairs of one span that an answer names. */
const REPAIRS_SAID_MAX = 5

/** A span that is not stored. */
export interface RefusedSpan {
  /** Place in the request, from 0, over all resources and scopes. */
  readonly index: number
  /** For counting; OTLP has no place for it. */
  readonly code: string
  /** Which span, and why; for people. */
  readonly message: string
}

/** Something that was repaired: a span, or the resource or scope of several. */
export interface RepairedPart {
  readonly message: string
  readonly counts: ReadonlyMap<RepairCode, number>
}

/** The spans of an export. */
export interface PreparedSpans {
  /** Operations by command, in the order of the request. */
  readonly commands: ReadonlyArray<ReadonlyArray<RecordOtlpSpan>>
  readonly refused: ReadonlyArray<RefusedSpan>
  /** Spans that are stored without all of what they say, and how many of their values were cut. */
  readonly cut: ReadonlyArray<{ readonly message: string; readonly values: number }>
  readonly repaired: ReadonlyArray<RepairedPart>
  /** Values that are stored apart from their spans. */
  readonly apart: number
}

/** An export that is too large as a whole. */
export interface ExportTooLarge {
  readonly tooLarge: string
}

/** Characters of a span's operation at least. */
const leastCharacters = ({ resource, shared }: Origin, span: Span): number =>
  OPERATION_CHARACTERS
  + charactersIn(shared)
  + (isZero(span.parentSpanId) ? charactersIn(resource) : 0)

const numbered = (index: number): string => `span number ${index + 1} of the request`

/** Which span a refusal is about: its ids, or its place if it has none. */
const labelOf = (span: Span, index: number): string =>
  isId(span.traceId, TRACE_ID_BYTES) && isId(span.spanId, SPAN_ID_BYTES)
    ? `span ${hexOf(span.spanId)} of trace ${hexOf(span.traceId)}`
    : numbered(index)

const cutMessage = (label: string, values: number): string => {
  const many = values === 1 ? "1 value is" : `${values} values are`
  return `${label}: ${many} too large; the beginning, size and SHA-256 are kept`
}

/** Operations of one command, and what its operations have brought. */
class Command {
  readonly operations: Array<RecordOtlpSpan> = []
  characters = 0
  readonly #brought = new Set<string>()

  /** Whether a value was brought for an execution. */
  has(executionId: string): (hash: string) => boolean {
    return (hash) => this.#brought.has(`${executionId}/${hash}`)
  }

  add(operation: RecordOtlpSpan, apart: ValuesApart, characters: number): void {
    const { executionId } = operation
    const payloads = apart.payloads(this.has(executionId))
    for (const { sha256 } of payloads ?? []) this.#brought.add(`${executionId}/${sha256}`)
    this.operations.push({ ...operation, ...defined({ payloads }) })
    this.characters += characters
  }
}

/** Cuts operations into commands. */
class Commands {
  readonly #all: Array<Command> = []
  characters = 0

  get all(): ReadonlyArray<ReadonlyArray<RecordOtlpSpan>> {
    return this.#all.map(({ operations }) => operations)
  }

  add(operation: RecordOtlpSpan, apart: ValuesApart): void {
    const own = charactersOf(operation)
    const charactersFor = (command: Command): number =>
      own + apart.charactersIn(command.has(operation.executionId))
    const last = this.#all.at(-1)
    const fits =
      last !== undefined
      && last.operations.length < SPANS_PER_COMMAND_MAX
      && last.characters + charactersFor(last) <= COMMAND_CHARACTERS_MAX
    const command = fits ? last : new Command()
    if (!fits) this.#all.push(command)
    const more = charactersFor(command)
    command.add(operation, apart, more)
    this.characters += more
  }
}

/** Spans of an export, over all resources and scopes. */
export const countSpans = (request: ExportTraceServiceRequest): number => {
  let spans = 0
  for (const { scopeSpans } of request.resourceSpans) {
    for (const scope of scopeSpans) spans += scope.spans.length
  }
  return spans
}

/** True if a span of an export has a trace id. */
export const hasTraceIds = ({ resourceSpans }: ExportTraceServiceRequest): boolean =>
  resourceSpans.some(({ scopeSpans }) =>
    scopeSpans.some(({ spans }) => spans.some(({ traceId }) => isId(traceId, TRACE_ID_BYTES)))
  )

/** Which span is at a place of an export, for people. */
export const labelsOf = (request: ExportTraceServiceRequest): ((index: number) => string) => {
  const spans = request.resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap((scope) => scope.spans)
  )
  return (index) => {
    const span = spans[index]
    return span === undefined ? numbered(index) : labelOf(span, index)
  }
}

/** What the spans of an export have become, so far. */
class Prepared {
  readonly commands = new Commands()
  readonly refused: Array<RefusedSpan> = []
  readonly cut: Array<PreparedSpans["cut"][number]> = []
  readonly repaired: Array<RepairedPart> = []
  apart = 0

  addRepairs(label: string, log: RepairLog): void {
    const { all } = log
    if (all === undefined) return
    const message = `${label}: repaired: ${describeRepairs(all, REPAIRS_SAID_MAX)}`
    this.repaired.push({ message, counts: log.counts() })
  }

  *add(span: Span, options: PrepareOptions): Sliced<void> {
    const label = labelOf(span, options.index)
    try {
      const { operations, repairs } = yield* prepareSpan(span, options)
      let cut = 0
      for (const { apart, operation } of operations) {
        this.commands.add(operation, apart)
        this.apart += apart.referred
        cut += apart.truncated
      }
      options.introduced.add(hexOf(span.traceId))
      if (cut > 0) this.cut.push({ message: cutMessage(label, cut), values: cut })
      this.addRepairs(label, repairs)
    } catch (error) {
      if (!(error instanceof Unstorable)) throw error
      const message = `${label}: ${error.message}`
      this.refused.push({ index: options.index, code: "unstorable_value", message })
    }
  }
}

const requestTooLarge: ExportTooLarge = {
  tooLarge:
    `the spans, each with its resource and scope, take over ${REQUEST_CHARACTERS_MAX} characters; `
    + "send fewer spans at once"
}

/** The spans of one scope. */
interface SpanGroup {
  readonly origin: Origin
  readonly spans: ReadonlyArray<Span>
}

/**
 * What spans share, made once. The sum of what all of them take at least is known before the first
 * of them is prepared.
 */
function* groupsOf(
  request: ExportTraceServiceRequest,
  { metadataBytesMax }: SpanLimits,
  flaws: Flaws,
  prepared: Prepared
): Sliced<ReadonlyArray<SpanGroup> | ExportTooLarge> {
  const groups: Array<SpanGroup> = []
  let characters = 0
  for (const [at, resourceSpans] of request.resourceSpans.entries()) {
    yield
    const label = `resource number ${at + 1} of the request`
    const resource = yield* resourceOf(resourceSpans, metadataBytesMax, flaws)
    prepared.addRepairs(label, resource.repairs)
    for (const scopeSpans of resourceSpans.scopeSpans) {
      yield
      const origin = yield* originOf(resource, scopeSpans, metadataBytesMax, flaws)
      prepared.addRepairs(label, origin.repairs)
      const { spans } = scopeSpans
      groups.push({ origin, spans })
      for (const span of spans) characters += leastCharacters(origin, span)
      if (characters > REQUEST_CHARACTERS_MAX) return requestTooLarge
    }
  }
  return groups
}

/**
 * Prepare every span of an export, a part of one in a step. `tooLarge` says what to send less of,
 * and then nothing of the export may be stored; everything else that is wrong is wrong with single
 * spans.
 */
export function* prepareSpans(
  request: ExportTraceServiceRequest,
  tenantId: string,
  limits: SpanLimits = defaultSpanLimits,
  flaws: Flaws = NO_FLAWS
): Sliced<PreparedSpans | ExportTooLarge> {
  const spans = countSpans(request)
  if (spans > SPANS_MAX) return { tooLarge: `${spans} spans; send at most ${SPANS_MAX} at once` }
  const prepared = new Prepared()
  const groups = yield* groupsOf(request, limits, flaws, prepared)
  if ("tooLarge" in groups) return groups
  const introduced = new Set<string>()
  let index = 0
  for (const { origin, spans: ofGroup } of groups) {
    for (const span of ofGroup) {
      yield
      yield* prepared.add(span, { index, origin, tenantId, limits, flaws, introduced })
      if (prepared.commands.characters > REQUEST_CHARACTERS_MAX) return requestTooLarge
      index += 1
    }
  }
  const { apart, commands, cut, refused, repaired } = prepared
  return { commands: commands.all, refused, cut, repaired, apart }
}
