/**
 * Verifies what the address says, when it is asked to: how far it is, and what was found. A check
 * that was cut or cancelled says so, and leaves no verdict of an earlier one behind.
 */
import { useEffect, useMemo } from "preact/hooks"
import { Card, Failure, State } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { Verification, type VerificationState } from "../../state/Verification.ts"
import {
  checksOf,
  parametersOf,
  type VerificationRequest
} from "../../state/VerificationRequest.ts"
import { recordsOf } from "./ChainWords.ts"
import { Verdicts } from "./Verdicts.tsx"
import { VerifyForm } from "./VerifyForm.tsx"
import { VerifyProgress } from "./VerifyProgress.tsx"

type Ended = Extract<VerificationState, { readonly is: "failed" | "cancelled" }>

const hasBreaks = ({ progress }: Ended): boolean => (progress?.breaks_total ?? 0) > 0

/** How far a check came that did not end. */
const Unfinished = ({ retry, state }: { readonly state: Ended; readonly retry: () => void }) => (
  <>
    <p class="verdict" role="status">
      <State tone={hasBreaks(state) ? "bad" : "warn"}>
        {state.is === "cancelled" ? "cancelled" : "not finished"}:{" "}
        {hasBreaks(state) ? "breaks in" : "no verdict on"} the {recordsOf(state.chain)}
      </State>
    </p>
    {state.progress === undefined ? undefined : (
      <p>
        It had come to #{count(state.progress.up_to_sequence)} of #{count(state.progress.of)}.{" "}
        {hasBreaks(state)
          ? `It had found ${counted(state.progress.breaks_total, "break")} by then: verify again to see them.`
          : "What comes after that was not looked at."}
      </p>
    )}
    {state.is === "failed" ? <Failure failure={state.failure} retry={retry} /> : undefined}
  </>
)

export const Verify = ({
  isAsked,
  request,
  show
}: {
  readonly request: VerificationRequest
  /** The address asks for the check, and not only for the form. */
  readonly isAsked: boolean
  /** Goes to the address of a request. */
  readonly show: (request: VerificationRequest, isAsked: boolean) => void
}) => {
  const verification = useMemo(() => new Verification(), [])
  useEffect(() => () => verification.cancel(), [verification])
  const wanted = JSON.stringify(parametersOf(request))
  const start = () => verification.start(checksOf(request))
  useEffect(() => {
    if (isAsked) start()
    else if (verification.state.peek().is !== "cancelled") verification.reset()
  }, [wanted, isAsked])
  const state = verification.state.value
  const cancel = () => {
    verification.cancel()
    show(request, false)
  }
  const verify = (next: VerificationRequest) => {
    const isSame = JSON.stringify(parametersOf(next)) === wanted
    if (isSame && isAsked) start()
    else show(next, true)
  }
  return (
    <Card title="Verification">
      <VerifyForm
        key={wanted}
        request={request}
        verify={verify}
        cancel={state.is === "running" ? cancel : undefined}
      />
      {state.is === "idle" ? (
        <p class="faint">
          Recomputes contents, links and signed roots from the stored bytes, and compares the end
          with the log. Nothing was verified on this page yet.
        </p>
      ) : undefined}
      {state.is === "running" ? <VerifyProgress state={state} /> : undefined}
      {state.is === "failed" || state.is === "cancelled" ? (
        <Unfinished state={state} retry={start} />
      ) : undefined}
      <Verdicts verdicts={state.verdicts} />
    </Card>
  )
}
