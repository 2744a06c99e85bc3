/**
 * The routes that read events back: list, one event, statistics. Says nothing of how they are
 * served.
 */
import { Result, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { defined } from "../../domain/Defined.ts"
import { type ListedField, tableFields, whereNames } from "../../domain/events/EventFields.ts"
import type { EventFilter } from "../../domain/events/EventFilter.ts"
import { METADATA_PATH_SEGMENTS_MAX, METADATA_PREFIX } from "../../domain/events/MetadataPath.ts"
import { OCSF_VERSION } from "../../exports/ocsf/OcsfEvent.ts"
import { type EventListQuery, eventSorts, statsIntervals } from "../../ports/EventStore.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { EventList, Facets, Stats, StoredEvent } from "../contract/ContractSchemas.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import { invalid } from "../messages/ApiError.ts"
import { CSV_TYPE, JSON_TYPE, NDJSON_TYPE, PARQUET_TYPE } from "../messages/MediaTypes.ts"
import {
  FEWER_BY_BYTES,
  PAGE_SIZE_DEFAULT,
  type Page,
  pageLinkHeader,
  pageParameters,
  readPage
} from "../messages/Pages.ts"
import {
  booleanParameter,
  choiceParameter,
  type GivenCondition,
  integerParameter,
  type Parameter,
  refuseInverted,
  type ValuesOf
} from "../messages/QueryParameters.ts"
import { Authorization } from "../server/Authorization.ts"
import { conditionParameters, filterParameters, toFilter } from "./EventParameters.ts"
import { fieldsParameter, isTooDeep } from "./FieldsParameter.ts"
import { listedFields } from "./SelectedFields.ts"

/** Groups of the statistics, unless asked otherwise and at most. */
export const STATS_LIMIT_DEFAULT = 100
export const STATS_LIMIT_MAX = 1_000

const listFormats = ["json", "ndjson", "csv", "parquet", "ocsf"] as const
export type ListFormat = (typeof listFormats)[number]

/** What the list can be, the default first. */
export const listTypes = [JSON_TYPE, NDJSON_TYPE, CSV_TYPE, PARQUET_TYPE] as const

/** What is said of the byte order mark, wherever CSV is asked for. */
export const bomOfTables =
  "Of CSV: whether it begins with a byte order mark, by which Excel reads it as UTF-8."

const listParameters = {
  ...filterParameters,
  order: choiceParameter(["asc", "desc"], {
    default: "desc",
    description: "By what `sort` says; newest first by default."
  }),
  sort: choiceParameter(eventSorts, {
    default: "sequence_number",
    description:
      "What events are sorted by; those of one `timestamp` by their sequence numbers. Paging by "
      + "sequence goes with `sequence_number` only."
  }),
  fields: listedFields,
  format: choiceParameter(listFormats, {
    description:
      "Form of the answer; wins over `Accept`, which is asked otherwise. `ocsf`: every match as a line of "
      + `JSON in the form of OCSF ${OCSF_VERSION}, without \`fields\`.`
  }),
  bom: booleanParameter({ default: false, description: bomOfTables }),
  ...pageParameters("Events", PAGE_SIZE_DEFAULT, FEWER_BY_BYTES),
  page: integerParameter({
    minimum: 1,
    default: 1,
    description:
      "`page` times `page_size` is at most 10,000,000; further on use `after_sequence` or "
      + "`before_sequence`. Another page than 1 is refused together with those."
  }),
  after_sequence: integerParameter({
    minimum: 0,
    description: "Exclusive bound for paging by sequence, not together with a `page` over 1."
  }),
  before_sequence: integerParameter({
    minimum: 0,
    description: "Exclusive bound for paging by sequence, not together with a `page` over 1."
  })
}

/** What a list is asked for. */
export interface ListRequest extends Page {
  readonly filter: EventFilter
  /** When it was asked, in canonical microsecond form. */
  readonly now: string
  readonly order: "asc" | "desc"
  readonly sort: EventListQuery["sort"]
  /** Undefined: stored events as they are. */
  readonly fields: ReadonlyArray<ListedField> | undefined
  readonly format: ListFormat | undefined
  /** Of CSV: it begins with a byte order mark. */
  readonly bom: boolean
  readonly afterSequence: number | undefined
  readonly beforeSequence: number | undefined
}

/** What a list is asked for; throws ApiError. */
const listRequest = (
  values: ValuesOf<typeof listParameters>,
  conditions: ReadonlyArray<GivenCondition>,
  now: string
): ListRequest => {
  const { after_sequence, before_sequence, bom = false, fields, format } = values
  const { order = "desc", page = 1, sort } = values
  const isBySequence = after_sequence !== undefined || before_sequence !== undefined
  if (format === "ocsf" && fields !== undefined) {
    throw invalid("fields", "can't be given with format=ocsf, which has a form of its own")
  }
  // Generated clients send defaults: the first page is the page that a sequence leads to.
  if (page !== 1 && isBySequence) {
    throw invalid("page", "can't be given together with after_sequence or before_sequence")
  }
  if (sort === "timestamp" && isBySequence) {
    const instead = "use from and to, or sequence_number> and sequence_number<"
    throw invalid("sort", `can't be timestamp with after_sequence or before_sequence; ${instead}`)
  }
  const pageOf = readPage(values, PAGE_SIZE_DEFAULT, "; use after_sequence or before_sequence")
  refuseInverted(["after_sequence", "before_sequence"], after_sequence, before_sequence)
  return {
    filter: toFilter(values, conditions, now),
    now,
    order,
    sort,
    fields,
    format,
    bom,
    ...pageOf,
    afterSequence: after_sequence,
    beforeSequence: before_sequence
  }
}

const pathOf = (name: string): string => name.slice(METADATA_PREFIX.length)

/** Fields that statistics are grouped by at most. */
const STATS_FIELDS_MAX = 2

const measure: Parameter<string> = {
  description:
    "`metadata.` and a path: the numbers there are summed up too, for each group and in all, with "
    + "their least, their greatest and percentiles. Numbers in a list count each.",
  schema: { type: "string", pattern: "^metadata[.].+" },
  example: "metadata.amount",
  parse: (text) => {
    const path = pathOf(text)
    if (!text.startsWith(METADATA_PREFIX) || path === "") {
      return Result.fail(`must be ${METADATA_PREFIX} and a path, as in metadata.amount`)
    }
    return isTooDeep(path)
      ? Result.fail(`has more than ${METADATA_PATH_SEGMENTS_MAX} segments`)
      : Result.succeed(path)
  }
}

const statsParameters = {
  ...filterParameters,
  group_by: fieldsParameter(whereNames, {
    description: "What the events are counted by",
    default: "action",
    example: "action,outcome",
    most: STATS_FIELDS_MAX
  }),
  interval: choiceParameter(statsIntervals, {
    description:
      "Count per interval of `timestamp`, in UTC, as well; weeks begin on Mondays, months on their first."
  }),
  measure,
  limit: integerParameter({
    minimum: 1,
    maximum: STATS_LIMIT_MAX,
    default: STATS_LIMIT_DEFAULT,
    description: "Groups at most; the rest is counted in `other`."
  })
}

/** Fields of the facets, unless asked otherwise and at most. */
const FACETS_MAX = 10
const FACET_LIMIT_DEFAULT = 10
const FACET_LIMIT_MAX = 100

const FACETS_DEFAULT = ["action", "actor_type", "resource_type", "outcome"] as const
const facetParameters = {
  ...filterParameters,
  fields: fieldsParameter(whereNames, {
    description: "What is counted",
    default: FACETS_DEFAULT.join(","),
    example: "action,metadata.region",
    most: FACETS_MAX
  }),
  limit: integerParameter({
    minimum: 1,
    maximum: FACET_LIMIT_MAX,
    default: FACET_LIMIT_DEFAULT,
    description: "Values of each field at most."
  })
}

/** Query of the routes of one event. */
export const eventParameters = {
  sequence_number: integerParameter({
    minimum: 1,
    description: "Picks one of several events with the same id; the lowest by default."
  })
}

/** The event of a path; the example of a batch has the one of the example. */
export const eventId = {
  id: Schema.String.annotate({
    description: "Id of the event, percent-encoded.",
    examples: ["evt_1"]
  })
}

const EventLines = Schema.String.annotate({
  description:
    "Every match, one event per line, in order; pages are ignored. `after_sequence` or "
    + "`before_sequence` goes on where a stream broke off. With `format=ocsf` a line is what "
    + "schemas/ocsf-event.schema.json describes."
}).pipe(HttpApiSchema.asText({ contentType: NDJSON_TYPE }))

const EventTable = Schema.String.annotate({
  description:
    "Every match, RFC 4180, always with a header, in order; pages are ignored. `after_sequence` "
    + "or `before_sequence` goes on where a table broke off. A text that "
    + `a spreadsheet would take for a formula has a leading '. Columns: ${tableFields.join(",")}`
}).pipe(HttpApiSchema.asText({ contentType: CSV_TYPE }))

const EventParquet = Schema.Uint8Array.annotate({
  description:
    "Every match as Apache Parquet, in order; pages are ignored. Columns as of CSV; `metadata` is its "
    + "JSON text, and what is at a path of it a text."
}).pipe(HttpApiSchema.asUint8Array({ contentType: PARQUET_TYPE }))

const formHint = "format chooses the form, as in format=csv"

/** What the list knows of its query, for its links. */
export const listTable = { parameters: listParameters, conditions: conditionParameters }

const listEvents = HttpApiEndpoint.get("listEvents", "/v1/events", {
  query: queryOf(listParameters, {
    conditions: conditionParameters,
    hints: { accept: formHint, csv: formHint, output: formHint },
    read: listRequest
  }),
  success: [EventList, EventLines, EventTable, EventParquet],
  error: errorsOf("object", 400, 401, 403, 406, 429, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "List events",
    description:
      "Filters are case-sensitive and combine with AND. `format` or `Accept` chooses between a page of "
      + "JSON, a stream of every match as NDJSON, OCSF or CSV, and every match as one Parquet file, of which "
      + "the limits of `POST /v1/sql` hold: what has more is refused.",
    responseHeaders: pageLinkHeader
  })
)

const getStats = HttpApiEndpoint.get("getEventStats", "/v1/events/stats", {
  query: queryOf(statsParameters, {
    conditions: conditionParameters,
    read: ({ group_by, interval, limit, measure, ...values }, conditions, now) => ({
      filter: toFilter(values, conditions, now),
      groupBy: group_by ?? (["action"] as const),
      limit: limit ?? STATS_LIMIT_DEFAULT,
      ...defined({ interval, measure })
    })
  }),
  success: Stats,
  error: errorsOf("object", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Count events",
    description:
      "The filters of the list. Events are counted by one field or by two, and by intervals of time; "
      + "`measure` sums up numbers in metadata."
  })
)

const getFacets = HttpApiEndpoint.get("getEventFacets", "/v1/events/facets", {
  query: queryOf(facetParameters, {
    conditions: conditionParameters,
    read: ({ fields = FACETS_DEFAULT, limit, ...values }, conditions, now) => ({
      filter: toFilter(values, conditions, now),
      fields,
      limit: limit ?? FACET_LIMIT_DEFAULT
    })
  }),
  success: Facets,
  error: errorsOf("object", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Values of events",
    description:
      "How often which values occur among the events that the filters of the list match: what to "
      + "narrow down by next."
  })
)

const getEvent = HttpApiEndpoint.get("getEvent", "/v1/events/:id", {
  params: eventId,
  query: queryOf(eventParameters),
  success: StoredEvent,
  error: errorsOf("object", 400, 401, 403, 404, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "One event",
    description:
      "Past the window in which duplicates are found, two events may have one id: the one "
      + "with the lowest sequence number is shown unless `sequence_number` picks another. The ids "
      + "`batch`, `facets`, `stats` and `stream` are names of routes: read such an event with "
      + "`GET /v1/events?id=`."
  })
)

/** The routes of the tag Query. */
export class QueryApi extends HttpApiGroup.make("Query")
  .add(listEvents, getStats, getFacets, getEvent)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ description: "Reading events back." })) {}
