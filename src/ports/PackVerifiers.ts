/** The programs that packs carry, so that a reader can check them. */
import { Context, type Effect } from "effect"

/** JavaScript without imports but of the runtime. */
export interface VerifierFiles {
  /** verify.mjs, for Node. */
  readonly program: string
  /** What the script of verify.html calls `checks`, for browsers. */
  readonly checks: string
}

export class PackVerifiers extends Context.Service<
  PackVerifiers,
  {
    /** The same at every call. */
    readonly files: Effect.Effect<VerifierFiles>
  }
>()("alk/PackVerifiers") {}
