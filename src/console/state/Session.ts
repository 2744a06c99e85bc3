/** Who is signed in. The key itself is never kept: the browser has a cookie that no script reads. */
import { effect, signal } from "@preact/signals"
import type { Session, SessionState } from "../../client/gen/Api.d.ts"
import { ApiFailure, adminSessionsLost, call, sessionsLost, usedSession } from "../api/Client.ts"

/** `asking` until the service has said; `leaving` while it is told: nothing is asked meanwhile. */
export type SignedIn =
  | { readonly is: "asking" }
  | { readonly is: "leaving" }
  | { readonly is: "out"; readonly reason: string | undefined }
  | { readonly is: "in"; readonly session: Session; readonly isAdmin: boolean }

export const signedIn = signal<SignedIn>({ is: "asking" })

/** The short session of the admin token; null: there is none, for the reason beside it if any. */
export const adminSession = signal<Session | null>(null)
export const adminEnded = signal<string | undefined>(undefined)

const ADMIN_ENDED = "The admin session has ended. Paste the token again to go on."

const take = ({ admin, session }: SessionState, reason?: string): void => {
  const own = session ?? admin
  if (adminSession.peek() !== null && admin === null) adminEnded.value = ADMIN_ENDED
  usedSession.value = session === null && admin !== null ? "admin" : "session"
  adminSession.value = admin
  signedIn.value =
    own === null ? { is: "out", reason } : { is: "in", session: own, isAdmin: admin !== null }
}

const PATH = "/v1/session"

/** Asks the service; throws ApiFailure if it can't say. */
export const askSession = async (reason?: string): Promise<void> =>
  take(await call<SessionState>(PATH, { isPublic: true }), reason)

/** Signs in with a key or a one-time code; throws ApiFailure where that is refused. */
export const signIn = async (
  credential: { readonly key: string } | { readonly code: string }
): Promise<void> =>
  take(await call<SessionState>(PATH, { method: "POST", body: credential, isPublic: true }))

/** Opens the admin token's session, beside the one of a key; throws ApiFailure. */
export const openAdmin = async (token: string): Promise<void> => {
  const body = { key: token }
  take(await call<SessionState>(PATH, { method: "POST", body, isPublic: true, as: "admin" }))
  adminEnded.value = undefined
}

/** Ends the admin token's session, and no other; throws ApiFailure. */
export const closeAdmin = async (): Promise<void> => {
  await call(PATH, { method: "DELETE", isPublic: true, as: "admin" })
  if (usedSession.peek() === "admin") signedIn.value = { is: "out", reason: undefined }
  else adminSession.value = null
}

/** Why the last try to sign out failed: one is still signed in. */
export const signOutFailure = signal<ApiFailure | undefined>(undefined)

/** Signs out, here and everywhere. */
export const signOut = async (): Promise<void> => {
  const before = signedIn.peek()
  signOutFailure.value = undefined
  signedIn.value = { is: "leaving" }
  try {
    await call(PATH, { method: "DELETE", isPublic: true })
    signedIn.value = { is: "out", reason: undefined }
    adminSession.value = null
  } catch (error) {
    signedIn.value = before
    if (!(error instanceof ApiFailure)) throw error
    signOutFailure.value = error
  }
}

let lost = 0
effect(() => {
  if (sessionsLost.value === lost) return
  lost = sessionsLost.value
  if (signedIn.peek().is === "in") {
    signedIn.value = { is: "out", reason: "Your session has ended. Sign in again to go on." }
  }
})

let adminLost = 0
effect(() => {
  if (adminSessionsLost.value === adminLost) return
  adminLost = adminSessionsLost.value
  if (adminSession.peek() === null) return
  adminSession.value = null
  adminEnded.value = ADMIN_ENDED
})
