/**
 * What a text in the palette leads to: pages and actions whose names fit, an event by its number, a
 * receipt, an execution, a search. Pure; runs nothing.
 */
import { whereFields, whereValue } from "./state/Where.ts"

/** Something with a name that can be chosen. */
export interface Named {
  readonly title: string
}

/** A place that the text itself names. */
export interface Jump extends Named {
  readonly path: string
}

/** Sequence numbers are written without zeros in front; 15 digits are exact in any number. */
const SEQUENCE = /^#?\s?([1-9]\d{0,14})$/
const RECEIPT = /^rcp_[0-9a-f]+$/
/** UUIDs, and trace ids of OpenTelemetry. */
const EXECUTION = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/i
/** Digits in groups, as numbers are shown. */
const GROUPED = /^#?\d{1,3}(?:,\d{3})+$/

/** What the text is about by its form. */
export const jumpsOf = (text: string): ReadonlyArray<Jump> => {
  const wanted = text.trim()
  const number = GROUPED.test(wanted) ? wanted.replaceAll(",", "") : wanted
  const [, sequence] = SEQUENCE.exec(number) ?? []
  if (sequence !== undefined) {
    return [{ title: `Event #${sequence}`, path: `/events?event=${sequence}` }]
  }
  if (RECEIPT.test(wanted)) return [{ title: `Receipt ${wanted}`, path: `/receipts/${wanted}` }]
  if (EXECUTION.test(wanted)) {
    return [{ title: `Execution ${wanted}`, path: `/executions/${wanted}` }]
  }
  return []
}

const isCondition = (text: string): boolean =>
  whereFields.some(
    (field) => text.startsWith(field) && /^[\w.]*[:<>]/.test(text.slice(field.length))
  )

/** A text as a query: what has no form of one is searched for as text. */
const queryOf = (text: string): string =>
  text.split(/\s+/).some((word) => isCondition(word)) ? text : whereText(text)

const whereText = (text: string): string =>
  text.split(/\s+/).every((word) => /^[^()",*\\:<>=-]+$/.test(word) && whereValue(word) === word)
    ? text
    : `"${text.replaceAll(/["\\]/g, "\\$&")}"`

/** The search for a text; undefined for none. */
export const searchOf = (text: string): Jump | undefined => {
  const wanted = text.trim()
  return wanted === ""
    ? undefined
    : {
        title: `Search events for ${wanted}`,
        path: `/events?${new URLSearchParams({ where: queryOf(wanted) })}`
      }
}

/** How well a name fits a text: 0 best, undefined not at all. */
const fitOf = (title: string, wanted: string): number | undefined => {
  const name = title.toLowerCase()
  if (name.startsWith(wanted)) return 0
  if (name.split(/[^a-z0-9]+/).some((word) => word.startsWith(wanted))) return 1
  return wanted.length > 1 && name.includes(wanted) ? 2 : undefined
}

/** Those whose names fit a text, best first; all of them for none. */
export const fitting = <A extends Named>(all: ReadonlyArray<A>, text: string): ReadonlyArray<A> => {
  const wanted = text.trim().toLowerCase()
  if (wanted === "") return all
  return all
    .flatMap((one) => {
      const how = fitOf(one.title, wanted)
      return how === undefined ? [] : [{ one, how }]
    })
    .sort((left, right) => left.how - right.how)
    .map(({ one }) => one)
}
