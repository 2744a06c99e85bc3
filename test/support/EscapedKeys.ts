/**
 * Texts on which the JSON.parse of V8 goes wrong (nodejs/node#63785): it may take a key that is
 * written with an escape for the key that came at this place of an earlier object, if that one is
 * equal to the first raw characters. `armingFor` makes the text with those earlier objects.
 */
import { assert } from "vitest"
import { engineConfusesKeys } from "../../src/domain/json/Json.ts"

export interface EscapedKey {
  readonly name: string
  /** The key as it stands in the text. */
  readonly literal: string
  readonly key: string
}

const named = (name: string, literal: string, key: string): EscapedKey => ({ name, literal, key })

export const escapedKeys: ReadonlyArray<EscapedKey> = [
  named("a letter", '"\\u007a"', "z"),
  named("a slash", '"\\/"', "/"),
  named("a quote", '"\\""', '"'),
  named("a line feed", '"\\n"', "\n"),
  named("a letter at the end", '"ab\\u0063"', "abc"),
  named("two characters of Japanese", '"\\u540d\\u524d"', "名前"),
  named("a surrogate pair", '"\\ud83d\\ude00"', "😀"),
  named("quotes in a text", '"say \\"hi\\""', 'say "hi"'),
  named("a path", '"C:\\\\temp"', "C:\\temp"),
  named("a long name", '"\\u0061 key of many characters"', "a key of many characters"),
  named("a prototype", '"\\u005f_proto__"', "__proto__")
]

/** A string of a JSON text, and the colon behind a key. */
const STRING = /"((?:[^"\\]|\\.)*)"(\s*:)?/g

/** The text with the key in the place of each escaped one that the engine may mistake it for. */
export const armingFor = (text: string): string =>
  text.replaceAll(STRING, (found: string, raw: string, colon?: string) => {
    if (colon === undefined || !raw.includes("\\")) return found
    const { length } = JSON.parse(`"${raw}"`) as string
    return JSON.stringify(raw.slice(0, length)) + colon
  })

/** The same text with the first letter of every key written as an escape. */
export const respelled = (text: string): string =>
  text.replaceAll(STRING, (found: string, raw: string, colon?: string) =>
    colon === undefined || !/^[!a-z_]/.test(raw)
      ? found
      : `"\\u${raw.charCodeAt(0).toString(16).padStart(4, "0")}${raw.slice(1)}"${colon}`
  )

let count = 0
/** A name that no object of this process has yet: what follows it is armed by one text alone. */
export const freshName = (): string => `!first${process.pid}x${count++}`

/** Arm this process for a text; false if the runtime reads it well all the same. */
export const arm = (text: string, expected: string): boolean => {
  if (!engineConfusesKeys()) return false
  const arming = armingFor(text)
  for (let time = 0; time < 3; time++) JSON.parse(arming)
  assert.notStrictEqual(JSON.stringify(JSON.parse(text)), expected, "the text is not armed")
  return true
}

/** An object of two members, sent as `text` and stored as `canonical`. */
export interface Victim {
  readonly name: string
  readonly text: string
  readonly arming: string
  readonly canonical: string
}

/** One object for each of the keys. */
export const victims = (): ReadonlyArray<Victim> =>
  escapedKeys.map(({ key, literal, name }) => {
    const first = freshName()
    const text = `{"${first}":1,${literal}:"kept"}`
    const members = [
      [first, `${JSON.stringify(first)}:1`],
      [key, `${JSON.stringify(key)}:"kept"`]
    ]
    members.sort(([left], [right]) => (left! < right! ? -1 : 1))
    const canonical = `{${members.map(([, member]) => member).join(",")}}`
    return { name, text, arming: armingFor(text), canonical }
  })
