/** Checks of what is given on the command line, before and while it is read. */
import { parseJson } from "../domain/json/Json.ts"
import { problemOf } from "../domain/json/StrictJson.ts"
import { usage } from "./Failure.ts"

/** An API key or a token of a share link, alone or as the value of an option. */
const SECRET = /^(?:-{1,2}[\w-]+=)?(?:Bearer )?(?:(?:alk|svc)_live|shr)_[\w-]{16,}$/
const KEY_OPTION = /^--?(?:api-?key|key|token|password)(?:=|$)/i

/**
 * Refuses keys among the arguments: other users of the machine see them in the list of processes, and
 * shells keep them in their history. Throws CommandFailure.
 */
export const refuseSecrets = (args: ReadonlyArray<string>): void => {
  const isSecret = args.some((one) => SECRET.test(one) || KEY_OPTION.test(one))
  if (!isSecret) return
  throw usage(
    "a key can't be an argument: the list of processes and the shell's history would show it",
    "alk login asks for it, or reads it from standard input; or set ALK_API_KEY"
  )
}

/** A whole number of an option. Throws CommandFailure. */
export const wholeNumber = (name: string, minimum: number, maximum = Number.MAX_SAFE_INTEGER) => {
  return (text: string): number => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= minimum && value <= maximum) return value
    const range =
      maximum === Number.MAX_SAFE_INTEGER ? `from ${minimum} on` : `from ${minimum} to ${maximum}`
    throw usage(`${name}: must be a whole number ${range}, is ${JSON.stringify(text)}`)
  }
}

/** `NAME=VALUE` at its first `=`; without one the value is empty. Throws CommandFailure. */
export const pairOf = (option: string, text: string): readonly [name: string, value: string] => {
  const at = text.indexOf("=")
  const name = at < 0 ? text : text.slice(0, at)
  if (name === "") throw usage(`${option}: must be NAME=VALUE, is ${JSON.stringify(text)}`)
  return [name, at < 0 ? "" : text.slice(at + 1)]
}

/**
 * JSON of an option. Throws CommandFailure, also for what would be sent as something else: a number
 * that no double holds, a key that is given twice.
 */
export const jsonOf = (option: string, text: string): unknown => {
  const problem = problemOf(text)
  if (problem === undefined) return parseJson(text)
  throw usage(`${option}: ${problem.message}`, "in a shell, put JSON in single quotes")
}

/** Collects the values of an option that may be repeated. */
export const collect = (
  value: string,
  before: ReadonlyArray<string> = []
): ReadonlyArray<string> => [...before, value]
