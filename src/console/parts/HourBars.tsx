/** The events of the last day by hour. */
import type { EventStats } from "../../client/gen/Api.d.ts"
import { count } from "./Format.ts"
import { BinTable, binLabel, HEIGHT, OutcomeBar, WIDTH } from "./TimeBars.tsx"
import { binsOf } from "./TimeBins.ts"

const DAY_MS = 86_400_000

export const HourBars = ({ buckets }: { readonly buckets: NonNullable<EventStats["buckets"]> }) => {
  const now = Date.now()
  const bins = binsOf(buckets, "hour", { from: now - DAY_MS, to: now })
  const most = Math.max(1, ...bins.map(({ total }) => total))
  return (
    <>
      <svg
        class="bars histogram"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {bins.map((bin, at) => (
          <g key={bin.from}>
            <title>
              {binLabel(bin.from, "hour")}: {count(bin.total)}
            </title>
            <OutcomeBar bin={bin} at={at} of={bins.length} most={most} />
          </g>
        ))}
      </svg>
      <BinTable bins={bins} unit="hour" />
    </>
  )
}
