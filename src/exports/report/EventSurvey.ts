/**
 * One pass over the events of a report in ascending order: all that it says of them. Keeps counts,
 * a few lines and eight bytes for each event; the rest is bounded by the limits below, whatever is
 * stored.
 */
import { createHash } from "node:crypto"
import type { AuditEvent, Outcome } from "../../domain/events/AuditEvent.ts"
import { ERASURE_ACTION } from "../../domain/events/Erasure.ts"
import { type Fields, isObject } from "../../domain/json/Json.ts"
import type { ActionMatcher } from "./ActionPattern.ts"
import { Delays, type Timeliness } from "./Delays.ts"
import { type EventLine, eventLine, FIELD_LENGTH_MAX, readEvent } from "./EventLine.ts"
import { type CutText, cut } from "./ShownText.ts"
import type { DayCount } from "./Timeline.ts"

/** Rows of the listing; ten times as many take a browser 18 s and 3.6 GiB. */
export const EVENT_ROWS_MAX = 1_000
/** Failed events that are listed, and as many errors. */
export const EXCEPTION_ROWS_MAX = 50
/** Erasures that are listed. */
export const ERASURE_ROWS_MAX = 50
/** Rows of each table of statistics; what is beyond is one row more. */
export const GROUPS_MAX = 10
/** Different values of a field that are counted, and days. */
const VALUES_MAX = 1_000_000
/** Distinct actions, groups of failures, and pairs of privileged action and actor. */
export const SURVEY_GROUPS_MAX = 1_000
/** Characters of a reason. */
const REASON_LENGTH_MAX = 160

export interface Group {
  readonly key: string
  readonly count: number
}

/** The largest groups, and how many events are in the rest. */
export interface Groups {
  readonly groups: ReadonlyArray<Group>
  readonly other: number
}

/** The newest of some events first, and how many there are. */
export interface Newest {
  readonly total: number
  readonly shown: ReadonlyArray<EventLine>
}

export interface Exceptions extends Newest {
  readonly outcome: Outcome
}

/** What the tables and lists of a report show. */
export interface Tables {
  /** Undefined if there are more than VALUES_MAX values. */
  readonly actions: Groups | undefined
  readonly outcomes: Groups | undefined
  readonly actorTypes: Groups | undefined
  readonly actors: Groups | undefined
  readonly resourceTypes: Groups | undefined
  readonly days: ReadonlyArray<DayCount> | undefined
  readonly exceptions: ReadonlyArray<Exceptions>
  readonly erasures: Newest
  /** The newest EVENT_ROWS_MAX, in ascending order. */
  readonly events: ReadonlyArray<EventLine>
}

/** An event as a sentence names it. */
export interface Mention {
  readonly sequenceNumber: number
  readonly timestamp: string
  readonly actor: CutText
}

/** Events of one outcome: how many, and the newest of them. */
export interface OutcomeCount {
  readonly count: number
  readonly latest: Mention
}

/** How often an action occurs. */
export interface ActionCount {
  readonly action: string
  readonly total: number
  readonly outcomes: Readonly<Partial<Record<Outcome, OutcomeCount>>>
}

/** Failed events with the same action, outcome and reason. */
export interface FailureGroup {
  readonly outcome: Outcome
  readonly action: CutText
  /** As the metadata says it; undefined if it says none. */
  readonly reason: CutText | undefined
  readonly count: number
  readonly latest: Mention
}

/** Privileged actions of one kind by one actor. */
export interface PrivilegedGroup {
  readonly action: CutText
  readonly actor: CutText
  readonly count: number
  /** Of them, refused or gone wrong. */
  readonly failed: number
  readonly latest: Mention
}

/** Groups by descending count, and the events that found no room in them. */
export interface Kept<A> {
  readonly groups: ReadonlyArray<A>
  readonly other: number
}

export interface Surveyed {
  /** Events that were gone through. */
  readonly events: number
  /** Of them, rows whose bytes are no event: in the hash, and in nothing else. */
  readonly unreadable: number
  /** SHA-256 of the events as NDJSON, ascending, each with its line feed. */
  readonly sha256: string
  readonly bytes: number
  /** Canonical event times of the earliest and the latest event; undefined for none. */
  readonly period: { readonly from: string; readonly to: string } | undefined
  readonly actions: Kept<ActionCount>
  readonly failures: Kept<FailureGroup>
  readonly privileged: Kept<PrivilegedGroup>
  readonly timeliness: Timeliness
}

/** Members of metadata that say why something failed, in the order in which they are tried. */
const REASONS = [
  "reason",
  "failure_reason",
  "error",
  "error_message",
  "error_code",
  "outcome_reason",
  "outcome",
  "message"
]
/** The same, in an object that such a member holds. */
const INNER_REASONS = ["message", "reason", "code", "type"]

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== ""
    ? value
    : typeof value === "number"
      ? String(value)
      : undefined

const firstText = (object: Fields, names: ReadonlyArray<string>): string | undefined => {
  for (const name of names) {
    const text = Object.hasOwn(object, name) ? textOf(object[name]) : undefined
    if (text !== undefined) return text
  }
  return undefined
}

/** Why an event failed, as its metadata says it. */
export const reasonOf = ({ metadata }: AuditEvent): string | undefined => {
  if (metadata === undefined) return undefined
  const object: Fields = metadata
  for (const name of REASONS) {
    const value = Object.hasOwn(object, name) ? object[name] : undefined
    const text = isObject(value) ? firstText(value, INNER_REASONS) : textOf(value)
    if (text !== undefined) return text
  }
  return undefined
}

const short = (text: string): CutText => cut(text, FIELD_LENGTH_MAX)

const mentionOf = ({ actor, sequence_number, timestamp }: AuditEvent): Mention => ({
  sequenceNumber: sequence_number,
  timestamp,
  actor: short(actor.id)
})

type Writable<A> = { -readonly [K in keyof A]: A[K] }

/** Groups by key, as many as fit; the others are counted. */
class GroupsByKey<A extends object> {
  readonly #groups = new Map<string, Writable<A>>()
  #other = 0

  /** The group of an event, made if it is new and there is room; undefined if there is none. */
  of(key: string, make: () => A): Writable<A> | undefined {
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    if (this.#groups.size >= SURVEY_GROUPS_MAX) {
      this.#other += 1
      return undefined
    }
    const made: Writable<A> = make()
    this.#groups.set(key, made)
    return made
  }

  kept(countOf: (group: A) => number): Kept<A> {
    const groups = [...this.#groups]
      .sort(
        ([leftKey, left], [rightKey, right]) =>
          countOf(right) - countOf(left) || (leftKey < rightKey ? -1 : 1)
      )
      .map(([, group]) => group)
    return { groups, other: this.#other }
  }
}

/** How many events have each value. */
class Counts {
  readonly #max: number
  #counts: Map<string, number> | undefined = new Map()

  constructor(max: number) {
    this.#max = max
  }

  add(key: string): void {
    const counts = this.#counts
    if (counts === undefined) return
    counts.set(key, (counts.get(key) ?? 0) + 1)
    if (counts.size > this.#max) this.#counts = undefined
  }

  /** By descending count; undefined if there were too many values. */
  get all(): ReadonlyArray<Group> | undefined {
    return (
      this.#counts
      && [...this.#counts]
        .map(([key, count]) => ({ key, count }))
        .sort((left, right) => right.count - left.count || (left.key < right.key ? -1 : 1))
    )
  }

  get largest(): Groups | undefined {
    const { all } = this
    return (
      all && {
        groups: all.slice(0, GROUPS_MAX),
        other: all.slice(GROUPS_MAX).reduce((sum, { count }) => sum + count, 0)
      }
    )
  }
}

/** The last of some events. */
class LastEvents {
  readonly #max: number
  readonly #events: Array<AuditEvent> = []
  #total = 0

  constructor(max: number) {
    this.#max = max
  }

  take(event: AuditEvent): void {
    this.#events[this.#total % this.#max] = event
    this.#total += 1
  }

  newest(options: { readonly metadata: boolean }): Newest {
    const next = this.#total % this.#max
    const ascending = [...this.#events.slice(next), ...this.#events.slice(0, next)]
    const shown = ascending.reverse().map((event) => eventLine(event, options))
    return { total: this.#total, shown }
  }
}

/** Sequence numbers in the order of the events. */
class Places {
  #numbers = new Float64Array(1_024)
  #count = 0

  add(sequence: number): void {
    if (this.#count === this.#numbers.length) {
      const larger = new Float64Array(2 * this.#count)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    this.#numbers[this.#count] = sequence
    this.#count += 1
  }

  /** At a position from 1. */
  at(position: number): number | undefined {
    return position <= this.#count ? this.#numbers[position - 1] : undefined
  }
}

const DAY_LENGTH = "2026-01-31".length

/** One pass; takes stored JSON, ascending by sequence number. */
export class EventSurvey {
  readonly #isPrivileged: ActionMatcher
  readonly #privilege = new Map<string, boolean>()
  readonly #digest = createHash("sha256")
  readonly #actions = new GroupsByKey<ActionCount>()
  readonly #failures = new GroupsByKey<FailureGroup>()
  readonly #privileged = new GroupsByKey<PrivilegedGroup>()
  readonly #delays = new Delays()
  readonly #counts: Readonly<
    Record<"action" | "actor" | "actorType" | "day" | "outcome" | "resourceType", Counts>
  >
  readonly #last = {
    events: new LastEvents(EVENT_ROWS_MAX),
    failure: new LastEvents(EXCEPTION_ROWS_MAX),
    error: new LastEvents(EXCEPTION_ROWS_MAX),
    erasures: new LastEvents(ERASURE_ROWS_MAX)
  }
  readonly #places = new Places()
  #events = 0
  #unreadable = 0
  #bytes = 0
  #from: string | undefined
  #to: string | undefined

  constructor(isPrivileged: ActionMatcher, valuesMax = VALUES_MAX) {
    this.#isPrivileged = isPrivileged
    this.#counts = {
      action: new Counts(valuesMax),
      actor: new Counts(valuesMax),
      actorType: new Counts(valuesMax),
      day: new Counts(valuesMax),
      outcome: new Counts(valuesMax),
      resourceType: new Counts(valuesMax)
    }
  }

  take(body: string): void {
    const line = Buffer.from(`${body}\n`)
    this.#digest.update(line)
    this.#bytes += line.length
    this.#events += 1
    const event = readEvent(body)
    this.#places.add(event?.sequence_number ?? 0)
    if (event === undefined) {
      this.#unreadable += 1
      return
    }
    this.#takePeriod(event)
    this.#takeTables(event)
    this.#takeAction(event)
    this.#delays.take(event)
    if (event.outcome !== "success") this.#takeFailure(event)
    if (this.#isPrivilegedAction(event.action)) this.#takePrivileged(event)
  }

  /** Sequence number of the event at a position from 1. */
  sequenceAt(position: number): number | undefined {
    return this.#places.at(position)
  }

  tables(): Tables {
    const { action, actor, actorType, day, outcome, resourceType } = this.#counts
    const { erasures, error, events, failure } = this.#last
    const days = day.all?.map(({ count, key }): DayCount => {
      const [start = "", of = ""] = key.split(" ")
      return { start: `${start}T00:00:00.000000Z`, outcome: of, count }
    })
    return {
      actions: action.largest,
      outcomes: outcome.largest,
      actorTypes: actorType.largest,
      actors: actor.largest,
      resourceTypes: resourceType.largest,
      days: days?.toSorted((left, right) => (left.start < right.start ? -1 : 1)),
      exceptions: [
        { outcome: "failure", ...failure.newest({ metadata: false }) },
        { outcome: "error", ...error.newest({ metadata: false }) }
      ],
      erasures: erasures.newest({ metadata: true }),
      events: events.newest({ metadata: false }).shown.toReversed()
    }
  }

  /** Once, at the end. */
  result(): Surveyed {
    const from = this.#from
    const to = this.#to
    return {
      events: this.#events,
      unreadable: this.#unreadable,
      sha256: this.#digest.digest("hex"),
      bytes: this.#bytes,
      period: from === undefined || to === undefined ? undefined : { from, to },
      actions: this.#actions.kept(({ total }) => total),
      failures: this.#failures.kept(({ count }) => count),
      privileged: this.#privileged.kept(({ count }) => count),
      timeliness: this.#delays.result()
    }
  }

  #takeTables(event: AuditEvent): void {
    const { action, actor, outcome, resource, timestamp } = event
    this.#counts.action.add(action)
    this.#counts.outcome.add(outcome)
    this.#counts.actorType.add(actor.type)
    this.#counts.actor.add(actor.id)
    this.#counts.resourceType.add(resource.type)
    this.#counts.day.add(`${timestamp.slice(0, DAY_LENGTH)} ${outcome}`)
    this.#last.events.take(event)
    if (outcome !== "success") this.#last[outcome].take(event)
    if (action === ERASURE_ACTION) this.#last.erasures.take(event)
  }

  #takePeriod({ timestamp }: AuditEvent): void {
    if (this.#from === undefined || timestamp < this.#from) this.#from = timestamp
    if (this.#to === undefined || timestamp > this.#to) this.#to = timestamp
  }

  #takeAction(event: AuditEvent): void {
    const { action, outcome } = event
    const group = this.#actions.of(action, () => ({ action, total: 0, outcomes: {} }))
    if (group === undefined) return
    const known = group.outcomes[outcome]?.count ?? 0
    group.total += 1
    group.outcomes = {
      ...group.outcomes,
      [outcome]: { count: known + 1, latest: mentionOf(event) }
    }
  }

  #takeFailure(event: AuditEvent): void {
    const { action, outcome } = event
    const text = reasonOf(event)
    const reason = text === undefined ? undefined : cut(text, REASON_LENGTH_MAX)
    const key = JSON.stringify([outcome, action, reason?.text ?? null])
    const group = this.#failures.of(key, () => ({
      outcome,
      action: short(action),
      reason,
      count: 0,
      latest: mentionOf(event)
    }))
    if (group === undefined) return
    group.count += 1
    group.latest = mentionOf(event)
  }

  #takePrivileged(event: AuditEvent): void {
    const { action, actor, outcome } = event
    const key = JSON.stringify([action, actor.id])
    const group = this.#privileged.of(key, () => ({
      action: short(action),
      actor: short(actor.id),
      count: 0,
      failed: 0,
      latest: mentionOf(event)
    }))
    if (group === undefined) return
    group.count += 1
    group.latest = mentionOf(event)
    if (outcome !== "success") group.failed += 1
  }

  /** Asked once for each of the first actions: a pattern costs more than a look-up. */
  #isPrivilegedAction(action: string): boolean {
    const known = this.#privilege.get(action)
    if (known !== undefined) return known
    const isPrivileged = this.#isPrivileged(action)
    if (this.#privilege.size < SURVEY_GROUPS_MAX) this.#privilege.set(action, isPrivileged)
    return isPrivileged
  }
}
