/**
 * One pass over the events of a report in ascending order: what has to be read from each of them
 * and can't be asked of the store. Keeps counts and a few lines, never the events; what it keeps is
 * bounded by the limits below, whatever is stored.
 */
import { createHash } from "node:crypto"
import type { AuditEvent, Outcome } from "../../domain/events/AuditEvent.ts"
import { type Fields, isObject } from "../../domain/json/Json.ts"
import type { ActionMatcher } from "./ActionPattern.ts"
import { Delays, type Timeliness } from "./Delays.ts"
import { FIELD_LENGTH_MAX, readEvent } from "./EventLine.ts"
import { type CutText, cut } from "./ShownText.ts"

/** Events that are gone through: some ten seconds. */
export const SURVEY_EVENTS_MAX = 2_000_000
/** Distinct actions, groups of failures, and pairs of privileged action and actor. */
export const SURVEY_GROUPS_MAX = 1_000
/** Characters of a reason. */
const REASON_LENGTH_MAX = 160

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
  /** False if there are more than SURVEY_EVENTS_MAX. */
  readonly isWhole: boolean
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

/** One pass; takes stored JSON, ascending by sequence number. */
export class EventSurvey {
  readonly #isPrivileged: ActionMatcher
  readonly #privilege = new Map<string, boolean>()
  readonly #digest = createHash("sha256")
  readonly #actions = new GroupsByKey<ActionCount>()
  readonly #failures = new GroupsByKey<FailureGroup>()
  readonly #privileged = new GroupsByKey<PrivilegedGroup>()
  readonly #delays = new Delays()
  #events = 0
  #unreadable = 0
  #bytes = 0
  #from: string | undefined
  #to: string | undefined

  constructor(isPrivileged: ActionMatcher) {
    this.#isPrivileged = isPrivileged
  }

  take(body: string): void {
    const line = Buffer.from(`${body}\n`)
    this.#digest.update(line)
    this.#bytes += line.length
    this.#events += 1
    const event = readEvent(body)
    if (event === undefined) {
      this.#unreadable += 1
      return
    }
    this.#takePeriod(event)
    this.#takeAction(event)
    this.#delays.take(event)
    if (event.outcome !== "success") this.#takeFailure(event)
    if (this.#isPrivilegedAction(event.action)) this.#takePrivileged(event)
  }

  /** Once, at the end; `isWhole` says whether every event was taken. */
  result(isWhole: boolean): Surveyed {
    const from = this.#from
    const to = this.#to
    return {
      events: this.#events,
      unreadable: this.#unreadable,
      isWhole,
      sha256: this.#digest.digest("hex"),
      bytes: this.#bytes,
      period: from === undefined || to === undefined ? undefined : { from, to },
      actions: this.#actions.kept(({ total }) => total),
      failures: this.#failures.kept(({ count }) => count),
      privileged: this.#privileged.kept(({ count }) => count),
      timeliness: this.#delays.result()
    }
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
