/** The formulas of the pages, computed on an event. Shares no code with the program. */
import { createHash } from "node:crypto"
import canonicalize from "canonicalize"

type Values = Readonly<Record<string, unknown>>

/** Commas that are in no inner brackets part the members. */
const membersOf = (text: string): ReadonlyArray<string> =>
  text.split(/,(?![^{]*\})/).map((member) => member.trim())

/** `{id, actor{id,type}, details_hash?}` of the values: what a `?` follows may be missing. */
const objectOf = (shape: string, values: Values): Values =>
  Object.fromEntries(
    membersOf(shape).flatMap((member) => {
      const [, name = "", inner, optional] = /^(\w+)(?:\{(.*)\})?(\?)?$/.exec(member) ?? []
      const value = values[name]
      if (value === undefined && optional === "?") return []
      if (value === undefined) throw new Error(`${member} of a formula is not in the event`)
      return [[name, inner === undefined ? value : objectOf(inner, value as Values)]]
    })
  )

/** A quoted text, `JCS({…})` or the name of a value. */
const partOf = (text: string, values: Values): string => {
  const [, shape] = /^JCS\(\{(.*)\}\)$/.exec(text) ?? []
  if (shape !== undefined) return canonicalize(objectOf(shape, values))!
  const [, quoted] = /^"(.*)"$/.exec(text) ?? []
  if (quoted !== undefined) return quoted
  if (values[text] === undefined) throw new Error(`${text} of a formula is not in the event`)
  return String(values[text])
}

/** What `name = SHA-256( … )` gives; undefined for a line of another form. */
export const computed = (
  line: string,
  values: Values
): { readonly name: string; readonly hash: string } | undefined => {
  const [, name, parts] = /^(\w+) *= SHA-256\( (.*) \)(?: .*)?$/.exec(line) ?? []
  if (name === undefined || parts === undefined) return undefined
  const text = parts.split(" \\n ").map((part) => partOf(part, values))
  return { name, hash: createHash("sha256").update(text.join("\n")).digest("hex") }
}
