/** Every variable for `--help`. */
import { fileNameOf } from "./SecretFiles.ts"
import { type Variable, variables } from "./Variables.ts"

/** Two spaces, the longest name, and one more. */
const HELP_NAME_COLUMNS = Math.max(...Object.keys(variables).map((name) => name.length)) + 3
const HELP_COLUMNS = 100

const wrapped = (words: string, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of words.split(" ")) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > columns) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** Every variable with its meaning, what is allowed and its default: the text of `--help`. */
export const configHelp = (): string => {
  const lines: Array<string> = []
  let group = ""
  for (const [name, variable] of Object.entries<Variable<unknown>>(variables)) {
    if (variable.group !== group) {
      group = variable.group
      lines.push(...(lines.length === 0 ? [] : [""]), group)
    }
    const columns = HELP_COLUMNS - HELP_NAME_COLUMNS
    const about = [
      ...wrapped(variable.about, columns),
      ...wrapped(`allowed: ${variable.allowed}`, columns),
      ...wrapped(`default: ${variable.unset}`, columns),
      ...(variable.secret ? [`or in a file: ${fileNameOf(name)} names it`] : [])
    ]
    for (const [index, line] of about.entries()) {
      lines.push(`${(index === 0 ? `  ${name}` : "").padEnd(HELP_NAME_COLUMNS)}${line}`)
    }
  }
  return `${lines.join("\n")}\n`
}
