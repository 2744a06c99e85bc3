/** How far a check has come: the part that is done, its rate, and the time that is left. */
import { Ago } from "../../parts/Basics.tsx"
import { count, counted, duration } from "../../parts/Format.ts"
import { useNow } from "../../parts/Now.ts"
import { rateOf, secondsLeft } from "../../state/Pace.ts"
import type { VerificationState } from "../../state/Verification.ts"
import { recordsOf } from "./ChainWords.ts"

type Running = Extract<VerificationState, { readonly is: "running" }>

/** A check that says nothing for so long may be stuck; it says something about every second. */
const QUIET_MS = 5_000

/** Whole seconds: more would not be true. */
const leftText = (seconds: number): string =>
  seconds < 60 ? `${Math.max(1, Math.ceil(seconds))} s` : duration(seconds * 1_000_000)

const Pace = ({ progress, samples }: Pick<Running, "progress" | "samples">) => {
  const rate = rateOf(samples)
  if (progress === undefined || rate === undefined) return null
  const left = secondsLeft(progress.of - progress.up_to_sequence, rate)
  return (
    <>
      , {count(Math.round(rate))} a second
      {left === undefined ? "" : `, about ${leftText(left)} left`}
    </>
  )
}

export const VerifyProgress = ({ state }: { readonly state: Running }) => {
  const { chain, heardAt, progress, samples } = state
  const now = useNow(1_000)
  const done = progress?.events_checked
  const label = `Verifying ${recordsOf(chain)}`
  return (
    <div class="verify-progress">
      {progress === undefined || done === undefined ? (
        <progress aria-label={label} />
      ) : (
        <progress
          aria-label={label}
          value={done}
          max={Math.max(1, done + progress.of - progress.up_to_sequence)}
        />
      )}
      <p role="status">
        {progress === undefined ? (
          <>{label} …</>
        ) : (
          <>
            {label}: {counted(progress.events_checked, "record")} recomputed, up to #
            {count(progress.up_to_sequence)} of #{count(progress.of)}
            <Pace progress={progress} samples={samples} />
            {progress.breaks_total === 0 ? undefined : (
              <strong class="state bad"> {counted(progress.breaks_total, "break")} so far</strong>
            )}
          </>
        )}
        {now - heardAt < QUIET_MS ? undefined : (
          <span class="faint">
            {" "}
            The service last said something <Ago at={heardAt} />.
          </span>
        )}
      </p>
    </div>
  )
}
