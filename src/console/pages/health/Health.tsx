/**
 * How the service is: its parts, what waits, how fast it is, what it refuses, and the machine under
 * it. As of the last reading; once readings fail, nothing is called fine any more.
 */
import { useEffect, useMemo } from "preact/hooks"
import { Ago, Card, Failure, Loading, State } from "../../parts/Basics.tsx"
import { useNow } from "../../parts/Now.ts"
import { HealthReadings, READ_EVERY_MS } from "../../state/HealthReadings.ts"
import type { Reading } from "../../state/Prometheus.ts"
import { Codes } from "./Codes.tsx"
import { doubted, type Fact, factsOf } from "./HealthRules.ts"
import { Latencies } from "./Latencies.tsx"
import { Parts } from "./Parts.tsx"
import { Rates } from "./Rates.tsx"
import { Versions } from "./Versions.tsx"

/** Three readings that did not come: a tab that was hidden has them too. */
const OLD_MS = 3 * READ_EVERY_MS + 1_000

const Facts = ({
  facts,
  title
}: {
  readonly title: string
  readonly facts: ReadonlyArray<Fact>
}) => (
  <Card title={title}>
    <dl class="health-facts">
      {facts.map(({ name, note, tone, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <State tone={tone}>{value}</State>
            {note === undefined ? undefined : <span class="faint note">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  </Card>
)

/** As of when, and whether that still holds. */
const AsOf = ({
  health,
  newest
}: {
  readonly health: HealthReadings
  readonly newest: Reading
}) => {
  const failure = health.failure.value
  const isOld = Date.now() - newest.at > OLD_MS
  return failure === undefined && !isOld ? (
    <p class="faint">
      Read <Ago at={newest.at} />, again every {READ_EVERY_MS / 1_000} s. What is counted is counted
      since the start of each process.
    </p>
  ) : (
    <p class="stale" role="status">
      <State tone="warn">not up to date</State> as of <Ago at={newest.at} />
      {failure === undefined ? "" : `: ${failure.message}`}. What was fine then may not be now.{" "}
      <button type="button" class="quiet" onClick={() => void health.read()}>
        Try again
      </button>
    </p>
  )
}

const Shown = ({
  health,
  readings
}: {
  readonly health: HealthReadings
  readonly readings: ReadonlyArray<Reading>
}) => {
  const newest = readings.at(-1)!
  const isDoubted = health.failure.value !== undefined || Date.now() - newest.at > OLD_MS
  const facts = factsOf(readings, Date.now())
  const shown = (some: ReadonlyArray<Fact>) => (isDoubted ? some.map(doubted) : some)
  return (
    <>
      <AsOf health={health} newest={newest} />
      <div class="health-cards">
        <Parts reading={health.readiness.value} isDoubted={isDoubted} />
        <Facts title="Integrity" facts={shown(facts.integrity)} />
        <Facts title="Work" facts={shown(facts.work)} />
        <Facts title="Machine" facts={shown(facts.machine)} />
      </div>
      <Rates readings={readings} />
      <Latencies readings={readings} isDoubted={isDoubted} />
      <Codes readings={readings} />
      <Versions metrics={newest.metrics} />
    </>
  )
}

export const Health = () => {
  const health = useMemo(() => new HealthReadings(), [])
  useEffect(() => () => health.end(), [health])
  useNow(READ_EVERY_MS)
  const readings = health.readings.value
  const failure = health.failure.value
  return (
    <>
      <h1>Health</h1>
      {readings.length > 0 ? (
        <Shown health={health} readings={readings} />
      ) : failure !== undefined ? (
        <Failure failure={failure} retry={() => void health.read()} />
      ) : (
        <Loading what="the metrics" />
      )}
    </>
  )
}
