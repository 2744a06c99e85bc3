/**
 * A shared scope as its page sees it. The token is that of the address: it stays there, so that a
 * reload works, and is put nowhere else.
 */
import { useCallback, useEffect, useState } from "preact/hooks"
import type { SharedScope } from "../../client/gen/Api.d.ts"
import { failureOf } from "../api/Answer.ts"
import type { ApiFailure } from "../api/Client.ts"
import { askShared, isToken, type LinkEnd, LinkEnded } from "../api/ShareClient.ts"

const tokenOfAddress = (): string => location.hash.slice(1)

/** The token of the address, also when another link is pasted over it. */
export const useToken = (): string => {
  const [token, setToken] = useState(tokenOfAddress)
  useEffect(() => {
    const onChange = () => setToken(tokenOfAddress())
    addEventListener("hashchange", onChange)
    return () => removeEventListener("hashchange", onChange)
  }, [])
  return token
}

export type Shared =
  | { readonly is: "loading" }
  /** The token opens nothing: there is none, it is none, or its link has ended. */
  | { readonly is: "closed"; readonly why: LinkEnd | "missing" | "malformed" }
  | { readonly is: "failed"; readonly failure: ApiFailure }
  | {
      readonly is: "open"
      readonly scope: SharedScope
      /** Of the last attempt; `scope` is then from an earlier one. */
      readonly failure: ApiFailure | undefined
      /** The link has ended since; what is on the page stays. */
      readonly ended: LinkEnd | undefined
    }

const closedBefore = (token: string): Shared | undefined => {
  if (token === "") return { is: "closed", why: "missing" }
  return isToken(token) ? undefined : { is: "closed", why: "malformed" }
}

/** What was known of a link that has ended since: one that is used up has no uses left. */
const endedAs = (scope: SharedScope, ended: LinkEnd | undefined) => ({
  scope: ended === "used_up" ? { ...scope, uses: scope.max_uses ?? scope.uses } : scope,
  ended
})

/** What the link covers; `reload` asks again, after a use. */
export const useShared = (token: string): readonly [Shared, reload: () => void] => {
  const [shared, setShared] = useState<Shared>({ is: "loading" })
  const [attempt, setAttempt] = useState(0)
  const reload = useCallback(() => setAttempt((before) => before + 1), [])
  useEffect(() => setShared({ is: "loading" }), [token])
  useEffect(() => {
    const closed = closedBefore(token)
    if (closed !== undefined) return setShared(closed)
    const controller = new AbortController()
    askShared<SharedScope>(token, "/v1/share", controller.signal).then(
      (scope) => setShared({ is: "open", scope, failure: undefined, ended: undefined }),
      (error) => {
        if (controller.signal.aborted) return
        const failure = failureOf(error)
        setShared((before) => {
          const ended = failure instanceof LinkEnded ? failure.end : undefined
          if (before.is === "open") return { is: "open", ...endedAs(before.scope, ended), failure }
          return ended === undefined ? { is: "failed", failure } : { is: "closed", why: ended }
        })
      }
    )
    return () => controller.abort()
  }, [token, attempt])
  return [shared, reload]
}
