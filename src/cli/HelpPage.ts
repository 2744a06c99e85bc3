/** docs/cli.md, made of the help of the commands. Writes nothing itself. */
import type { Command } from "commander"
import { makeProgram } from "./Program.ts"

export const CLI_PAGE_FILE = "docs/cli.md"

const INTRODUCTION = `# The command line

Made of the commands' own help by \`npm run generate\`.

In a clone \`npx alk\` runs it; \`npx alk up\` is \`npm start\`. The other commands ask a service, which
\`alk login\` or \`ALK_URL\` and \`ALK_API_KEY\` name. Keys are never arguments: other users of a machine see
those in the list of processes.
`

/** What a command prints for --help. */
const helpOf = (command: Command): string => {
  let text = ""
  command.configureOutput({
    writeOut: (part) => {
      text += part
    }
  })
  command.outputHelp()
  return text.trim()
}

const section = (title: string, command: Command): string =>
  `\n## ${title}\n\n\`\`\`text help\n${helpOf(command)}\n\`\`\`\n`

/** The page: the program, and each command in the order of their names. */
export const cliPage = (): string => {
  const program = makeProgram()
  const commands = program.commands
    .flatMap((one) => (one.commands.length === 0 ? [one] : one.commands))
    .map((command) => {
      const above = command.parent === program ? "" : `${command.parent!.name()} `
      return [`alk ${above}${command.name()}`, command] as const
    })
    .sort(([left], [right]) => (left < right ? -1 : 1))
  return [
    INTRODUCTION,
    section("alk", program),
    ...commands.map(([title, command]) => section(title, command))
  ].join("")
}
