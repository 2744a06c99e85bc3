/** What this browser keeps of the console, to look at and to forget. No key and no event is among it. */
import { useSignal } from "@preact/signals"
import { Card } from "../../parts/Basics.tsx"
import { bytes } from "../../parts/Format.ts"
import { savedViews } from "../../state/EventsView.ts"
import { forgetAll, keptNames } from "../../state/Preferences.ts"
import { ViewList } from "../events/ViewChoices.tsx"

/** Asked once more: what is forgotten does not come back. */
const Reset = () => {
  const isAsking = useSignal(false)
  return isAsking.value ? (
    <p>
      Forget all of it, saved views too?{" "}
      <button
        type="button"
        onClick={() => {
          forgetAll()
          location.reload()
        }}
      >
        Forget it
      </button>{" "}
      <button type="button" class="quiet" onClick={() => (isAsking.value = false)}>
        Keep it
      </button>
    </p>
  ) : (
    <p>
      <button type="button" onClick={() => (isAsking.value = true)}>
        Forget all settings …
      </button>
    </p>
  )
}

export const Kept = () => (
  <Card title="Kept in this browser">
    <h3>Saved views</h3>
    {savedViews.value.length === 0 ? (
      <p class="faint">None: the page of events has a button that keeps one.</p>
    ) : (
      <ViewList />
    )}
    <h3>All that is kept</h3>
    <ul class="rows">
      {keptNames().map(([name, length]) => (
        <li key={name}>
          <code>{name}</code> <span class="faint">{bytes(length)}</span>
        </li>
      ))}
    </ul>
    <Reset />
    <p class="faint">
      Beside these the browser has the cookie of your session, which no script can read. Your key is
      not kept.
    </p>
  </Card>
)
