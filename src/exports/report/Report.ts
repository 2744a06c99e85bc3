/**
 * What a report is made of: the request for it and the evidence that was collected. Sections are
 * pure functions of it.
 */

import { defined } from "../../domain/Defined.ts"
import {
  conditionsOf,
  type EventFilter,
  type NamedCondition
} from "../../domain/events/EventFilter.ts"
import { sha256Hex } from "../../domain/Identifiers.ts"
import { canonicalize } from "../../domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../domain/json/Json.ts"
import {
  HISTORY_FROM,
  HISTORY_TO,
  type TenantReport,
  type VerifyReport
} from "../../verify/Verifier.ts"
import type { TraceScope } from "../pack/TraceExport.ts"
import type { BrokenEvents } from "./BrokenEvents.ts"
import type { CriteriaMapping } from "./Criteria.ts"
import type { Evidence } from "./Evidence.ts"
import { type Html, html, nothing } from "./Html.ts"
import type { Logo } from "./ReportSettings.ts"
import { seconds } from "./ShownText.ts"

/** Who asked for a report, for what, and where it can be asked for again. */
export interface ReportRequest {
  readonly askedBy: { readonly kind: "API key" | "share link"; readonly id: string }
  /** Method and target as they were received. */
  readonly line: string
  /** Without a trailing slash. */
  readonly serviceUrl: string
  readonly apiVersion: string
}

/** A request for a report. */
export interface ReportInput {
  readonly tenant: { readonly id: string; readonly name?: string }
  /** Of the list; its bounds may only narrow those of the verification. */
  readonly filter: EventFilter
  /** The finished check; its bounds are those of the report. */
  readonly verification: TenantReport
  /** Canonical time; the only thing that differs between two reports of the same content. */
  readonly generatedAt: string
  readonly serviceName: string
  readonly request: ReportRequest
  /** The agent executions of the same bounds; undefined if the tenant has none. */
  readonly traces: TraceScope | undefined
  /** The traces were left out, whether there are any or not. */
  readonly eventsOnly?: boolean
  /** Of the reads, see EventStore. */
  readonly deduplicate: boolean
}

export interface Report {
  readonly id: string
  readonly input: ReportInput
  readonly evidence: Evidence
  readonly mapping: CriteriaMapping
  readonly organisation: string | undefined
  readonly logo: Logo | undefined
  /** Which events must not be shown as intact. */
  readonly brokenEvents: BrokenEvents
}

/** The chapters in their order; the id is the anchor. */
export const chapterIds = [
  "request",
  "population",
  "integrity",
  "criteria",
  "failures",
  "privileged",
  "timeliness",
  "statistics",
  "executions",
  "samples",
  "events",
  "sign-off",
  "glossary"
] as const
export type ChapterId = (typeof chapterIds)[number]

/** `chapter 3`, for references between chapters. */
export const chapter = (id: ChapterId): string => `chapter ${chapterIds.indexOf(id) + 1}`

/** One numbered chapter. */
export interface Section {
  readonly title: string
  readonly body: (report: Report) => Html
}

/** The bounds as a person would say them. */
export const boundsText = ({ bounds }: VerifyReport): string => {
  const { from, to } = bounds
  if (from === HISTORY_FROM && to === HISTORY_TO) return "Entire history"
  if (from === HISTORY_FROM) return `Up to ${seconds(to)} UTC`
  if (to === HISTORY_TO) return `From ${seconds(from)} UTC`
  return `${seconds(from)} to ${seconds(to)} UTC`
}

/** The time that the events of the population really cover, by their event times. */
export const periodText = ({ survey }: Evidence): string =>
  survey.period === undefined
    ? "no events"
    : `${seconds(survey.period.from)} to ${seconds(survey.period.to)} UTC`

/** Conditions other than the bounds of time, named as the parameters of the API. */
export const reportedConditions = (filter: EventFilter): ReadonlyArray<NamedCondition> => {
  const { fromSequence, toSequence } = filter
  return [
    ...conditionsOf(filter),
    ...(fromSequence === undefined ? [] : [["from_sequence", String(fromSequence)] as const]),
    ...(toSequence === undefined ? [] : [["to_sequence", String(toSequence)] as const])
  ]
}

/** True if nothing but the period chooses the events. */
export const isWholePopulation = ({ filter }: ReportInput): boolean =>
  reportedConditions(filter).length === 0

/** Hexadecimal digits of a report's id. */
const ID_DIGITS = 32

/** Names one report: what was asked, by whom, when, and the end of its chain. */
export const reportIdOf = (input: ReportInput): string => {
  const { filter, generatedAt, request, tenant, verification } = input
  const identity: JsonObject = {
    tenant_id: tenant.id,
    bounds: { ...verification.bounds },
    conditions: reportedConditions(filter).map((condition) => [...condition]),
    head: verification.head?.hash ?? null,
    asked_by: request.askedBy.id,
    generated_at: generatedAt
  }
  return sha256Hex(canonicalize(identity)).slice(0, ID_DIGITS)
}

/** A command of a shell that prints the SHA-256 of the events that a filter means, as NDJSON. */
export const digestCommand = ({ serviceUrl }: ReportRequest, bounded: EventFilter): string => {
  const { from, to } = bounded
  const parameters = [
    ...Object.entries(defined({ order: "asc", from, to })),
    ...reportedConditions(bounded)
  ]
  // A URL holds no character then that a shell would read in single quotes.
  const encoded = (text: string) => encodeURIComponent(text).replaceAll("'", "%27")
  const query = parameters.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&")
  return [
    'curl -sSf -H "Authorization: Bearer $ALK_API_KEY" \\',
    '  -H "Accept: application/x-ndjson" \\',
    `  '${serviceUrl}/v1/events?${query}' \\`,
    "  | sha256sum"
  ].join("\n")
}

/** True if the chain of events holds, whatever another chain does. */
export const eventsHold = ({ status }: VerifyReport): boolean =>
  status === "valid" || status === "empty"

/** Before whatever was computed from a record that does not hold; nothing if it does. */
export const alteredNotice = ({ input }: Report): Html =>
  eventsHold(input.verification)
    ? nothing
    : html`<p class="alarm"><strong>Computed from altered records.</strong> The chain does not hold,
        see ${chapter("integrity")}. What follows is what the store says, not what is known to have
        happened.</p>`
