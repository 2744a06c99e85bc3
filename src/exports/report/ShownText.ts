/**
 * Foreign text as a page may show it: literally, isolated from its surroundings, with everything
 * that would be invisible, reorder text or have no glyph written as its code point. Nothing is left
 * out without saying how much.
 */
import { hasGlyph } from "./Fonts.ts"
import { type Html, html, nothing } from "./Html.ts"

/** Control, format, private, unassigned and otherwise ignorable characters, odd spaces. */
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u
const ODD_SPACE = /[\u1680\u2000-\u200a\u205f]/u
/** Arabic signs of the category Cf that are seen all the same. */
const SEEN_FORMAT = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2]/u
const MARK = /\p{M}/u
/** Marks on one letter; more than any orthography stacks is meant to overflow the line. */
const MARKS_MAX = 4

const mustBeNamed = (character: string, codePoint: number): boolean =>
  ODD_SPACE.test(character)
  || (UNSEEN.test(character) && !SEEN_FORMAT.test(character))
  || !hasGlyph(codePoint)

const codePointName = (codePoint: number): string =>
  `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}`

const named = (codePoint: number): Html =>
  html`<bdi dir="ltr" class="code-point">${codePointName(codePoint)}</bdi>`

/** The text with what can't be seen spelled out, without any isolation. */
const spelled = (text: string): ReadonlyArray<Html> => {
  const parts: Array<Html> = []
  let plain = ""
  let marks = 0
  for (const character of text) {
    const codePoint = character.codePointAt(0)!
    // Plain ASCII needs no look-up.
    const isPlain = codePoint >= 0x20 && codePoint < 0x7f
    marks = !isPlain && MARK.test(character) ? marks + 1 : 0
    if (isPlain || (marks <= MARKS_MAX && !mustBeNamed(character, codePoint))) {
      plain += character
      continue
    }
    if (plain !== "") parts.push(html`${plain}`)
    plain = ""
    parts.push(named(codePoint))
  }
  if (plain !== "") parts.push(html`${plain}`)
  return parts
}

const grouped = new Intl.NumberFormat("en-US")

/** 1234567 as 1,234,567. */
export const count = (value: number): string => grouped.format(value)

/** `1 event`, `2 events`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

/** Foreign text cut at a number of characters, with the number of those left out. */
export interface CutText {
  readonly text: string
  readonly leftOut: number
}

export const cut = (text: string, lengthMax: number): CutText => {
  if (text.length <= lengthMax) return { text, leftOut: 0 }
  let end = 0
  let characters = 0
  for (const character of text) {
    if (characters < lengthMax) end += character.length
    characters += 1
  }
  return { text: text.slice(0, end), leftOut: Math.max(0, characters - lengthMax) }
}

/** Foreign text in its own direction. */
export const shown = (text: string | CutText | undefined): Html => {
  if (text === undefined) return nothing
  const { leftOut, text: kept } = typeof text === "string" ? { text, leftOut: 0 } : text
  const rest =
    leftOut === 0
      ? nothing
      : html`<span class="left-out"> … ${count(leftOut)} more characters</span>`
  return html`<bdi dir="auto" class="foreign">${spelled(kept)}</bdi>${rest}`
}

/** Hexadecimal digits in groups of eight that stay one word. */
export const hash = (digits: string): Html => {
  const groups = digits.match(/.{1,8}/gu) ?? []
  return html`<span class="hash">${groups.map((group) => html`<span>${group}</span><wbr>`)}</span>`
}

/** `2026-11-21 10:00:01` of a canonical time; always UTC. */
export const seconds = (canonical: string): string => canonical.slice(0, 19).replace("T", " ")

/** The same with its microseconds. */
export const micros = (canonical: string): string => canonical.slice(0, 26).replace("T", " ")

export { duration } from "../../domain/Duration.ts"
