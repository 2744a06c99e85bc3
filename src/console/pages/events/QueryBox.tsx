/** The query language of the API in one box, with the names of fields and their values. */
import { useSignal } from "@preact/signals"
import type { RefObject } from "preact"
import { useEffect, useRef } from "preact/hooks"
import type { EventFacets } from "../../../client/gen/Api.d.ts"
import { explainWhere } from "../../../domain/events/where/Explain.ts"
import { parseWhere } from "../../../domain/events/where/Parse.ts"
import { type ApiFailure, call } from "../../api/Client.ts"
import { pathWith, filterOf as viewFilter } from "../../state/EventsView.ts"
import { lastSearches, noteSearch } from "../../state/Searches.ts"
import { hasAlternatives, restOf, whereFields, whereValue, wordBefore } from "../../state/Where.ts"

interface Offer {
  readonly text: string
  readonly hint: string
}

const searchOffers = (): ReadonlyArray<Offer> =>
  lastSearches()
    .slice(0, OFFERS_MAX)
    .map((text) => ({ text, hint: "asked before" }))

const countable = ["action", "outcome", "actor_type", "actor_id", "resource_type", "resource_id"]
const OFFERS_MAX = 8
const PAUSE_MS = 150

const fieldOffers = (word: string): ReadonlyArray<Offer> =>
  word === ""
    ? []
    : whereFields
        .filter((field) => field.startsWith(word) && field !== word)
        .map((field) => ({ text: field.endsWith(".") ? field : `${field}:`, hint: "" }))

const whereAlone = (where: string): string =>
  viewFilter({ where, from: undefined, to: undefined }, Date.now())

/** How a text is read, in words; nothing of one that can't be. */
const readingOf = (text: string): string | undefined => {
  try {
    return text.trim() === "" ? undefined : explainWhere(parseWhere(text, new Date().toISOString()))
  } catch {
    return undefined
  }
}

/** What is asked of the values of a field. */
interface ValuesAsked {
  readonly field: string
  /** How they begin. */
  readonly begun: string
  /** The expression without this condition. */
  readonly rest: string
  /** The filter of an expression, with what the page has beside it. */
  readonly filterOf: (where: string) => string
}

/** Values of a field among what the rest finds, most frequent first. */
const valueOffers = async (
  { begun, field, filterOf, rest }: ValuesAsked,
  signal: AbortSignal
): Promise<ReadonlyArray<Offer>> => {
  const text = begun.replace(/^"/, "")
  const own = text === "" ? [] : [`${field}:${whereValue(text)}*`]
  // An alternative to the rest is not narrowed by it.
  const narrowing = hasAlternatives(rest) || readingOf(rest) === undefined ? [] : [rest]
  const filter = filterOf([...narrowing, ...own].join(" "))
  const path = pathWith("/v1/events/facets", filter, `fields=${field}&limit=${OFFERS_MAX}`)
  const { facets } = await call<EventFacets>(path, { signal })
  return facets
    .flatMap(({ groups }) => groups)
    .map(({ count, key }) => ({ text: `${field}:${whereValue(key)} `, hint: String(count) }))
}

/** What is offered at the cursor of a box, and which of it is marked. */
const useOffers = (
  input: RefObject<HTMLInputElement | null>,
  filterOf: (where: string) => string
) => {
  const offers = useSignal<ReadonlyArray<Offer>>([])
  const marked = useSignal(-1)
  const asking = useRef<AbortController | undefined>(undefined)
  const close = (): void => {
    asking.current?.abort()
    offers.value = []
    marked.value = -1
  }
  const offer = (): void => {
    asking.current?.abort()
    marked.value = -1
    const { selectionStart, value } = input.current!
    if (value.trim() === "") {
      offers.value = searchOffers()
      return
    }
    const cursor = selectionStart ?? value.length
    const { start, word } = wordBefore(value, cursor)
    const [, field, begun] = /^([a-z_]+):([^]*)$/.exec(word) ?? []
    if (field === undefined || !countable.includes(field)) {
      offers.value = fieldOffers(word)
      return
    }
    // Those that still fit stay until the service has answered.
    offers.value = offers.value.filter(({ text }) => text.startsWith(word))
    const controller = new AbortController()
    asking.current = controller
    setTimeout(() => {
      if (controller.signal.aborted) return
      const rest = restOf(value, start, cursor)
      valueOffers({ field, begun: begun ?? "", rest, filterOf }, controller.signal).then(
        (found) => {
          if (!controller.signal.aborted) offers.value = found
        },
        // The box works without offers.
        () => {}
      )
    }, PAUSE_MS)
  }
  const take = ({ text: taken }: Offer): void => {
    const box = input.current!
    const cursor = box.selectionStart ?? box.value.length
    const { start } = wordBefore(box.value, cursor)
    box.setRangeText(taken, start, cursor, "end")
    box.focus()
    close()
    box.dispatchEvent(new Event("input", { bubbles: true }))
    if (!taken.endsWith(":")) close()
  }
  /** True if the key was one for the list. */
  const press = (key: string): boolean => {
    const last = offers.value.length - 1
    if (last < 0) return false
    if (key === "ArrowDown") marked.value = Math.min(last, marked.value + 1)
    else if (key === "ArrowUp") marked.value = Math.max(-1, marked.value - 1)
    else if (key === "Tab") take(offers.value[Math.max(0, marked.value)]!)
    else if (key === "Enter" && marked.value >= 0) take(offers.value[marked.value]!)
    else if (key === "Escape") close()
    else return false
    return true
  }
  useEffect(() => close, [])
  return { offers: offers.value, marked: marked.value, close, offer, press, take }
}

const Offers = ({
  marked,
  offers,
  take
}: {
  readonly offers: ReadonlyArray<Offer>
  readonly marked: number
  readonly take: (offer: Offer) => void
}) => (
  <div
    id="where-offers"
    class="offers"
    role="listbox"
    tabIndex={-1}
    aria-label="Fields and values"
    hidden={offers.length === 0}
  >
    {offers.map((one, at) => (
      <div
        key={one.text}
        id={`where-offer-${at}`}
        role="option"
        tabIndex={-1}
        aria-selected={at === marked}
        onPointerDown={(event) => {
          // The box would lose the focus, and close the list.
          event.preventDefault()
          take(one)
        }}
      >
        <span>{one.text}</span> <span class="faint number">{one.hint}</span>
      </div>
    ))}
  </div>
)

export const QueryBox = ({
  apply,
  failure,
  filterOf = whereAlone,
  text
}: {
  readonly text: string
  /** The filter of the page with this expression in place of its own, if it has more than that. */
  readonly filterOf?: (where: string) => string
  readonly apply: (where: string) => void
  /** What the service says of the expression that is applied. */
  readonly failure: ApiFailure | undefined
}) => {
  const input = useRef<HTMLInputElement>(null)
  const typed = useSignal(text)
  const { close, marked, offer, offers, press, take } = useOffers(input, filterOf)
  useEffect(() => {
    if (input.current !== null) input.current.value = text
    typed.value = text
    close()
  }, [text])
  const reading = readingOf(typed.value)
  const onKey = (event: KeyboardEvent): void => {
    const isLeft = event.key === "Escape" && offers.length === 0
    if (isLeft) input.current?.blur()
    if (!isLeft && (event.shiftKey || !press(event.key))) return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <search class="query">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          close()
          const where = input.current?.value.trim() ?? ""
          noteSearch(where)
          apply(where)
        }}
      >
        <label for="where" class="hidden">
          Query
        </label>
        <input
          ref={input}
          id="where"
          type="text"
          role="combobox"
          aria-expanded={offers.length > 0}
          aria-controls="where-offers"
          aria-autocomplete="list"
          aria-activedescendant={marked >= 0 ? `where-offer-${marked}` : undefined}
          aria-invalid={failure !== undefined}
          aria-describedby={failure === undefined ? undefined : "where-failure"}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          maxLength={4_096}
          placeholder="outcome:failure actor:u_1* metadata.amount>10000, or any text"
          defaultValue={text}
          onInput={(event) => {
            typed.value = event.currentTarget.value
            offer()
          }}
          onFocus={(event) => {
            if (event.currentTarget.value.trim() === "") offer()
          }}
          onKeyDown={onKey}
          onBlur={close}
        />
        <button type="submit" class="primary">
          Search
        </button>
        <Offers offers={offers} marked={marked} take={take} />
      </form>
      {reading === undefined ? undefined : <p class="reading">Read as: {reading}</p>}
      {failure === undefined ? undefined : (
        <p id="where-failure" class="failure" role="alert">
          {failure.message}
        </p>
      )}
    </search>
  )
}
