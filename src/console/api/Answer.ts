/**
 * An answer of the API as a component sees it: loading, there, or refused; asked again on a beat
 * while the page is in use. What was there stays while it is asked again, and says so when that
 * fails.
 */
import { useCallback, useEffect, useState } from "preact/hooks"
import { ApiFailure, call, type SessionKind } from "./Client.ts"
import { isPresent } from "./Presence.ts"

export interface Answer<A> {
  readonly data: A | undefined
  /** Of the last attempt; `data` is then from an earlier one. */
  readonly failure: ApiFailure | undefined
  readonly isLoading: boolean
  /** When `data` came, milliseconds since 1970. */
  readonly at: number | undefined
  readonly reload: () => void
}

type State<A> = Omit<Answer<A>, "reload">

/** What is known of one path. */
interface Known<A> {
  readonly path: string | undefined
  readonly state: State<A>
}

const nothing = { data: undefined, failure: undefined, isLoading: true, at: undefined } as const

export const failureOf = (error: unknown): ApiFailure =>
  error instanceof ApiFailure ? error : new ApiFailure(0, "unexpected", String(error))

/**
 * The answer of GET `path`, again every `everySeconds` if given, with the session `as` if not the used
 * one. Undefined asks nothing. Another path begins from nothing.
 */
export const useAnswer = <A>(
  path: string | undefined,
  everySeconds?: number,
  as?: SessionKind
): Answer<A> => {
  const [known, setKnown] = useState<Known<A>>({ path, state: nothing })
  const [attempt, setAttempt] = useState(0)
  // An effect runs after the page is drawn: what is known of the path before is not drawn under this.
  const state = known.path === path ? known.state : nothing
  const reload = useCallback(() => setAttempt((before) => before + 1), [])

  useEffect(() => {
    if (path === undefined) return
    const controller = new AbortController()
    const change = (next: (before: State<A>) => State<A>) => {
      if (controller.signal.aborted) return
      setKnown((last) => ({ path, state: next(last.path === path ? last.state : nothing) }))
    }
    change((before) => ({ ...before, isLoading: true }))
    call<A>(path, { signal: controller.signal, ...(as && { as }) }).then(
      (data) => change(() => ({ data, failure: undefined, isLoading: false, at: Date.now() })),
      (error) => change((before) => ({ ...before, failure: failureOf(error), isLoading: false }))
    )
    return () => controller.abort()
  }, [path, attempt, as])

  useEffect(() => {
    if (path === undefined || everySeconds === undefined) return
    const timer = setInterval(() => isPresent() && reload(), everySeconds * 1_000)
    return () => clearInterval(timer)
  }, [path, everySeconds, reload])

  return { ...state, reload }
}
