/** How long things took in the last minute, out of the histograms of the service. */
import { Ago, Card, Scrolls, State } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"
import type { Reading } from "../../state/Prometheus.ts"
import { type Latency, latenciesOf, readingBefore, secondsText } from "./HealthRules.ts"

/** What is shown is about so long before the newest reading. */
const INTERVAL_MS = 60_000

const words = { good: "fine", warn: "slow", bad: "very slow", plain: "nothing measured" } as const

const Row = ({
  isDoubted,
  latency
}: {
  readonly latency: Latency
  readonly isDoubted: boolean
}) => {
  const { name, quantiles } = latency
  const isPast = isDoubted && latency.tone === "good"
  const tone = isPast ? "plain" : latency.tone
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        <State tone={tone}>{isPast ? "not known now" : words[tone]}</State>
      </td>
      {[0, 1, 2].map((at) => (
        <td key={at} class="number">
          {secondsText(quantiles[at])}
        </td>
      ))}
      <td class="number">{count(latency.count)}</td>
    </tr>
  )
}

export const Latencies = ({
  isDoubted,
  readings
}: {
  readonly readings: ReadonlyArray<Reading>
  readonly isDoubted: boolean
}) => {
  const [before, after] = [readingBefore(readings, INTERVAL_MS), readings.at(-1)]
  return (
    <Card title="Times of the last minute">
      {before === undefined || after === undefined ? (
        <p class="faint">Known once there are two readings.</p>
      ) : (
        <>
          <Scrolls label="Times of the last minute, as a table">
            <table class="latencies">
              <thead>
                <tr>
                  <th scope="col">What</th>
                  <th scope="col">State</th>
                  <th scope="col" class="number">
                    half within
                  </th>
                  <th scope="col" class="number">
                    95 % within
                  </th>
                  <th scope="col" class="number">
                    99 % within
                  </th>
                  <th scope="col" class="number">
                    measured
                  </th>
                </tr>
              </thead>
              <tbody>
                {latenciesOf(before, after).map((latency) => (
                  <Row key={latency.name} latency={latency} isDoubted={isDoubted} />
                ))}
              </tbody>
            </table>
          </Scrolls>
          <p class="faint">
            Measured since <Ago at={before.at} />, as exactly as the buckets of the histograms
            allow.
          </p>
        </>
      )}
    </Card>
  )
}
