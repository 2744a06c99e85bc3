/**
 * What a report is made of: the request for it and the evidence that was collected. Sections are
 * pure functions of it.
 */
import type { EventFilter } from "../../domain/EventFilter.ts"
import { HISTORY_FROM, HISTORY_TO, type VerifyReport } from "../../verify/Verifier.ts"
import type { CriteriaMapping } from "./Criteria.ts"
import type { Evidence } from "./Evidence.ts"
import { html, nothing, type Html } from "./Html.ts"
import type { Marks } from "./Marks.ts"
import { count, seconds } from "./ShownText.ts"

/** A request for a report. */
export interface ReportInput {
  readonly tenant: { readonly id: string; readonly name?: string }
  /** Of the list; its bounds may only narrow those of the verification. */
  readonly filter: EventFilter
  /** The finished check; its bounds are those of the report. */
  readonly verification: VerifyReport
  /** Canonical time; the only thing that differs between two reports of the same content. */
  readonly generatedAt: string
  readonly serviceName: string
  /** How the store is to be read, see EventStore. */
  readonly final: boolean
}

export interface Report {
  readonly input: ReportInput
  readonly evidence: Evidence
  readonly mapping: CriteriaMapping
  /** Which events must not be shown as if they held. */
  readonly marks: Marks
}

/** One numbered chapter. */
export interface Section {
  /** Anchor: lower-case letters and dashes. */
  readonly id: string
  readonly title: string
  readonly body: (report: Report) => Html
}

/** The bounds as a person would say them. */
export const periodOf = ({ bounds }: VerifyReport): string => {
  const { from, to } = bounds
  if (from === HISTORY_FROM && to === HISTORY_TO) return "Entire history"
  if (from === HISTORY_FROM) return `Up to ${seconds(to)} UTC`
  if (to === HISTORY_TO) return `From ${seconds(from)} UTC`
  return `${seconds(from)} to ${seconds(to)} UTC`
}

/** Conditions beside the period, as name and value. */
export const conditionsOf = (filter: EventFilter): ReadonlyArray<readonly [string, string]> => {
  const { metadata, ...fields } = filter
  const names: ReadonlyArray<readonly [string, string | number | undefined]> = [
    ["id", fields.id],
    ["actor_id", fields.actorId],
    ["actor_type", fields.actorType],
    ["action", fields.action ?? (fields.actionPrefix && `${fields.actionPrefix}*`)],
    ["resource_id", fields.resourceId],
    ["resource_type", fields.resourceType],
    ["outcome", fields.outcome],
    ["from_sequence", fields.fromSequence],
    ["to_sequence", fields.toSequence],
    ["q", fields.q]
  ]
  return [
    ...names.flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as const]
    ),
    ...metadata.map(({ path, value }) => [`metadata.${path}`, value] as const)
  ]
}

/** True if nothing but the period chooses the events. */
export const isWholePopulation = ({ filter }: ReportInput): boolean =>
  conditionsOf(filter).length === 0

/** In front of whatever was computed from a record that does not hold; nothing if it does. */
export const alteredNotice = ({ input }: Report): Html =>
  input.verification.valid
    ? nothing
    : html`<p class="alarm"><strong>Computed from altered records.</strong> The chain does not hold,
        see chapter 3. What follows is what the store says, not what is known to have happened.</p>`

/** Said where not every event was gone through; nothing else. */
export const surveyedPart = ({ evidence }: Report): Html =>
  evidence.survey.isWhole
    ? nothing
    : html`<p class="note"><strong>Of the first ${count(evidence.survey.events)} events by sequence
        number only:</strong> the population is larger than a report goes through.</p>`
