/**
 * What the spans of one resource and scope have in common, made once for all of them: the texts
 * that the metadata of each holds, and what of them is stored apart.
 */
import type { JsonObject, JsonValue } from "../../../domain/json/Json.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { OffloadedValues, withoutLargeTexts } from "../LargeValues.ts"
import type { Flaws } from "./Flaws.ts"
import type { ExportTraceServiceRequest } from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { KeyValue } from "./gen/opentelemetry/proto/common/v1/common_pb.js"
import { RepairLog } from "./RepairLog.ts"
import { attributesOf } from "./Values.ts"

/** Levels of `attributes` in the metadata or payload that it belongs to, which is level 1. */
export const ATTRIBUTES_LEVEL = 2
const NESTED_ATTRIBUTES_LEVEL = 3

export const member = (name: string, value: JsonValue | undefined): JsonObject =>
  value === undefined ? {} : { [name]: value }

export const orNothing = (value: JsonObject): JsonObject | undefined =>
  Object.keys(value).length === 0 ? undefined : value

export const count = (name: string, value: number): JsonObject =>
  value === 0 ? {} : { [name]: value }

/** A text of a part of a span, or of the span itself. */
export function* textMember(
  name: string,
  value: string,
  repairs: RepairLog,
  part = ""
): Sliced<JsonObject> {
  return value === "" ? {} : { [name]: yield* repairs.text(value, () => `${part}${name}`) }
}

/** Attributes as JSON, and with how many the client has dropped. */
export function* counted(
  pairs: ReadonlyArray<KeyValue>,
  dropped: number,
  level: number,
  path: string,
  repairs: RepairLog
) {
  const attributes = yield* attributesOf(pairs, level, () => path, repairs)
  const members = {
    ...member("attributes", orNothing(attributes)),
    ...count("dropped_attributes_count", dropped)
  }
  return { attributes, members }
}

type ResourceSpans = ExportTraceServiceRequest["resourceSpans"][number]
type ScopeSpans = ResourceSpans["scopeSpans"][number]

/** A resource, or a scope, as it is in the metadata of each of its spans. */
interface SharedMember {
  /** RFC 8785 text by name: one at most. */
  readonly texts: ReadonlyMap<string, string>
  /** Values of it that are stored apart. */
  readonly apart: OffloadedValues
}

export interface SharedResource extends SharedMember {
  readonly attributes: JsonObject
  readonly repairs: RepairLog
}

/** What the spans of one scope of one resource have in common. */
export interface Origin {
  readonly resource: SharedResource
  /** Of both. */
  readonly shared: SharedMember
  /** Of the scope alone. */
  readonly repairs: RepairLog
}

/** Of the room for metadata, what a resource and a scope may take of it. */
const RESOURCE_SHARE = 1 / 2
const SCOPE_SHARE = 1 / 4
/** Bytes that each may take at least: a reference has room in it. */
const SHARED_BYTES_MIN = 512

function* shareOf(
  name: string,
  value: JsonObject | undefined,
  bytesMax: number,
  apart: OffloadedValues
): Sliced<ReadonlyMap<string, string>> {
  if (value === undefined) return new Map()
  const least = Math.max(SHARED_BYTES_MIN, Math.floor(bytesMax))
  const whole = (yield* withoutLargeTexts({ [name]: value }, least, apart)) ?? ""
  return new Map([[name, whole.slice(`{"${name}":`.length, -1)]])
}

/** What a resource or scope that can't be read as a whole has besides what of it can be. */
export function* unreadMembers(
  message: object,
  name: string,
  flaws: Flaws,
  repairs: RepairLog
): Sliced<JsonObject> {
  const flaw = flaws.unreadable(message)
  if (flaw === undefined) return {}
  repairs.add("unreadable_origin", () => name)
  const error = yield* repairs.text(flaw.message, () => name)
  return { as_sent: yield* repairs.text(flaw.sent, () => name), error }
}

export function* resourceOf(
  resourceSpans: Pick<ResourceSpans, "resource" | "schemaUrl">,
  metadataBytesMax: number,
  flaws: Flaws
): Sliced<SharedResource> {
  const { resource, schemaUrl } = resourceSpans
  const repairs = new RepairLog()
  const { attributes, members } = yield* counted(
    resource?.attributes ?? [],
    resource?.droppedAttributesCount ?? 0,
    NESTED_ATTRIBUTES_LEVEL,
    "resource.attributes",
    repairs
  )
  const value = orNothing({
    ...members,
    ...(yield* textMember("schema_url", schemaUrl, repairs, "resource.")),
    ...(yield* unreadMembers(resourceSpans, "resource", flaws, repairs))
  })
  yield
  yield* repairs.hashed()
  const apart = new OffloadedValues()
  const texts = yield* shareOf("resource", value, metadataBytesMax * RESOURCE_SHARE, apart)
  return { attributes, texts, apart, repairs }
}

export function* originOf(
  resource: SharedResource,
  scopeSpans: ScopeSpans,
  metadataBytesMax: number,
  flaws: Flaws
): Sliced<Origin> {
  const { schemaUrl, scope } = scopeSpans
  const repairs = new RepairLog()
  const { members } = yield* counted(
    scope?.attributes ?? [],
    scope?.droppedAttributesCount ?? 0,
    NESTED_ATTRIBUTES_LEVEL,
    "scope.attributes",
    repairs
  )
  const value = orNothing({
    ...(yield* textMember("name", scope?.name ?? "", repairs, "scope.")),
    ...(yield* textMember("version", scope?.version ?? "", repairs, "scope.")),
    ...members,
    ...(yield* textMember("schema_url", schemaUrl, repairs, "scope.")),
    ...(yield* unreadMembers(scopeSpans, "scope", flaws, repairs))
  })
  yield
  yield* repairs.hashed()
  const apart = resource.apart.copy()
  const texts = yield* shareOf("scope", value, metadataBytesMax * SCOPE_SHARE, apart)
  return { resource, shared: { texts: new Map([...resource.texts, ...texts]), apart }, repairs }
}

export const charactersIn = ({ texts }: SharedMember): number =>
  [...texts.values()].reduce((sum, { length }) => sum + length, 0)
