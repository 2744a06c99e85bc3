/**
 * The admin token's short session beside the one of the key: opened with the token, which is sent once
 * and kept nowhere, and ended alone.
 */
import type { TargetedSubmitEvent } from "preact"
import { useEffect } from "preact/hooks"
import type { Session } from "../../../client/gen/Api.d.ts"
import { adminSessionsLost, adminUsedAt } from "../../api/Client.ts"
import { Answered } from "../../parts/Answered.tsx"
import { Ago, Card, Failure, State, Time } from "../../parts/Basics.tsx"
import { adminEnded, adminSession, askSession, closeAdmin, openAdmin } from "../../state/Session.ts"
import { useAct } from "./Act.ts"
import { useMe } from "./OwnKey.tsx"

/** Milliseconds after which a session that should have ended has. */
const END_MARGIN_MS = 1_000

const NoToken = () => (
  <>
    <p>
      <State tone="warn">no admin token is set</State>
    </p>
    <p>
      Tenants and keys are managed with the admin token, and this service has none. Set{" "}
      <code>ALK_ADMIN_TOKEN</code> to a secret of at least 24 characters and start the service
      again:
    </p>
    <pre>
      <code>ALK_ADMIN_TOKEN=$(openssl rand -hex 32)</code>
    </pre>
  </>
)

const TokenForm = () => {
  const { failure, isBusy, run } = useAct()
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const form = event.currentTarget
    const token = String(new FormData(form).get("token") ?? "").trim()
    if (token !== "") void run(() => openAdmin(token))
  }
  return (
    <>
      {adminEnded.value === undefined ? undefined : (
        <p class="stale" role="status">
          {adminEnded.value}
        </p>
      )}
      <p>Tenants, keys and the log of what was done to them need the admin token.</p>
      <form class="keys-form" onSubmit={submit}>
        <label>
          Admin token
          <input name="token" type="password" autocomplete="off" spellcheck={false} required />
        </label>
        <button type="submit" class="primary" disabled={isBusy.value}>
          {isBusy.value ? "Opening …" : "Open an admin session"}
        </button>
      </form>
      {failure.value === undefined ? undefined : <Failure failure={failure.value} />}
      <p class="faint">
        It is what <code>ALK_ADMIN_TOKEN</code> says where the service runs. It is sent once and
        kept nowhere; the session lasts an hour, and 15 minutes without use, beside the one of your
        key.
      </p>
    </>
  )
}

/** Asks whether the session is still open when its time is up, whole or unused. */
const useEnd = ({ expires_at, idle_seconds }: Session): void => {
  const usedAt = adminUsedAt.value
  useEffect(() => {
    const unusedUntil = Math.max(usedAt, Date.now()) + idle_seconds * 1_000
    const end = Math.min(Date.parse(expires_at), unusedUntil)
    const timer = setTimeout(
      () => askSession().catch(() => (adminSessionsLost.value += 1)),
      end - Date.now() + END_MARGIN_MS
    )
    return () => clearTimeout(timer)
  }, [expires_at, idle_seconds, usedAt])
}

const Open = ({ session }: { readonly session: Session }) => {
  const { failure, isBusy, run } = useAct()
  useEnd(session)
  return (
    <>
      <p>
        <State tone="good">open</State>, ends <Ago at={session.expires_at} /> (
        <Time at={session.expires_at} />
        ), or after {session.idle_seconds / 60} minutes without use.
      </p>
      <button type="button" disabled={isBusy.value} onClick={() => void run(closeAdmin)}>
        {isBusy.value ? "Ending …" : "End the admin session"}
      </button>
      {failure.value === undefined ? undefined : <Failure failure={failure.value} />}
      <p class="faint">You stay signed in with your key.</p>
    </>
  )
}

const Closed = () => (
  <Answered answer={useMe()} what="what is configured">
    {({ has_admin_token }) => (has_admin_token ? <TokenForm /> : <NoToken />)}
  </Answered>
)

export const AdminAccess = () => (
  <Card title="Admin session">
    {adminSession.value === null ? <Closed /> : <Open session={adminSession.value} />}
  </Card>
)
