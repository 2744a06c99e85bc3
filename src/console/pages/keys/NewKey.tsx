/** Makes a key, and shows it once: it is in this page as long as its dialog is open, and nowhere else. */
import { useSignal } from "@preact/signals"
import type { TargetedSubmitEvent } from "preact"
import { useEffect, useRef } from "preact/hooks"
import type { CreatedApiKey } from "../../../client/gen/Api.d.ts"
import { call } from "../../api/Client.ts"
import { Copy, Failure, State, Time } from "../../parts/Basics.tsx"
import { type Expiry, expiryInput, tryKeyText } from "../../state/KeysView.ts"
import { useAct } from "./Act.ts"
import { Field, otherFailure } from "./Field.tsx"

const fields = ["label", "scopes", "expires_at"]

const expiryTitles: Readonly<Record<Expiry, string>> = {
  never: "never",
  "30": "in 30 days",
  "90": "in 90 days",
  "365": "in 365 days",
  date: "at the end of a day (UTC) …"
}

/** Shows the key until it is said to be kept: Esc would lose it. */
const Shown = ({
  made,
  onClose
}: {
  readonly made: CreatedApiKey
  readonly onClose: () => void
}) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  const tryIt = tryKeyText(made.key, location.origin)
  return (
    <dialog
      ref={dialog}
      class="keys-dialog"
      aria-labelledby="made-title"
      onCancel={(event) => event.preventDefault()}
      onClose={onClose}
    >
      <h2 id="made-title">The key {made.label ?? ""} is made</h2>
      <p>
        <State tone="warn">This is the only time that it is shown.</State> The service keeps a hash
        of it, nobody can show it again. Put it where your program reads its secrets.
      </p>
      <p class="keys-secret">
        <code>{made.key}</code> <Copy text={made.key} label="Copy the key" />
      </p>
      <p>Try it at a terminal:</p>
      <pre>
        <code>{tryIt}</code>
      </pre>
      <p class="actions">
        <Copy text={tryIt} label="Copy both lines" />
      </p>
      <p class="faint">
        For the tenant {made.tenant_id}, {made.scopes.join(" and ")}; expires{" "}
        {made.expires_at === undefined ? "never" : <Time at={made.expires_at} />}.
      </p>
      <button type="button" class="primary" onClick={() => dialog.current?.close()}>
        I have kept it
      </button>
    </dialog>
  )
}

const inputOf = (form: HTMLFormElement) => {
  const given = new FormData(form)
  const text = (name: string): string => String(given.get(name) ?? "").trim()
  return {
    scopes: given.getAll("scope"),
    label: text("label") === "" ? null : text("label"),
    ...expiryInput(text("expiry"), text("expires_at"))
  }
}

/** A day as a date field takes it. */
const today = (): string => new Date().toISOString().slice(0, 10)

const Scopes = () => (
  <fieldset class="keys-scopes">
    <legend>May</legend>
    {["read", "write"].map((scope) => (
      <label key={scope}>
        <input type="checkbox" name="scope" value={scope} defaultChecked />
        {scope}
      </label>
    ))}
  </fieldset>
)

export const NewKey = ({
  onMade,
  path
}: {
  /** Where the keys of the tenant are. */
  readonly path: string
  readonly onMade: () => void
}) => {
  const made = useSignal<CreatedApiKey | undefined>(undefined)
  const expiry = useSignal<string>("90")
  const { failure, isBusy, run } = useAct()
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const form = event.currentTarget
    void run(async () => {
      made.value = await call<CreatedApiKey>(path, {
        method: "POST",
        body: inputOf(form),
        as: "admin"
      })
      form.reset()
      expiry.value = "90"
      onMade()
    })
  }
  const rest = otherFailure(failure.value, fields)
  return (
    <details class="keys-new">
      <summary>New key</summary>
      <form class="keys-form" onSubmit={submit}>
        <Field
          label="Label"
          name="label"
          failure={failure.value}
          maxLength={256}
          placeholder="ingest of the web shop"
          hint="For people: what the key is for."
        />
        <Scopes />
        {failure.value?.field === "scopes" ? (
          <span class="keys-wrong" role="alert">
            {failure.value.message}
          </span>
        ) : undefined}
        <label class="keys-field">
          Expires
          <select
            name="expiry"
            value={expiry.value}
            onChange={({ currentTarget: { value } }) => (expiry.value = value)}
          >
            {Object.entries(expiryTitles).map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
        {expiry.value === "date" ? (
          <Field
            label="Last day"
            name="expires_at"
            firstDay={today()}
            failure={failure.value}
            required
          />
        ) : undefined}
        <button type="submit" class="primary" disabled={isBusy.value}>
          {isBusy.value ? "Creating …" : "Create the key"}
        </button>
      </form>
      {rest === undefined ? undefined : <Failure failure={rest} />}
      {made.value === undefined ? undefined : (
        <Shown made={made.value} onClose={() => (made.value = undefined)} />
      )}
    </details>
  )
}
