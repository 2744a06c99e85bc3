/**
 * The JSON text of what is logged. Refuses what JSON.stringify would change without saying so: an
 * audit record that differs from what was logged is worse than none.
 */

/** A value that JSON has no text for. */
export class Unstorable extends Error {
  override readonly name = "Unstorable"
}

/** The service takes 64 levels of metadata; what nests deeper than this may be a circle. */
const LEVELS_MAX = 100

const refuse = (path: string, problem: string): never => {
  throw new Unstorable(`${path}: ${problem}`)
}

const checkObject = (value: object, path: string, level: number): void => {
  if (level > LEVELS_MAX) refuse(path, `nests deeper than ${LEVELS_MAX} levels, or in a circle`)
  if ("toJSON" in value) return
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      if (value[index] === undefined) refuse(`${path}[${index}]`, "undefined; send null instead")
      check(value[index], `${path}[${index}]`, level + 1)
    }
    return
  }
  if (value instanceof Map || value instanceof Set) {
    refuse(path, "a Map or Set, of which JSON keeps nothing; send an object or a list")
  }
  for (const [key, member] of Object.entries(value)) check(member, `${path}.${key}`, level + 1)
}

const check = (value: unknown, path: string, level: number): void => {
  switch (typeof value) {
    case "number":
      if (!Number.isFinite(value)) refuse(path, `${value} is no JSON number; send a string`)
      return
    case "bigint":
      return refuse(path, "a bigint is no JSON number; send a string")
    case "function":
    case "symbol":
      return refuse(path, `a ${typeof value} has no JSON; leave it out`)
    case "object":
      if (value !== null) checkObject(value, path, level)
  }
}

/** The text of an object's members. Throws Unstorable, which names the path. */
export const jsonText = (value: Readonly<Record<string, unknown>>): string => {
  for (const [key, member] of Object.entries(value)) check(member, key, 1)
  return JSON.stringify(value)
}

/** Bytes of a text in UTF-8. */
export const utf8Length = (text: string): number => {
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    // Each half of a surrogate pair counts two of the pair's four bytes.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit & 0xf800) !== 0xd800 ? 2 : 1
  }
  return bytes
}
