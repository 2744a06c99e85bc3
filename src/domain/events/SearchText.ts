/** The texts of an event that a search looks in, and how it compares them. */
import { isObject, type JsonValue } from "../json/Json.ts"
import type { AuditEvent } from "./AuditEvent.ts"

const collectStrings = (value: JsonValue, into: Array<string>): void => {
  if (typeof value === "string") into.push(value)
  else if (Array.isArray(value)) for (const element of value) collectStrings(element, into)
  else if (isObject(value)) for (const key in value) collectStrings(value[key]!, into)
}

/**
 * The text without its case. Lower-casing writes a capital sigma at the end of a word as ς: the start
 * of a word, searched for in capitals, would not be found in it.
 */
export const withoutCase = (text: string): string => text.toLowerCase().replaceAll("ς", "σ")

/** Between searchable texts; none of them holds it, since U+0000 can't be stored. */
const SEPARATOR = "\u0000"

/**
 * The texts that `q` looks in, without their case and joined by U+0000: action, actor.id, actor.email,
 * resource.id, .type, .name and every string value in metadata (keys are not among them).
 */
export const searchText = ({ action, actor, metadata, resource }: AuditEvent): string => {
  const texts = [action, actor.id, resource.id, resource.type]
  if (actor.email !== undefined) texts.push(actor.email)
  if (resource.name !== undefined) texts.push(resource.name)
  if (metadata !== undefined) collectStrings(metadata, texts)
  return withoutCase(texts.join(SEPARATOR))
}

/** Whether one of the texts of `searchText` holds `q`, whatever the case. */
export const searchFor = (q: string): ((searched: string) => boolean) => {
  if (q.includes(SEPARATOR)) return () => false
  const wanted = withoutCase(q)
  return (searched) => searched.includes(wanted)
}
