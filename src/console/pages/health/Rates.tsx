/** Events and requests a second over the last minutes, as lines, and as a table. */
import { Card, Scrolls } from "../../parts/Basics.tsx"
import { shortTime } from "../../parts/Format.ts"
import { zone } from "../../state/Preferences.ts"
import type { Reading } from "../../state/Prometheus.ts"
import { COMMITTED_EVENTS, type RatePoint, ratesOf } from "./HealthRules.ts"

/** Of a picture, in units of its own. */
const WIDTH = 300
const HEIGHT = 60

const counters = [
  { title: "Events committed", metric: COMMITTED_EVENTS },
  { title: "Trace facts committed", metric: "alk_trace_facts_committed_total" },
  { title: "Requests answered", metric: "alk_http_requests_total" }
] as const

const rateText = (rate: number | undefined): string =>
  rate === undefined ? "–" : rate >= 100 ? String(Math.round(rate)) : rate.toFixed(1)

/** Pieces of the line: where a counter began anew, nothing is known. */
const piecesOf = (points: ReadonlyArray<RatePoint>): ReadonlyArray<string> => {
  const [first, last] = [points[0]!.at, points.at(-1)!.at]
  const most = Math.max(1, ...points.map(({ rate = 0 }) => rate))
  const pieces: Array<Array<string>> = [[]]
  for (const { at, rate } of points) {
    if (rate === undefined) {
      pieces.push([])
      continue
    }
    const x = last === first ? WIDTH : ((at - first) / (last - first)) * WIDTH
    const y = HEIGHT - 2 - (rate / most) * (HEIGHT - 6)
    pieces.at(-1)!.push(`${x.toFixed(1)},${y.toFixed(1)}`)
  }
  return pieces.filter(({ length }) => length > 0).map((piece) => piece.join(" "))
}

const Line = ({
  points,
  title
}: {
  readonly title: string
  readonly points: ReadonlyArray<RatePoint>
}) => (
  <figure class="rate">
    <figcaption>
      {title} <strong class="number">{rateText(points.at(-1)?.rate)}</strong>
      <span class="faint"> a second</span>
    </figcaption>
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {points.length < 2
        ? undefined
        : piecesOf(points).map((piece) => <polyline key={piece} points={piece} />)}
    </svg>
  </figure>
)

export const Rates = ({ readings }: { readonly readings: ReadonlyArray<Reading> }) => {
  const lines = counters.map(({ metric, title }) => ({ title, points: ratesOf(readings, metric) }))
  const times = readings.slice(1).map(({ at }) => at)
  return (
    <Card title="Rates of the last minutes">
      <div class="rates">
        {lines.map(({ points, title }) => (
          <Line key={title} title={title} points={points} />
        ))}
      </div>
      <details>
        <summary>As a table</summary>
        <Scrolls label="Rates, as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">Until ({zone.value})</th>
                {counters.map(({ title }) => (
                  <th key={title} scope="col" class="number">
                    {title}/s
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times
                .map((at, place) => (
                  <tr key={at}>
                    <td class="number">{shortTime(new Date(at).toISOString(), zone.value)}</td>
                    {lines.map(({ points, title }) => (
                      <td key={title} class="number">
                        {rateText(points[place]?.rate)}
                      </td>
                    ))}
                  </tr>
                ))
                .toReversed()}
            </tbody>
          </table>
        </Scrolls>
      </details>
    </Card>
  )
}
