/** What one pass over the events finds, and that it keeps no more of many than of few. */
import { createHash } from "node:crypto"
import { assert, describe, it } from "vitest"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { formatMicros, microsOf } from "../../../src/domain/Timestamp.ts"
import { matcherOf } from "../../../src/exports/report/ActionPattern.ts"
import { eventLines } from "../../../src/exports/report/EventLine.ts"
import {
  EVENT_ROWS_MAX,
  EventSurvey,
  EXCEPTION_ROWS_MAX,
  reasonOf,
  SURVEY_GROUPS_MAX
} from "../../../src/exports/report/EventSurvey.ts"
import { groupTable } from "../../../src/exports/report/Tables.ts"
import { plausible } from "./support/SyntheticStore.ts"

const surveyOf = (events: ReadonlyArray<AuditEvent>, privileged: ReadonlyArray<string> = []) => {
  const survey = new EventSurvey(matcherOf(privileged))
  for (const event of events) survey.take(JSON.stringify(event))
  return survey.result()
}

const SECOND = 1_000_000
const DAY = 86_400 * SECOND

/** Events recorded these microseconds after their event time. */
const delayed = (delays: ReadonlyArray<number>): ReadonlyArray<AuditEvent> =>
  delays.map((delay, index) => {
    const event = plausible(index + 1)
    return { ...event, created_at: formatMicros(microsOf(event.timestamp) + delay) }
  })

describe("a survey", () => {
  it("hashes the events as NDJSON", () => {
    const events = [1, 2, 3].map(plausible)
    const text = events.map((event) => `${JSON.stringify(event)}\n`).join("")
    const { bytes, sha256 } = surveyOf(events)
    assert.strictEqual(sha256, createHash("sha256").update(text).digest("hex"))
    assert.strictEqual(bytes, Buffer.byteLength(text))
  })

  it("finds the earliest and the latest event time, in whatever order they were recorded", () => {
    const times = ["2026-03-01", "2025-12-31", "2027-01-01", "2026-05-05"]
    const events = times.map((day, index) => ({
      ...plausible(index + 1),
      timestamp: `${day}T00:00:00.000000Z`
    }))
    const { period } = surveyOf(events)
    assert.deepStrictEqual(period, {
      from: "2025-12-31T00:00:00.000000Z",
      to: "2027-01-01T00:00:00.000000Z"
    })
    assert.isUndefined(surveyOf([]).period)
  })

  it("counts each action by outcome, with the newest event of each", () => {
    const outcomes = ["success", "error", "success", "error"] as const
    const events = outcomes.map((outcome, index) => ({
      ...plausible(index + 1),
      action: "user.login",
      outcome
    }))
    const [group] = surveyOf(events).actions.groups
    const { error, failure, success } = group!.outcomes
    assert.strictEqual(group!.total, 4)
    assert.strictEqual(success!.count, 2)
    assert.strictEqual(success!.latest.sequenceNumber, 3)
    assert.strictEqual(error!.latest.sequenceNumber, 4)
    assert.isUndefined(failure)
  })

  it("groups failures by action, outcome and reason", () => {
    const failed = (sequence: number, reason: string | undefined) => ({
      ...plausible(sequence),
      action: "payment.approve",
      outcome: "failure" as const,
      metadata: reason === undefined ? {} : { reason }
    })
    const events = [failed(1, "limit"), failed(2, "limit"), failed(3, undefined), failed(4, "role")]
    const groups = surveyOf(events).failures.groups.map(({ count, latest, reason }) => [
      reason?.text,
      count,
      latest.sequenceNumber
    ])
    assert.deepStrictEqual(groups, [
      ["limit", 2, 2],
      ["role", 1, 4],
      [undefined, 1, 3]
    ])
  })

  it("takes the reason where the metadata has it", () => {
    const of = (metadata: AuditEvent["metadata"]) =>
      reasonOf({ ...plausible(1), metadata: metadata! })
    assert.strictEqual(of({ error: "timeout", reason: "denied" }), "denied")
    assert.strictEqual(of({ error: { code: 7, message: "refused" } }), "refused")
    assert.strictEqual(of({ error: { code: 503 } }), "503")
    assert.strictEqual(of({ outcome: "blocked" }), "blocked")
    assert.isUndefined(of({ reason: "", error: ["x"], other: "y" }))
    const { metadata: _metadata, ...bare } = plausible(1)
    assert.isUndefined(reasonOf(bare))
  })

  it("counts privileged actions by actor", () => {
    const of = (sequence: number, action: string, id: string, outcome: AuditEvent["outcome"]) => ({
      ...plausible(sequence),
      action,
      outcome,
      actor: { id, type: "human" as const }
    })
    const events = [
      of(1, "role.grant", "ann", "success"),
      of(2, "role.grant", "ann", "failure"),
      of(3, "role.grant", "ben", "success"),
      of(4, "document.read", "ann", "success")
    ]
    const { groups } = surveyOf(events, ["role.**"]).privileged
    const found = groups.map(({ actor, count, failed }) => [actor.text, count, failed])
    assert.deepStrictEqual(found, [
      ["ann", 2, 1],
      ["ben", 1, 0]
    ])
  })

  it("gives median, 95th percentile, maximum and buckets of the delay by nearest rank", () => {
    const delays = Array.from({ length: 100 }, (_, index) => (index + 1) * SECOND)
    const { buckets, late, lateTotal, maximum, median, p95 } = surveyOf(delayed(delays)).timeliness
    assert.deepStrictEqual([median, p95, maximum], [50 * SECOND, 95 * SECOND, 100 * SECOND])
    assert.deepStrictEqual(
      buckets.map(({ count }) => count),
      [1, 9, 50, 40, 0, 0, 0, 0, 0]
    )
    assert.strictEqual(lateTotal, 40)
    const listed = late.map(({ delay }) => delay / SECOND)
    assert.deepStrictEqual(
      listed,
      Array.from({ length: 20 }, (_, index) => 100 - index)
    )
    assert.strictEqual(late[0]!.event.sequenceNumber, 100)
  })

  it("names what was recorded long after, and what was dated ahead", () => {
    const { ahead, backdated, maximum } = surveyOf(
      delayed([0, 2 * DAY, SECOND, 3 * DAY, -10 * 60 * SECOND])
    ).timeliness
    assert.deepStrictEqual(backdated, { count: 2, first: 2, last: 4 })
    assert.deepStrictEqual(ahead, { count: 1, first: 5, last: 5 })
    assert.strictEqual(maximum, 3 * DAY)
    const none = surveyOf([]).timeliness
    assert.deepStrictEqual([none.median, none.backdated, none.late], [0, undefined, []])
  })

  it("keeps a limited number of groups and counts the events beyond", () => {
    const events = Array.from({ length: SURVEY_GROUPS_MAX + 50 }, (_, index) => ({
      ...plausible(index + 1),
      action: `a.${index}`
    }))
    const { groups, other } = surveyOf(events).actions
    assert.deepStrictEqual([groups.length, other], [SURVEY_GROUPS_MAX, 50])
  })
})

describe("rows that hold no event", () => {
  const good = JSON.stringify(plausible(1))
  const changed = (change: object) => JSON.stringify({ ...plausible(2), ...change })
  const garbage = [
    "",
    "{",
    "null",
    "[]",
    "{}",
    changed({ timestamp: "yesterday" }),
    changed({ outcome: "maybe" }),
    changed({ actor: { id: 7, type: "human" } }),
    changed({ resource: null }),
    changed({ metadata: [1] }),
    changed({ sequence_number: "2" })
  ]

  it("are counted and hashed, and end no report", () => {
    const survey = new EventSurvey(matcherOf(["**"]))
    for (const body of [...garbage, good]) survey.take(body)
    const { bytes, events, timeliness, unreadable } = survey.result()
    assert.deepStrictEqual([events, unreadable], [garbage.length + 1, garbage.length])
    assert.strictEqual(bytes, Buffer.byteLength([...garbage, good, ""].join("\n")))
    assert.strictEqual(timeliness.buckets[0]!.count, 1)
    const lines = eventLines([...garbage, good], { metadata: true })
    assert.deepStrictEqual(
      lines.map(({ sequenceNumber }) => sequenceNumber),
      [1]
    )
  })
})

describe("the tables of a report", () => {
  it("count every event, list the newest, and are none of too many values", () => {
    const survey = new EventSurvey(matcherOf([]), 3)
    const events = Array.from({ length: 2_000 }, (_, at) => plausible(at + 1))
    for (const event of events) survey.take(JSON.stringify(event))
    const { actions, days, events: listed, exceptions, outcomes } = survey.tables()
    assert.deepStrictEqual([actions, days], [undefined, undefined])
    assert.match(groupTable("Events by action", "Action", actions, 2_000).markup, /more different/)
    const of = (outcome: string) => events.filter((event) => event.outcome === outcome)
    assert.deepStrictEqual(
      outcomes?.groups.map(({ count, key }) => [key, count]),
      ["success", "failure", "error"].map((outcome) => [outcome, of(outcome).length])
    )
    assert.deepStrictEqual(
      listed.map(({ sequenceNumber }) => sequenceNumber),
      events.slice(-EVENT_ROWS_MAX).map((event) => event.sequence_number)
    )
    for (const { outcome, shown, total } of exceptions) {
      assert.strictEqual(total, of(outcome).length)
      assert.deepStrictEqual(
        shown.map(({ sequenceNumber }) => sequenceNumber),
        of(outcome)
          .reverse()
          .slice(0, EXCEPTION_ROWS_MAX)
          .map((event) => event.sequence_number)
      )
    }
    assert.deepStrictEqual(
      [1, 1_500, 2_000, 2_001].map((position) => survey.sequenceAt(position)),
      [1, 1_500, 2_000, undefined]
    )
  })
})
