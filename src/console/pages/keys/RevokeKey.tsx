/** Asks before a key is revoked, and says what ends with it. */
import { useEffect, useRef } from "preact/hooks"
import type { ApiKey } from "../../../client/gen/Api.d.ts"
import { call } from "../../api/Client.ts"
import { Failure, State } from "../../parts/Basics.tsx"
import { signedIn } from "../../state/Session.ts"
import { useAct } from "./Act.ts"

export const RevokeKey = ({
  apiKey,
  onClose,
  path
}: {
  readonly apiKey: ApiKey
  /** Where the keys of its tenant are. */
  readonly path: string
  readonly onClose: (isRevoked: boolean) => void
}) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const { failure, isBusy, run } = useAct()
  const isRevoked = useRef(false)
  useEffect(() => dialog.current?.showModal(), [])
  const { hint, id, label } = apiKey
  const { value } = signedIn
  const isOwn = value.is === "in" && value.session.key_id === id
  const revoke = () =>
    run(async () => {
      await call(`${path}/${encodeURIComponent(id)}`, { method: "DELETE", as: "admin" })
      isRevoked.current = true
      dialog.current?.close()
    })
  return (
    <dialog
      ref={dialog}
      class="keys-dialog"
      aria-labelledby="revoke-title"
      onClose={() => onClose(isRevoked.current)}
    >
      <h2 id="revoke-title">Revoke {label ?? "this key"}?</h2>
      <p>
        <code>{hint}</code> of the tenant <strong>{apiKey.tenant_id}</strong>. This can't be undone.
        Within a second:
      </p>
      <ul>
        <li>requests with the key are refused,</li>
        <li>its live streams are closed,</li>
        <li>browsers that have signed in with it are signed out,</li>
        <li>share links that were made with it are revoked.</li>
      </ul>
      {isOwn ? (
        <p>
          <State tone="warn">This is the key that you have signed in with</State>: your session ends
          too.
        </p>
      ) : undefined}
      {failure.value === undefined ? undefined : <Failure failure={failure.value} />}
      <p class="actions">
        <button type="button" onClick={() => dialog.current?.close()}>
          Keep it
        </button>
        <button
          type="button"
          class="keys-danger"
          disabled={isBusy.value}
          onClick={() => void revoke()}
        >
          {isBusy.value ? "Revoking …" : "Revoke the key"}
        </button>
      </p>
    </dialog>
  )
}
