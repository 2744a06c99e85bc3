/** docs/settings.md, made of the table of variables. Writes nothing itself. */
import { fileNameOf } from "../config/SecretFiles.ts"
import { type Variable, variables } from "../config/Variables.ts"

export const SETTINGS_PAGE_FILE = "docs/settings.md"

const INTRODUCTION = `# Settings

Every environment variable of the service: what it is for, what it takes and what holds without it. Made of the
program's own table by \`npm run generate\`; \`npm start -- --help\` prints the same.

An unknown \`ALK_…\` variable or a bad value stops the start with a line that names it. Where a row names a
second variable, that one takes a file with the value in it ([secrets](security.md#secrets-and-signing-keys)).
`

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "&lt;")

const row = ([name, variable]: readonly [string, Variable<unknown>]): string => {
  const { about, allowed, secret, unset } = variable
  const names = secret ? `\`${name}\`, \`${fileNameOf(name)}\`` : `\`${name}\``
  return `| ${names} | ${cell(about)} | ${cell(allowed)} | ${cell(unset)} |\n`
}

/** The page: a table for each group. */
export const settingsPage = (): string => {
  const groups = new Map<string, string>()
  for (const entry of Object.entries<Variable<unknown>>(variables)) {
    const { group } = entry[1]
    groups.set(group, (groups.get(group) ?? "") + row(entry))
  }
  const head = "| variable | for | takes | without it |\n|---|---|---|---|\n"
  return [
    INTRODUCTION,
    ...[...groups].map(([title, rows]) => `\n## ${title}\n\n${head}${rows}`)
  ].join("")
}
