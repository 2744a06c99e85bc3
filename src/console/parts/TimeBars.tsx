/** Events by time and outcome as bars, and as a table. */
import { zone } from "../state/Preferences.ts"
import { Scrolls } from "./Basics.tsx"
import { count, shortTime } from "./Format.ts"
import type { Bin, Unit } from "./TimeBins.ts"

/** Of a picture of bins, in units of its own. */
export const WIDTH = 1_000
export const HEIGHT = 80
const kinds = ["success", "failure", "error"] as const

/** When a bar begins: days in UTC, as they are counted. */
export const binLabel = (at: number, unit: Unit): string =>
  shortTime(new Date(at).toISOString(), unit === "day" ? "UTC" : zone.value).slice(
    0,
    unit === "day" ? -13 : -7
  )

/** The bars of one bin, by outcome. */
export const OutcomeBar = ({
  at,
  bin,
  most,
  of
}: {
  bin: Bin
  at: number
  of: number
  most: number
}) => {
  const width = WIDTH / of
  let top = HEIGHT
  return (
    <>
      {kinds.map((kind) => {
        const value = bin.counts[kind] ?? 0
        // What is there is seen, however little it is.
        const height = value === 0 ? 0 : Math.max(2, (value / most) * (HEIGHT - 6))
        top -= height
        return (
          <rect
            key={kind}
            class={`bar ${kind}`}
            x={at * width + width * 0.06}
            y={top}
            width={width * 0.88}
            height={height}
          />
        )
      })}
    </>
  )
}

/** The numbers, for who can't see bars. */
export const BinTable = ({ bins, unit }: { bins: ReadonlyArray<Bin>; unit: Unit }) => (
  <details>
    <summary>As a table</summary>
    <Scrolls label="Events by time, as a table">
      <table>
        <thead>
          <tr>
            <th scope="col">From ({unit === "day" ? "UTC" : zone.value})</th>
            {kinds.map((kind) => (
              <th key={kind} scope="col" class="number">
                {kind}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {bins
            .filter(({ total }) => total > 0)
            .map((bin) => (
              <tr key={bin.from}>
                <td class="number">{binLabel(bin.from, unit)}</td>
                {kinds.map((kind) => (
                  <td key={kind} class="number">
                    {count(bin.counts[kind] ?? 0)}
                  </td>
                ))}
              </tr>
            ))}
        </tbody>
      </table>
    </Scrolls>
  </details>
)
