/** Asks before a share link is revoked: that can't be undone. */
import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import type { ShareLink } from "../../../client/gen/Api.d.ts"
import { failureOf } from "../../api/Answer.ts"
import { type ApiFailure, call } from "../../api/Client.ts"
import { Failure } from "../../parts/Basics.tsx"

export const nameOf = (link: ShareLink): string => link.label ?? "link without a label"

/** Open while it is in the page; `close` says whether the link was revoked. */
export const RevokeLink = ({
  close,
  link
}: {
  readonly link: ShareLink
  readonly close: (isRevoked: boolean) => void
}) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const failure = useSignal<ApiFailure | undefined>(undefined)
  const isBusy = useSignal(false)
  useEffect(() => dialog.current?.showModal(), [])
  const revoke = async () => {
    isBusy.value = true
    failure.value = undefined
    try {
      await call(`/v1/share/links/${encodeURIComponent(link.id)}`, { method: "DELETE" })
      close(true)
    } catch (error) {
      failure.value = failureOf(error)
      isBusy.value = false
    }
  }
  return (
    <dialog ref={dialog} class="revoke" aria-labelledby="revoke-title" onClose={() => close(false)}>
      <h2 id="revoke-title">Revoke “{nameOf(link)}”?</h2>
      <p>
        Whoever has the link can open nothing with it any more, within a second. This can’t be
        undone. What was downloaded already stays where it is.
      </p>
      {failure.value === undefined ? undefined : <Failure failure={failure.value} />}
      <div class="controls">
        <button type="button" class="primary" onClick={revoke} disabled={isBusy.value}>
          {isBusy.value ? "Revoking …" : "Revoke the link"}
        </button>
        <button type="button" onClick={() => dialog.current?.close()}>
          Keep it
        </button>
      </div>
    </dialog>
  )
}
