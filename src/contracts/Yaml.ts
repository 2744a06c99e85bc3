/**
 * JSON values as YAML 1.2 in block style, enough for documents that people read. Every reader of
 * YAML gets the same value back.
 */
import type { JsonValue } from "./JsonSchema.ts"

/** Text that no reader takes for a number, a date, a boolean or null. */
const PLAIN = /^[A-Za-z/$][A-Za-z0-9 _./$()-]*$/
const RESERVED = /^(?:true|false|yes|no|on|off|y|n|null)$/i

const isPlain = (text: string): boolean =>
  PLAIN.test(text) && !RESERVED.test(text) && !text.endsWith(" ")

/** Text of several lines needs no quotes if its first line is not indented. */
const isBlock = (text: string): boolean => /^[^\s].*\n/.test(text) && !/[^\n\x20-\x7e]/.test(text)

const scalar = (value: string | number | boolean | null): string =>
  typeof value === "string" && isPlain(value) ? value : JSON.stringify(value)

const isScalar = (value: JsonValue): value is string | number | boolean | null =>
  typeof value !== "object" || value === null

const isEmpty = (value: object): boolean => Object.keys(value).length === 0

const block = (text: string, indent: string): string => {
  const body = text.replace(/\n+$/, "")
  const kept = text.length - body.length
  const mark = kept === 0 ? "|-" : kept === 1 ? "|" : "|+"
  const lines = text.slice(0, body.length + Math.max(0, kept - 1)).split("\n")
  return [mark, ...lines.map((line) => (line === "" ? "" : `${indent}${line}`))].join("\n")
}

/** What follows a colon or a dash, up to the end of its lines. */
const behind = (value: JsonValue, indent: string, inList: boolean): string => {
  if (isScalar(value)) {
    const text = typeof value === "string" && isBlock(value) ? block(value, indent) : scalar(value)
    return ` ${text}`
  }
  if (isEmpty(value)) return Array.isArray(value) ? " []" : " {}"
  const inner = lines(value, indent)
  return inList ? ` ${inner.slice(indent.length)}` : `\n${inner}`
}

const lines = (value: JsonValue, indent: string): string => {
  const deeper = `${indent}  `
  return Array.isArray(value)
    ? value.map((item) => `${indent}-${behind(item, deeper, true)}`).join("\n")
    : Object.entries(value as { readonly [name: string]: JsonValue })
        .map(([name, member]) => `${indent}${scalar(name)}:${behind(member, deeper, false)}`)
        .join("\n")
}

/** A whole document, with a line feed at its end. */
export const toYaml = (document: { readonly [name: string]: JsonValue }): string =>
  `${lines(document, "")}\n`
