/** Pages that show the log, for keys that may read it. */
import type { ComponentType } from "preact"
import { signedIn } from "../state/Session.ts"
import { Empty } from "./Basics.tsx"

/** Everything on them is read from the log. */
const mayRead = (): boolean => {
  const { value } = signedIn
  return value.is === "in" && value.session.scopes.includes("read")
}

/** The page; for another key its title, and what is missing. Nothing is asked then. */
export const readable = (title: string, Page: ComponentType): ComponentType => {
  const Readable = () =>
    mayRead() ? (
      <Page />
    ) : (
      <>
        <h1>{title}</h1>
        <Empty title="Your key may not read">
          <p>
            What is here comes from the log: sign in with a key that has the scope read. How to send
            with this one is on the page of the <a href="/start">first steps</a>.
          </p>
        </Empty>
      </>
    )
  return Readable
}
