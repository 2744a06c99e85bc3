/**
 * Notices that npm is gone. npm dies at once on a signal and does not stop what it runs, so a
 * program that npm started must end by itself.
 */
import { Effect } from "effect"

const POLL_MILLISECONDS = 250

export interface ParentWatchOptions {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The number of the process that is the parent now. */
  readonly parentId: () => number
}

/**
 * Ends once the parent is another process than at the start of the effect. Never ends if the
 * program was not started by an npm script: then it has no parent that it depends on.
 */
export const parentGone = (
  { environment, parentId }: ParentWatchOptions = {
    environment: process.env,
    parentId: () => process.ppid
  }
): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (!environment["npm_lifecycle_event"]) return Effect.never
    const parent = parentId()
    return Effect.sleep(POLL_MILLISECONDS).pipe(
      Effect.repeat({ while: () => parentId() === parent }),
      Effect.asVoid
    )
  })
