/** The way to the pages before and after one of a list. */
import { count, counted } from "../../parts/Format.ts"

export const PageLinks = ({
  label,
  noun,
  page,
  size,
  to,
  total
}: {
  readonly label: string
  /** What is counted. */
  readonly noun: string
  readonly page: number
  readonly size: number
  readonly total: number
  readonly to: (page: number) => string
}) => {
  const last = Math.max(1, Math.ceil(total / size))
  return (
    <nav class="near" aria-label={label}>
      {page > 1 ? <a href={to(page - 1)}>Before</a> : undefined}
      <span class="faint">
        {last === 1 ? "" : `page ${count(page)} of ${count(last)}, `}
        {counted(total, noun)}
      </span>
      {page < last ? <a href={to(page + 1)}>Next</a> : undefined}
    </nav>
  )
}
