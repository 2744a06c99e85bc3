/** A record as JSON. Long texts in it are cut until they are asked for; what is copied is whole. */
import { useSignal } from "@preact/signals"
import { useMemo } from "preact/hooks"
import { Copy, Scrolls } from "./Basics.tsx"
import { count } from "./Format.ts"

/** Characters of a text from which on it is cut, and that are left of it then. */
const LONG = 1_000
const LEFT = 200

/** The JSON with its long texts cut, and how many of them there are. */
export const cutJson = (value: unknown): { readonly text: string; readonly long: number } => {
  let long = 0
  const cut = (_: string, part: unknown): unknown => {
    if (typeof part !== "string" || part.length <= LONG) return part
    long++
    return `${part.slice(0, LEFT)} … (${count(part.length)} characters)`
  }
  return { text: JSON.stringify(value, cut, 2), long }
}

export const Json = ({ label, value }: { readonly label: string; readonly value: object }) => {
  const isWhole = useSignal(false)
  const cut = useMemo(() => cutJson(value), [value])
  const whole = useMemo(
    () => (cut.long === 0 ? cut.text : JSON.stringify(value, null, 2)),
    [cut, value]
  )
  return (
    <>
      <Scrolls label={label}>
        <pre class="json">{isWhole.value ? whole : cut.text}</pre>
      </Scrolls>
      <p class="actions">
        {cut.long === 0 ? undefined : (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              isWhole.value = !isWhole.value
            }}
          >
            {isWhole.value
              ? "Cut long texts"
              : `Show ${cut.long === 1 ? "the long text" : `all ${count(cut.long)} long texts`}`}
          </button>
        )}
        <Copy label="Copy JSON" text={whole} />
      </p>
    </>
  )
}
