/**
 * The check of the evidence pack in this browser, with the program that packs carry,: the
 * service takes no part in it.
 */
import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { failureOf } from "../../api/Answer.ts"
import type { ApiFailure } from "../../api/Client.ts"
import type { SharedFile } from "../../api/ShareClient.ts"
import { Card, Failure, State } from "../../parts/Basics.tsx"
import { bytes, count, counted } from "../../parts/Format.ts"
import type { Tone } from "../../parts/Mark.tsx"
import type { CheckedPack } from "../../parts/PackCheck.ts"
import { Findings } from "./Findings.tsx"
import { checkPack } from "./PackVerdict.ts"

type Step =
  | { readonly is: "idle" }
  | { readonly is: "fetching" }
  | { readonly is: "checking"; readonly file: string; readonly bytes: number }
  | { readonly is: "failed"; readonly failure: ApiFailure }
  | { readonly is: "done"; readonly checked: CheckedPack; readonly wasKeyGiven: boolean }

const tones: Readonly<Record<CheckedPack["report"]["verdict"], Tone>> = {
  authentic: "good",
  consistent: "plain",
  tampered: "bad",
  unreadable: "warn"
}

const Listed = ({ lines, title }: { readonly lines: ReadonlyArray<string>; title: string }) =>
  lines.length === 0 ? null : (
    <>
      <h3>{title}</h3>
      <ul class="share-list">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </>
  )

const Result = ({
  checked: { isKeyKnown, keys, report, sentence, word },
  wasKeyGiven
}: {
  readonly checked: CheckedPack
  readonly wasKeyGiven: boolean
}) => {
  const { checked, not_established: open, problems, problems_total: total, verdict } = report
  const heading = useRef<HTMLParagraphElement>(null)
  useEffect(() => heading.current?.focus(), [report])
  return (
    <section class={`pack-verdict ${verdict}`} aria-label="Verdict of this browser">
      <p class="verdict" ref={heading} tabIndex={-1}>
        <State tone={tones[verdict]}>{word}</State>
      </p>
      <p>{sentence}</p>
      {wasKeyGiven && !isKeyKnown ? (
        <p class="stale" role="alert">
          What you pasted holds no public key, so it was not used.
        </p>
      ) : undefined}
      {total === 0 ? undefined : (
        <>
          <h3>
            What does not hold: {count(total)}
            {total > problems.length ? `, the first ${count(problems.length)} shown` : ""}
          </h3>
          <Findings label="What does not hold" findings={problems} />
        </>
      )}
      {verdict === "unreadable" ? undefined : (
        <p class="faint">
          {counted(report.events, "event")}, {counted(report.links, "link")} of the chain,{" "}
          {counted(report.facts, "trace fact")}
          {report.head_hash === null || report.last_sequence_number === null ? undefined : (
            <>
              <br />
              Head hash <code>{report.head_hash}</code>, sequence {report.last_sequence_number}
            </>
          )}
        </p>
      )}
      <Listed
        title={verdict === "authentic" ? "What was checked" : "What was looked at"}
        lines={checked}
      />
      <Listed title="Signing keys" lines={keys} />
      <Listed title="What this could not establish" lines={open} />
    </section>
  )
}

const Busy = ({ received, step }: { readonly step: Step; readonly received: number }) => (
  <div role="status">
    <progress aria-label="Check of the pack" />
    <p class="faint">
      {step.is === "checking"
        ? `Checking ${step.file}, ${bytes(step.bytes)} read`
        : `Downloading the pack, ${bytes(received)}`}
    </p>
  </div>
)

/** `take` gives the pack of this page, downloaded now if it was not before; it ends with the page. */
export const VerifyHere = ({
  cost,
  isOpen,
  onVerdict,
  received,
  take
}: {
  readonly take: () => Promise<SharedFile>
  readonly received: number
  /** What it costs, in words; undefined if nothing. */
  readonly cost: string | undefined
  /** False where there is no pack and none can be downloaded. */
  readonly isOpen: boolean
  readonly onVerdict: (verdict: CheckedPack["report"]["verdict"]) => void
}) => {
  const step = useSignal<Step>({ is: "idle" })
  const key = useSignal("")
  const controller = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const isBusy = step.value.is === "fetching" || step.value.is === "checking"
  const run = async () => {
    controller.current?.abort()
    const { signal } = (controller.current = new AbortController())
    step.value = { is: "fetching" }
    try {
      const { blob } = await take()
      const given = key.value.trim()
      step.value = { is: "checking", file: "the pack", bytes: 0 }
      const checked = await checkPack({ pack: blob, key: given }, signal, (file, read) => {
        step.value = { is: "checking", file, bytes: read }
      })
      onVerdict(checked.report.verdict)
      step.value = { is: "done", checked, wasKeyGiven: given !== "" }
    } catch (error) {
      if (!signal.aborted) step.value = { is: "failed", failure: failureOf(error) }
    }
  }
  return (
    <Card title="Verify here">
      <p>
        Downloads the evidence pack and checks it in this browser, with the program that every pack
        carries: each event, each link, the tree, the signatures. The service takes no part in it.
      </p>
      <label class="key-box">
        <span>
          A public key that you have from elsewhere <span class="faint">(optional)</span>
        </span>
        <textarea
          value={key.value}
          rows={2}
          spellcheck={false}
          autocomplete="off"
          placeholder="alk+1a2b3c4d+…"
          onInput={({ currentTarget }) => (key.value = currentTarget.value)}
        />
        <span class="faint">
          With it the check shows who made the pack: the verdict is “authentic” then, not only
          “consistent”.
        </span>
      </label>
      <p class="controls">
        <button type="button" class="primary" onClick={run} disabled={isBusy || !isOpen}>
          {step.value.is === "done" ? "Check again" : "Verify here"}
        </button>
        {cost === undefined ? undefined : <span class="faint">{cost}</span>}
      </p>
      {isBusy ? <Busy step={step.value} received={received} /> : undefined}
      {step.value.is === "failed" ? (
        <>
          <p class="verdict">
            <State tone="warn">not checked</State>
          </p>
          <Failure failure={step.value.failure} retry={run} isByHand />
        </>
      ) : undefined}
      {step.value.is === "done" ? (
        <Result checked={step.value.checked} wasKeyGiven={step.value.wasKeyGiven} />
      ) : undefined}
    </Card>
  )
}
