/**
 * Checks that run, one after the other: how far they have come, and what they have found. A check
 * that is begun forgets what the one before has found, so no old verdict is shown as a new one.
 */
import { signal } from "@preact/signals"
import type { VerifyProgress, VerifyReport } from "../../client/gen/Api.d.ts"
import { failureOf } from "../api/Answer.ts"
import type { ApiFailure } from "../api/Client.ts"
import { cutOff, jsonLines } from "../api/JsonLines.ts"
import { type Sample, withSample } from "./Pace.ts"
import type { ChainName, Check } from "./VerificationRequest.ts"

/** A finished check of one chain. */
export interface Verdict {
  readonly chain: ChainName
  readonly report: VerifyReport
}

interface Progress {
  readonly chain: ChainName
  /** Undefined until the service has said something. */
  readonly progress: VerifyProgress | undefined
  readonly samples: ReadonlyArray<Sample>
  /** When the last line came or the check was begun, milliseconds since 1970. */
  readonly heardAt: number
}

export type VerificationState = { readonly verdicts: ReadonlyArray<Verdict> } & (
  | { readonly is: "idle" | "done" }
  | ({ readonly is: "running" } & Progress)
  | ({ readonly is: "cancelled" } & Progress)
  | ({ readonly is: "failed"; readonly failure: ApiFailure } & Progress)
)

const isReport = (line: unknown): line is VerifyReport =>
  typeof (line as VerifyReport | null)?.status === "string"

export class Verification {
  readonly state = signal<VerificationState>({ is: "idle", verdicts: [] })
  #controller: AbortController | undefined

  start(checks: ReadonlyArray<Check>): void {
    this.#controller?.abort()
    const controller = new AbortController()
    this.#controller = controller
    this.#run(checks, controller.signal).catch((error) => {
      const { value } = this.state
      if (controller.signal.aborted || value.is !== "running") return
      this.state.value = { ...value, is: "failed", failure: failureOf(error) }
    })
  }

  cancel(): void {
    this.#controller?.abort()
    const { value } = this.state
    if (value.is === "running") this.state.value = { ...value, is: "cancelled" }
  }

  /** Ends what runs and forgets everything. */
  reset(): void {
    this.#controller?.abort()
    this.state.value = { is: "idle", verdicts: [] }
  }

  async #run(checks: ReadonlyArray<Check>, aborted: AbortSignal): Promise<void> {
    const verdicts: Array<Verdict> = []
    for (const check of checks) {
      const report = await this.#report(check, [...verdicts], aborted)
      verdicts.push({ chain: check.chain, report })
    }
    this.state.value = { is: "done", verdicts }
  }

  async #report(
    { body, chain, path }: Check,
    verdicts: ReadonlyArray<Verdict>,
    aborted: AbortSignal
  ): Promise<VerifyReport> {
    let samples: ReadonlyArray<Sample> = [{ at: performance.now(), done: 0 }]
    const show = (progress: VerifyProgress | undefined): void => {
      const heardAt = Date.now()
      this.state.value = { is: "running", verdicts, chain, progress, samples, heardAt }
    }
    show(undefined)
    const options = body === undefined ? {} : { method: "POST" as const, body }
    for await (const line of jsonLines(path, { ...options, signal: aborted })) {
      aborted.throwIfAborted()
      if (isReport(line)) return line
      const progress = line as VerifyProgress
      samples = withSample(samples, { at: performance.now(), done: progress.events_checked })
      show(progress)
    }
    throw cutOff()
  }
}
