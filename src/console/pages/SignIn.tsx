/** Where a key is pasted. It becomes a session at once and is kept nowhere. */
import { useSignal } from "@preact/signals"
import type { TargetedSubmitEvent } from "preact"
import { ApiFailure } from "../api/Client.ts"
import { Failure } from "../parts/Basics.tsx"
import { signIn } from "../state/Session.ts"

export const SignIn = ({ reason }: { readonly reason: string | undefined }) => {
  const failure = useSignal<ApiFailure | undefined>(undefined)
  const isBusy = useSignal(false)
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const key = String(new FormData(form).get("key") ?? "").trim()
    if (key === "" || isBusy.value) return
    isBusy.value = true
    failure.value = undefined
    try {
      await signIn({ key })
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      failure.value = error
    } finally {
      isBusy.value = false
    }
  }
  return (
    <main class="sign-in" id="content">
      <h1>alk</h1>
      <p>The audit log and the execution traces of your tenant.</p>
      {reason === undefined ? undefined : (
        <p class="stale" role="status">
          {reason}
        </p>
      )}
      <form onSubmit={submit}>
        <label for="key">API key</label>
        <input
          id="key"
          name="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="alk_live_…"
          required
          // biome-ignore lint/a11y/noAutofocus: the only thing to do on this page
          autoFocus
        />
        <button type="submit" class="primary" disabled={isBusy.value}>
          {isBusy.value ? "Signing in …" : "Sign in"}
        </button>
      </form>
      {failure.value === undefined ? undefined : <Failure failure={failure.value} />}
      <p class="faint">
        The key is sent once and kept nowhere: the browser gets a session of 12 hours, which ends
        after one hour without use, when you sign out, and when the key is revoked. The first start
        of the service prints a key; the administrator makes more.
      </p>
    </main>
  )
}
