/** Checks a signed note that was kept: whether the chain of today still leads to it. */
import { useEffect, useMemo, useState } from "preact/hooks"
import type { VerifyReport } from "../../../client/gen/Api.d.ts"
import { Card, Failure, State, Time } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { type Verdict, Verification } from "../../state/Verification.ts"
import { BrokenChain, Sides } from "./BrokenChain.tsx"
import { recordsOf } from "./ChainWords.ts"
import { VerifyProgress } from "./VerifyProgress.tsx"

/** Characters of a note that the service takes; its own have some hundreds. */
const NOTE_LENGTH_MAX = 65_536

/** Which chain and how many records a note is about, as its first lines say. */
const noteOf = (note: string): { readonly chain: "events" | "traces"; readonly size: number } => {
  const [origin = "", size = ""] = note.split("\n")
  return { chain: origin.endsWith("/traces") ? "traces" : "events", size: Number(size) }
}

const Answer = ({ note, verdict }: { readonly note: string; readonly verdict: Verdict }) => {
  const { report } = verdict
  const { size } = noteOf(note)
  const [refused] = report.breaks
  if (refused !== undefined && report.events_checked === 0) {
    return (
      <>
        <p class="verdict" role="alert">
          <State tone="bad">this is no checkpoint of this chain</State>
        </p>
        <p>
          Nothing was compared: the note is about another chain, or no key that this service
          publishes has signed it. If you did keep it from here, somebody has changed the note or
          the keys.
        </p>
        <Sides found={refused} />
      </>
    )
  }
  if (report.breaks_total > 0) {
    return (
      <>
        <p class="verdict" role="alert">
          <State tone="bad">the chain does not lead to this checkpoint</State>
        </p>
        <p>
          The note is genuine: a key of this service has signed it. The {recordsOf(verdict.chain)}{" "}
          that it covers are not what they were.
        </p>
        <BrokenChain {...verdict} />
      </>
    )
  }
  return isProved(report) ? (
    <>
      <p class="verdict" role="status">
        <State tone="good">the chain still leads to this checkpoint</State>
      </p>
      <p>
        {counted(report.events_checked, "record")} were recomputed from #1 on, and their root is the
        one that was signed: none of the first {count(size)} {recordsOf(verdict.chain)} was changed,
        removed or added since you kept it. Checked <Time at={report.verified_at} />.
      </p>
    </>
  ) : (
    <p class="verdict" role="status">
      <State tone="warn">not checked to the end</State>
    </p>
  )
}

/** Anything but a finished check that came to the kept checkpoint says nothing. */
const isProved = ({ origin, status }: VerifyReport): boolean =>
  status === "valid" && origin === "checked"

export const Kept = () => {
  const verification = useMemo(() => new Verification(), [])
  useEffect(() => () => verification.cancel(), [verification])
  const [note, setNote] = useState("")
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const state = verification.state.value
  const change = (text: string) => {
    setNote(text)
    setProblem(undefined)
    verification.reset()
  }
  const take = async (file: File | undefined) => {
    if (file === undefined) return
    if (file.size > NOTE_LENGTH_MAX) setProblem("This file is too large to be a signed note.")
    else change(await file.text())
  }
  const check = (event: SubmitEvent) => {
    event.preventDefault()
    const { chain } = noteOf(note)
    verification.start([{ chain, path: "/v1/verify", body: { checkpoint: note } }])
  }
  return (
    <Card title="Check one that you kept">
      <form
        class="kept-note"
        onSubmit={check}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault()
          void take(event.dataTransfer?.files[0])
        }}
      >
        <label for="kept-note">Paste the signed note, or drop its file here</label>
        <textarea
          id="kept-note"
          rows={6}
          spellcheck={false}
          maxLength={NOTE_LENGTH_MAX}
          value={note}
          onInput={({ currentTarget }) => change(currentTarget.value)}
        />
        <p class="actions">
          <button type="submit" class="primary" disabled={note.trim() === ""}>
            Check it
          </button>
          <label class="file">
            or choose a file{" "}
            <input
              type="file"
              onChange={({ currentTarget }) => void take(currentTarget.files?.[0])}
            />
          </label>
          {state.is === "running" ? (
            <button type="button" onClick={() => verification.cancel()}>
              Cancel
            </button>
          ) : undefined}
        </p>
      </form>
      {problem === undefined ? undefined : (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
      {state.is === "running" ? <VerifyProgress state={state} /> : undefined}
      {state.is === "failed" ? <Failure failure={state.failure} /> : undefined}
      {state.is === "cancelled" ? (
        <p role="status">Cancelled: nothing was found out.</p>
      ) : undefined}
      {state.is === "done" && state.verdicts[0] !== undefined ? (
        <Answer note={note} verdict={state.verdicts[0]} />
      ) : undefined}
    </Card>
  )
}
