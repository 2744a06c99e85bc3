/**
 * The palette: pages, what the open page can do, what one likes, and places that a text names, in one
 * box over the page. Opened and closed with ⌘K or Ctrl+K.
 */
import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { useLocation } from "preact-iso/router"
import { fitting, jumpsOf, type Named, searchOf } from "./PaletteMatch.ts"
import { places } from "./Places.ts"
import { copyLink, said } from "./state/Copying.ts"
import { pageKeys } from "./state/PageKeys.ts"
import { theme, themes, zone, zones } from "./state/Preferences.ts"
import { signOut } from "./state/Session.ts"

interface Entry extends Named {
  readonly hint: string
  readonly run: () => void
}

type Route = (path: string) => void

/** Keys of the page that only make sense while it has the focus. */
const isCommand = (key: string): boolean => !["Escape", "Enter", "j", "k"].includes(key)

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Everything that has a name, the same for every text. */
const namedEntries = (route: Route, showHelp: () => void): ReadonlyArray<Entry> => {
  const ofPage = pageKeys.peek().filter(({ key }) => isCommand(key))
  const hasLink = ofPage.some(({ key }) => key === "y")
  return [
    ...places.map(({ letter, path, title }) => ({
      title,
      hint: `g ${letter}`,
      run: () => route(path)
    })),
    { title: "How to send events and runs", hint: "", run: () => route("/start") },
    ...ofPage.map(({ key, run, what }) => ({ title: capital(what), hint: key, run })),
    ...(hasLink ? [] : [{ title: "Copy the link", hint: "", run: copyLink }]),
    ...themes.map((one) => ({
      title: `Colours: ${one}`,
      hint: theme.peek() === one ? "chosen" : "",
      run: () => (theme.value = one)
    })),
    ...zones.map((one) => ({
      title: `Times: ${one}`,
      hint: zone.peek() === one ? "chosen" : "",
      run: () => (zone.value = one)
    })),
    { title: "Keyboard help", hint: "?", run: showHelp },
    { title: "Sign out", hint: "", run: () => void signOut() }
  ]
}

const entriesOf = (text: string, route: Route, showHelp: () => void): ReadonlyArray<Entry> => {
  const search = searchOf(text)
  const jumps = [...jumpsOf(text), ...(search === undefined ? [] : [search])].map((jump) => ({
    ...jump,
    hint: "",
    run: () => route(jump.path)
  }))
  const named = fitting(namedEntries(route, showHelp), text)
  // What the text names by its form comes first, the search for it last.
  return [...jumps.slice(0, -1), ...named, ...jumps.slice(-1)]
}

const isShortcut = ({ altKey, ctrlKey, key, metaKey, shiftKey }: KeyboardEvent): boolean =>
  key.toLowerCase() === "k" && (metaKey || ctrlKey) && !altKey && !shiftKey

const Offers = ({
  entries,
  marked,
  take
}: {
  readonly entries: ReadonlyArray<Entry>
  readonly marked: number
  readonly take: (entry: Entry) => void
}) => (
  <div id="palette-offers" class="palette-offers" role="listbox" tabIndex={-1} aria-label="Found">
    {entries.map((entry, at) => (
      <div
        key={entry.title}
        id={`palette-offer-${at}`}
        role="option"
        tabIndex={-1}
        aria-selected={at === marked}
        onPointerDown={(event) => event.preventDefault()}
        onClick={() => take(entry)}
        onKeyDown={({ key }) => key === "Enter" && take(entry)}
      >
        <span>{entry.title}</span> <span class="faint">{entry.hint}</span>
      </div>
    ))}
  </div>
)

/** The entry that a key leads to, in a list that goes round; undefined for keys without a meaning. */
const markAfter = (key: string, marked: number, length: number): number | undefined => {
  if (length === 0) return undefined
  if (key === "ArrowDown") return (marked + 1) % length
  if (key === "ArrowUp") return (marked + length - 1) % length
  return undefined
}

const useShortcut = (toggle: () => void): void => {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!isShortcut(event)) return
      event.preventDefault()
      toggle()
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [toggle])
}

const usePalette = (showHelp: () => void) => {
  const { route } = useLocation()
  const dialog = useRef<HTMLDialogElement>(null)
  const text = useSignal("")
  const marked = useSignal(0)
  const isOpen = useSignal(false)
  const entries = isOpen.value ? entriesOf(text.value, route, showHelp) : []
  const close = (): void => dialog.current?.close()
  const take = ({ run }: Entry): void => {
    close()
    run()
  }
  const toggle = useRef(() => {
    const element = dialog.current
    if (element === null) return
    if (element.open) return element.close()
    if (document.querySelector("dialog[open]") !== null) return
    text.value = ""
    marked.value = 0
    isOpen.value = true
    element.showModal()
  })
  useShortcut(toggle.current)
  const type = (typed: string): void => {
    text.value = typed
    marked.value = 0
  }
  const press = (event: KeyboardEvent): void => {
    const next = markAfter(event.key, marked.value, entries.length)
    const chosen = event.key === "Enter" ? entries[marked.value] : undefined
    if (next === undefined && chosen === undefined) return
    event.preventDefault()
    if (chosen !== undefined) return take(chosen)
    marked.value = next!
    document.getElementById(`palette-offer-${next}`)?.scrollIntoView({ block: "nearest" })
  }
  return { dialog, entries, isOpen, marked, press, take, text, toggle: toggle.current, type }
}

/** The palette, its button, and what was said of the last copy. */
export const Palette = ({ showHelp }: { readonly showHelp: () => void }) => {
  const palette = usePalette(showHelp)
  const { dialog, entries, isOpen, marked, press, take, text, toggle, type } = palette
  return (
    <>
      <button type="button" class="quiet" onClick={toggle}>
        Go to … <kbd>Ctrl K</kbd>
      </button>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard closes every dialog with Esc */}
      <dialog
        ref={dialog}
        class="palette"
        aria-label="Go to"
        // It is told later: the palette may have been opened again meanwhile.
        onClose={({ currentTarget }) => (isOpen.value = currentTarget.open)}
        onClick={({ currentTarget, target }) => target === currentTarget && currentTarget.close()}
      >
        <input
          type="text"
          role="combobox"
          aria-label="Page, action, event number, id, or any text"
          aria-expanded={entries.length > 0}
          aria-controls="palette-offers"
          aria-autocomplete="list"
          aria-activedescendant={entries.length > 0 ? `palette-offer-${marked.value}` : undefined}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          maxLength={1_000}
          placeholder="Page, action, #123, id, or any text"
          value={text.value}
          onInput={({ currentTarget }) => type(currentTarget.value)}
          onKeyDown={press}
        />
        <Offers entries={entries} marked={marked.value} take={take} />
      </dialog>
      <p class="copied" role="status">
        {said.value}
      </p>
    </>
  )
}
