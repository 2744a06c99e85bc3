/** What an answer holds, once it is there: until then that it is on its way, or what went wrong. */
import type { ComponentChildren } from "preact"
import type { Answer } from "../api/Answer.ts"
import { Failure, Loading, Stale } from "./Basics.tsx"

export const Answered = <A,>({
  answer,
  children,
  what
}: {
  readonly answer: Answer<A>
  /** What is loading, as a noun. */
  readonly what: string
  readonly children: (data: A) => ComponentChildren
}) => {
  const { data, failure, reload } = answer
  if (data !== undefined) {
    return (
      <>
        <Stale answer={answer} />
        {children(data)}
      </>
    )
  }
  return failure === undefined ? (
    <Loading what={what} />
  ) : (
    <Failure failure={failure} retry={reload} />
  )
}
