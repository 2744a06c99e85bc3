/**
 * What `/readyz` asks: would a write commit, and would a list answer? The roles of the program
 * implement it; this side only shows the answer.
 */
import { Context, type Effect } from "effect"

/** One part of the service as `/readyz` shows it. */
export interface PartState {
  /** `ready`, or what is missing. */
  readonly state: string
  readonly [detail: string]: unknown
}

/** Whether the process is ready, and the JSON that says why not. */
export interface ReadinessReport {
  readonly ready: boolean
  readonly body: {
    readonly status: string
    readonly kafka: PartState & { readonly bootstrap: string }
    readonly clickhouse: PartState
    readonly roles: ReadonlyArray<string>
    readonly [part: string]: unknown
  }
}

/** The readiness of this process. */
export class Readiness extends Context.Service<
  Readiness,
  {
    /** Never fails: a part that can't be asked is a part that is not ready. */
    readonly check: Effect.Effect<ReadinessReport>
  }
>()("alk/http/Readiness") {}
