/** A value of metadata as people read it; one that is stored apart is loaded when it is asked for. */
import { useState } from "preact/hooks"
import { failureOf } from "../api/Answer.ts"
import { type ApiFailure, callText } from "../api/Client.ts"
import { Failure } from "./Basics.tsx"
import { bytes, count } from "./Format.ts"
import { isRef, refsIn, type ValueRef } from "./Messages.ts"

/** Characters of a text that are shown at first. */
const SHOWN = 2_000

/** A text; of a long one its beginning. */
const Long = ({ text }: { readonly text: string }) => {
  const [isWhole, setWhole] = useState(false)
  const isLong = text.length > SHOWN
  return (
    <>
      <span class="text">{isLong && !isWhole ? `${text.slice(0, SHOWN)} …` : text}</span>
      {isLong ? (
        <p class="actions">
          <button type="button" class="quiet" onClick={() => setWhole(!isWhole)}>
            {isWhole ? "Show less" : `Show all ${count(text.length)} characters`}
          </button>
        </p>
      ) : undefined}
    </>
  )
}

/** A value that is stored apart: its beginning, and the whole of it when it is asked for. */
const Apart = ({ value }: { readonly value: ValueRef }) => {
  const [text, setText] = useState<string | undefined>(undefined)
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const load = () => {
    setBusy(true)
    setFailure(undefined)
    callText(`/api/v1/payloads/${value.$ref.replace(/^sha256:/, "")}`)
      .then(setText, (error) => setFailure(failureOf(error)))
      .finally(() => setBusy(false))
  }
  if (text !== undefined) return <Long text={text} />
  return (
    <>
      <span class="text">{value.preview} …</span>
      {failure === undefined ? undefined : <Failure failure={failure} />}
      <p class="actions">
        {value.truncated === true ? (
          <span class="faint">{bytes(value.bytes)}, of which only the beginning was kept</span>
        ) : (
          <button type="button" class="quiet" disabled={isBusy} onClick={load}>
            {isBusy ? "Loading …" : `Load all ${bytes(value.bytes)}`}
          </button>
        )}
      </p>
    </>
  )
}

/** A value as people read it: texts as they are, the rest as JSON. */
export const Value = ({ value }: { readonly value: unknown }) =>
  isRef(value) ? (
    <Apart value={value} />
  ) : (
    <Long text={typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "")} />
  )

/** The values in an object that are stored apart, each with its path. */
export const LargeValues = ({ of }: { readonly of: unknown }) => {
  const found = isRef(of) ? [] : refsIn(of)
  return found.length === 0 ? null : (
    <>
      <h3>Stored apart</h3>
      <ul class="rows" aria-label="Values stored apart">
        {found.map(({ path, value }) => (
          <li key={path}>
            <strong>{path}</strong>
            <div class="said">
              <Apart value={value} />
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}
