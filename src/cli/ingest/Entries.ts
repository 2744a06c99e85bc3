/**
 * What is sent of a unit: its own text with an id, so that numbers and keys stay as they were
 * written; or why it can't be sent.
 */
import { hash } from "node:crypto"
import { isObject, parseJson } from "../../domain/json/Json.ts"
import type { Unit } from "./Units.ts"

/** A unit with what is sent of it, or with why it is refused already. */
export type Entry = Unit &
  ({ readonly body: string } | { readonly code: string; readonly message: string })

/** Turns the text of a unit into a JSON object's text. Throws Error that says what is wrong. */
export type ToObject = (text: string) => { readonly text: string; readonly value: unknown }

export const jsonToObject: ToObject = (text) => ({ text, value: parseJson(text) })

/**
 * The id of the event that ends at an offset of a file of this content: the same whenever it is sent,
 * so that the service stores it once. A UUID of version 8 (RFC 9562).
 */
export const idAt = (identity: string, offset: number): string => {
  const hex = hash("sha256", `${identity}:${offset}`)
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32)
  ].join("-")
}

const withId = (text: string, id: string): string => {
  const members = text.slice(1)
  const separator = members.trimStart().startsWith("}") ? "" : ","
  return `{"id":"${id}"${separator}${members}`
}

/** What is sent of a unit. */
export const toEntry = (unit: Unit, identity: string, toObject: ToObject): Entry => {
  if (!unit.isUtf8) return { ...unit, code: "unreadable", message: "is not UTF-8; convert it" }
  try {
    const { text, value } = toObject(unit.text)
    if (!isObject(value)) return { ...unit, code: "not_an_object", message: "is no JSON object" }
    if (!Object.hasOwn(value, "id")) {
      return { ...unit, body: withId(text, idAt(identity, unit.end.offset)) }
    }
    return value["id"] === null
      ? { ...unit, code: "invalid_id", message: "id: is null; leave it out" }
      : { ...unit, body: text }
  } catch (error) {
    return { ...unit, code: "unreadable", message: (error as Error).message }
  }
}
