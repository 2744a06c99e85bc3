/** What does not hold, one row each: what was expected and what is there, side by side. */
import { Scrolls } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"

export interface Finding {
  /** null: about no single record. */
  readonly sequence_number: number | null
  readonly reason: string
  readonly expected: string
  readonly actual: string
  /** Of a pack. */
  readonly file?: string
}

const Cell = ({ isLong = false, text }: { readonly text: string; readonly isLong?: boolean }) => (
  <td class={isLong ? "long" : undefined}>
    <code>{text}</code>
  </td>
)

export const Findings = ({
  findings,
  label
}: {
  readonly findings: ReadonlyArray<Finding>
  readonly label: string
}) => {
  const hasFiles = findings.some(({ file }) => file !== undefined)
  return (
    <Scrolls label={label}>
      <table class="share-findings">
        <thead>
          <tr>
            <th scope="col">Sequence</th>
            <th scope="col">Reason</th>
            {hasFiles ? <th scope="col">File</th> : undefined}
            <th scope="col">Expected</th>
            <th scope="col">Actual</th>
          </tr>
        </thead>
        <tbody>
          {findings.map(({ actual, expected, file, reason, sequence_number }, place) => (
            <tr key={place}>
              <td>{sequence_number === null ? "–" : `#${count(sequence_number)}`}</td>
              <Cell text={reason} />
              {hasFiles ? <Cell text={file ?? "–"} /> : undefined}
              <Cell text={expected} isLong />
              <Cell text={actual} isLong />
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolls>
  )
}
