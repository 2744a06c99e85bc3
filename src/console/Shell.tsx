/** What is around every page: the menu, who is signed in, how it looks, and the keyboard. */
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { useLocation } from "preact-iso/router"
import type { Chain } from "../client/gen/Api.d.ts"
import { useAnswer } from "./api/Answer.ts"
import { Palette } from "./Palette.tsx"
import { places } from "./Places.ts"
import { Ago, Failure, State } from "./parts/Basics.tsx"
import { count } from "./parts/Format.ts"
import { pageKeys } from "./state/PageKeys.ts"
import { keys, theme, themes, zone, zones } from "./state/Preferences.ts"
import { type SignedIn, signOut, signOutFailure } from "./state/Session.ts"

type Session = Extract<SignedIn, { readonly is: "in" }>

const Choice = <A extends string>({
  label,
  options,
  value
}: {
  readonly label: string
  readonly options: ReadonlyArray<A>
  readonly value: { value: A }
}) => (
  <label>
    <span class="faint">{label}</span>
    <select
      value={value.value}
      onChange={({ currentTarget }) => (value.value = currentTarget.value as A)}
    >
      {options.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  </label>
)

/** A page below another one is part of it. */
const isAt = (place: string, path: string): boolean =>
  place === path || (place !== "/" && path.startsWith(`${place}/`))

const titleAt = (path: string): string => {
  const place = places.find((one) => isAt(one.path, path))
  return place === undefined ? "alk" : `${place.title} · alk`
}

const Menu = ({ path }: { readonly path: string }) => (
  <nav class="menu-list" aria-label="Pages">
    <ul>
      {places.map((place) => (
        <li key={place.path}>
          <a href={place.path} aria-current={isAt(place.path, path) ? "page" : undefined}>
            <span>{place.title}</span>
            <span class="chord" aria-hidden="true">
              g {place.letter}
            </span>
          </a>
        </li>
      ))}
    </ul>
  </nav>
)

const Who = ({ session }: { readonly session: Session["session"] }) => (
  <div class="who">
    <strong>{session.tenant_id}</strong>
    <span class="faint">{session.scopes.join(" + ")}</span>
    <button type="button" class="quiet" onClick={() => void signOut()}>
      Sign out
    </button>
    {signOutFailure.value === undefined ? undefined : <Failure failure={signOutFailure.value} />}
  </div>
)

/** How often the newest checkpoint is asked for. */
const SIGNED_SECONDS = 15

/** How far the chain of events is signed, on every page; a word less than what is not known. */
const Signed = () => {
  const { data, failure } = useAnswer<Chain>("/v1/chain", SIGNED_SECONDS)
  if (failure !== undefined) return <State tone="warn">last checkpoint: not up to date</State>
  if (data === undefined) return <span class="faint">last checkpoint …</span>
  const { checkpoint } = data
  return checkpoint === undefined ? (
    <span class="faint">no checkpoint yet</span>
  ) : (
    <a href="/chain">
      Signed to #{count(checkpoint.tree_size)} <Ago at={checkpoint.created_at} />
    </a>
  )
}

const shortcuts: ReadonlyArray<readonly [keys: string, what: string]> = [
  ...places.map(({ letter, title }) => [`g ${letter}`, title] as const),
  ["Ctrl K", "go to a page, an event, an id; run a command (⌘K on a Mac)"],
  ["?", "this help"],
  ["Esc", "close what is open"]
]

/** True where a key is text, or belongs to what has the focus. */
const isTyping = ({ target }: KeyboardEvent): boolean =>
  target instanceof HTMLElement
  && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

const isPressed = ({ target }: KeyboardEvent): boolean =>
  target instanceof HTMLElement && target.closest("button, a, summary, [role=option]") !== null

/** Milliseconds in which the letter follows the `g`. */
const CHORD_MS = 1_000

const useShortcuts = (showHelp: () => void): void => {
  const { route } = useLocation()
  useEffect(() => {
    let chordUntil = 0
    const onKey = (event: KeyboardEvent): void => {
      if (keys.peek() === "off" || isTyping(event)) return
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (document.querySelector("dialog[open]") !== null) return
      if (event.key === "?") return showHelp()
      const place =
        event.timeStamp < chordUntil ? places.find(({ letter }) => letter === event.key) : undefined
      chordUntil = event.key === "g" ? event.timeStamp + CHORD_MS : 0
      const own = pageKeys.peek().findLast(({ key }) => key === event.key)
      // Enter on a button or a link is a click on it.
      const isClick = event.key === "Enter" && isPressed(event)
      if ((place ?? own) === undefined || isClick) return
      event.preventDefault()
      if (place === undefined) own?.run()
      else route(place.path)
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [route, showHelp])
}

/** The page within the menu. */
export const Shell = ({
  children,
  session
}: {
  readonly session: Session["session"]
  readonly children: ComponentChildren
}) => {
  const { path } = useLocation()
  const content = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    document.title = titleAt(path)
    if (!isFirst.current) content.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [path])
  const help = useRef<HTMLDialogElement>(null)
  const showHelp = useRef(() => help.current?.showModal())
  useShortcuts(showHelp.current)
  return (
    <div class="shell">
      <a class="skip" href="#content">
        To the content
      </a>
      <aside>
        <p class="brand">
          <strong>alk</strong>
        </p>
        {session.scopes.includes("read") ? (
          <p class="signed">
            <Signed />
          </p>
        ) : undefined}
        <Menu path={path} />
        <div class="bottom">
          <Who session={session} />
          <Choice label="Colours" options={themes} value={theme} />
          <Choice label="Times" options={zones} value={zone} />
          <p class="links">
            <a href="/docs/guide" target="_blank" rel="noreferrer">
              Guide
            </a>
            <a href="/docs" target="_blank" rel="noreferrer">
              API reference
            </a>
            <button type="button" class="quiet" onClick={showHelp.current}>
              Keyboard
            </button>
            <Palette showHelp={showHelp.current} />
          </p>
        </div>
      </aside>
      <main id="content" ref={content} tabIndex={-1}>
        {children}
      </main>
      <dialog ref={help} aria-labelledby="help-title">
        <h2 id="help-title">Keyboard</h2>
        <dl class="keys">
          {[...shortcuts, ...pageKeys.value.map(({ key, what }) => [key, what] as const)].map(
            ([keys, what]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            )
          )}
        </dl>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </dialog>
    </div>
  )
}
