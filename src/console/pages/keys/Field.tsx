/** A field of a form, with what the service has to say of it below. */
import type { ApiFailure } from "../../api/Client.ts"

/** A conflict is one of the id, though it names no field. */
const fieldOf = ({ code, field }: ApiFailure): string | undefined =>
  field ?? (code === "id_conflict" ? "id" : undefined)

/** A failure that belongs to none of the fields. */
export const otherFailure = (
  failure: ApiFailure | undefined,
  fields: ReadonlyArray<string>
): ApiFailure | undefined =>
  failure === undefined || fields.includes(fieldOf(failure) ?? "") ? undefined : failure

export const Field = ({
  failure,
  firstDay,
  hint,
  label,
  name,
  ...more
}: {
  readonly name: string
  readonly label: string
  readonly failure: ApiFailure | undefined
  readonly hint?: string
  /** The first day that can be chosen: the field is one of days. */
  readonly firstDay?: string
  readonly required?: boolean
  readonly maxLength?: number
  readonly placeholder?: string
}) => {
  const isWrong = failure !== undefined && fieldOf(failure) === name
  const ids = [
    ...(hint === undefined ? [] : [`${name}-hint`]),
    ...(isWrong ? [`${name}-wrong`] : [])
  ]
  return (
    <div class="keys-field">
      <label for={`key-${name}`}>{label}</label>
      <input
        id={`key-${name}`}
        name={name}
        autocomplete="off"
        spellcheck={false}
        {...(firstDay === undefined ? {} : { type: "date", min: firstDay })}
        aria-invalid={isWrong}
        aria-describedby={ids.join(" ") || undefined}
        {...more}
      />
      {hint === undefined ? undefined : (
        <span class="faint" id={`${name}-hint`}>
          {hint}
        </span>
      )}
      {isWrong ? (
        <span class="keys-wrong" id={`${name}-wrong`} role="alert">
          {failure.message}
        </span>
      ) : undefined}
    </div>
  )
}
