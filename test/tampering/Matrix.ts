/**
 * Runs cases of the matrix together, each on a tenant of its own: tampers while the service runs
 * and verifies; starts everything anew and verifies before anything else is written; writes an event
 * and an execution more, starts everything anew and verifies again. A tenant that nothing was done
 * to has to be valid all the while.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type TopicKind, topicKinds } from "../../src/domain/records/Topics.ts"
import type { TenantReport } from "../../src/verify/Verifier.ts"
import { withView } from "../integration/support/Evidence.ts"
import { asService } from "../support/Authenticated.ts"
import { produceRaw, type RawRecord, readAll } from "../support/Log.ts"
import { tamper } from "../support/Store.ts"
import type { Case, Outcome, Target } from "./Cases.ts"
import { packComplaint } from "./Packs.ts"
import {
  answersOf,
  columnsOf,
  EVENTS,
  onceReadable,
  populate,
  running,
  type Subject,
  stopMerges,
  verifyTenant,
  writeMore
} from "./World.ts"

/** One that nothing is done to; the last rows of the topics are its own. */
const CONTROL = "control"
/** Tenants that are verified at the same time. */
const CONCURRENCY = 4
const ownOf = (index: number): string => `acme-${index}`
const otherOf = (index: number): string => `globex-${index}`

const nameOf = ({ on, what }: Case): string => `${on}: ${what}`

type Answers = Effect.Success<ReturnType<typeof answersOf>>

interface Bench {
  readonly target: Target
  readonly case_: Case
  readonly before: Answers
}

const NOTHING: Effect.Effect<Answers> = Effect.succeed({ events: [], isCounted: true, facts: [] })

/** True if the answers are compared with those of before. */
const isCompared = ({ isKept = false, restarted, running: now, started }: Case): boolean =>
  isKept || [now, started, restarted].some((one) => one !== undefined && "harmless" in one)

const breaksOf = ({ breaks, traces }: TenantReport) => [
  ...breaks.map(({ reason, sequence_number: at }) => ({ chain: "events", at, reason })),
  ...traces!.breaks.map(({ reason, sequence_number: at }) => ({ chain: "traces", at, reason }))
]

/** What is wrong with a report; undefined if it says what it has to. */
const complaint = (report: TenantReport, expected: Outcome): string | undefined => {
  const breaks = breaksOf(report)
  const said = JSON.stringify(breaks)
  if ("unseen" in expected) return report.valid ? undefined : `it is seen: ${said}`
  if ("harmless" in expected) {
    return report.valid && report.status === "valid" && report.assurance === "signed"
      ? undefined
      : `valid was expected: ${report.status} ${report.assurance} ${said}`
  }
  const statuses = [report.status, report.traces!.status]
  const isBroken = !report.valid && statuses.includes("broken")
  if (!isBroken) return `broken was expected: ${report.status}`
  const missed = expected.found.filter(
    ({ at, chain, reason }) =>
      !breaks.some((one) => one.at === at && one.chain === chain && one.reason === reason)
  )
  if (missed.length > 0) return `${JSON.stringify(missed)} was not found, only ${said}`
  // A chain that nothing was done to stays whole.
  const touched = new Set(expected.found.map(({ chain }) => chain))
  const beside = breaks.filter(({ chain }) => !touched.has(chain as "events" | "traces"))
  return beside.length === 0 ? undefined : `${JSON.stringify(beside)} beside ${said}`
}

const check = Effect.fnUntraced(function* (
  { before, case_, target }: Bench,
  phase: string,
  expected: Outcome
) {
  const { other, own } = target
  const complaints: Array<string> = []
  const note = (text: string | undefined) => {
    if (text !== undefined) complaints.push(`${nameOf(case_)}, ${phase}: ${text}`)
  }
  note(complaint(yield* verifyTenant(own.tenantId), expected))
  if ("harmless" in expected || case_.isKept === true) {
    const now = yield* answersOf(own.tenantId)
    if (JSON.stringify(now) !== JSON.stringify(before)) {
      note(`the answers differ: ${JSON.stringify(now)}`.slice(0, 500))
    }
  }
  if (case_.isPacked === true) note(yield* onceReadable(packComplaint(own.tenantId)))
  if (case_.other !== undefined) {
    const ofOther = complaint(yield* verifyTenant(other.tenantId), case_.other)
    note(ofOther && `the other tenant: ${ofOther}`)
  }
  return complaints
})

const checkAll = Effect.fnUntraced(function* (
  benches: ReadonlyArray<Bench>,
  phase: string,
  expected: (case_: Case) => Outcome
) {
  const complaints = yield* Effect.forEach(
    benches,
    (bench) =>
      check(bench, phase, expected(bench.case_)).pipe(
        Effect.catch((error) =>
          Effect.succeed([`${nameOf(bench.case_)}, ${phase}: ${String(error.cause)}`])
        )
      ),
    { concurrency: CONCURRENCY }
  )
  const control = yield* verifyTenant(CONTROL)
  const ofControl = control.valid
    ? []
    : [`${CONTROL}, ${phase}: ${JSON.stringify(breaksOf(control))}`]
  return [...complaints.flat(), ...ofControl]
})

const recordsOf = Effect.fnUntraced(function* () {
  const all = new Map<TopicKind, ReadonlyArray<RawRecord>>()
  for (const topic of topicKinds) {
    all.set(
      topic,
      (yield* readAll(topic)).map(({ headers, key, value }) => ({
        key,
        value,
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, text]) => [name, text.toString()])
        )
      }))
    )
  }
  return all
})

const produceAll = Effect.fnUntraced(function* (prefix: string, benches: ReadonlyArray<Bench>) {
  const made = [
    ...benches.flatMap(({ case_, target }) => case_.records?.(target) ?? []),
    // The row of a record that is the last one would be made again by the next start.
    ...(["events", "traces"] as const).map((topic) => [topic, { key: null, value: "end" }] as const)
  ]
  for (const [topic, records] of Map.groupBy(made, ([kind]) => kind)) {
    yield* produceRaw(
      prefix,
      topic,
      records.map(([, record]) => record)
    )
  }
})

const ALTER = /^(ALTER TABLE \S+) (.*)$/s

/** Copies of rows first, then one statement a table for all that is changed or deleted in it. */
const together = (statements: ReadonlyArray<string>): ReadonlyArray<string> => {
  const parts = statements.flatMap((one) => {
    const [, table, change] = ALTER.exec(one) ?? []
    return table === undefined || change === undefined ? [] : [{ table, change }]
  })
  return [
    ...statements.filter((one) => !ALTER.test(one)),
    ...[...Map.groupBy(parts, ({ table }) => table)].map(
      ([table, changes]) => `${table} ${changes.map(({ change }) => change).join(", ")}`
    )
  ]
}

/** Populate, tamper, and check through three lives of the service. */
export const runMatrix = (cases: ReadonlyArray<Case>) =>
  withView((name) => {
    const tenants = [
      ...cases.flatMap((one, index) =>
        one.other === undefined ? [ownOf(index)] : [ownOf(index), otherOf(index)]
      ),
      CONTROL
    ]
    return asService(
      { prefix: name },
      Effect.gen(function* () {
        const complaints: Array<string> = []
        const firstLife = Effect.gen(function* () {
          const service = yield* running
          const subjects = yield* populate(
            tenants,
            (tenantId) =>
              tenantId === CONTROL
              || cases.some((one, index) => one.isErased === true && ownOf(index) === tenantId)
          )
          const columns = yield* columnsOf(name)
          const subject = (tenantId: string): Subject => subjects.get(tenantId)!
          const before = yield* verifyTenant(CONTROL).pipe(Effect.provideContext(service))
          assert.isTrue(before.valid, JSON.stringify(breaksOf(before)))
          const records = yield* recordsOf()
          const benches = yield* Effect.forEach(
            cases,
            (case_, index) =>
              Effect.map(
                isCompared(case_) ? answersOf(ownOf(index)) : NOTHING,
                (before): Bench => ({
                  case_,
                  before,
                  target: {
                    database: name,
                    columns,
                    own: subject(ownOf(index)),
                    other: subjects.get(otherOf(index)) ?? subject(CONTROL),
                    records
                  }
                })
              ),
            { concurrency: CONCURRENCY }
          )
          yield* tamper(...stopMerges(name, ["events", "facts", "span_ids", "checkpoints"]))
          yield* produceAll(name, benches)
          // Everything that was produced is projected once the control tenant is verified.
          yield* verifyTenant(CONTROL).pipe(Effect.provideContext(service))
          yield* tamper(
            ...together(benches.flatMap(({ case_, target }) => case_.statements?.(target) ?? []))
          )
          complaints.push(
            ...(yield* checkAll(benches, "running", ({ running: now }) => now).pipe(
              Effect.provideContext(service)
            ))
          )
          return benches
        }).pipe(Effect.scoped)
        const benches = yield* firstLife
        yield* Effect.scoped(
          Effect.gen(function* () {
            const service = yield* running
            const expected = ({ running: now, started = now }: Case) => started
            complaints.push(
              ...(yield* checkAll(benches, "started", expected).pipe(
                Effect.provideContext(service)
              ))
            )
            yield* writeMore(tenants, "x8")
          })
        )
        yield* Effect.scoped(
          Effect.gen(function* () {
            const service = yield* running
            const expected = (one: Case) => one.restarted ?? one.running
            complaints.push(
              ...(yield* checkAll(benches, "restarted", expected).pipe(
                Effect.provideContext(service)
              ))
            )
            yield* writeMore([CONTROL], "x9")
            const after = yield* verifyTenant(CONTROL).pipe(Effect.provideContext(service))
            assert.deepStrictEqual([after.valid, after.events_checked], [true, EVENTS + 2])
          })
        )
        assert.deepStrictEqual(complaints, [])
      })
    )
  })
