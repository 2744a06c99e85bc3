/** What the declarations of commands share: their form, and options that many of them have. */
import type { Command } from "commander"
import { collect, wholeNumber } from "../Arguments.ts"

/** Columns of the text of `--help`. */
export const HELP_WIDTH = 96

/** The headings under which `alk --help` lists the commands. */
export const GROUPS = {
  service: "The service:",
  write: "Send:",
  read: "Read:",
  verify: "Verify and hand out:",
  administer: "Administer:",
  shell: "This machine:"
} as const

export interface Declaration {
  /** Name and arguments: `get <id>`. */
  readonly usage: string
  readonly description: string
  readonly examples: ReadonlyArray<string>
  readonly group?: string
  /** After the examples. */
  readonly notes?: string
}

const exampleText = ({ examples, notes }: Declaration): string =>
  `\nExamples:\n${examples.map((one) => `  ${one}\n`).join("")}${notes === undefined ? "" : `\n${notes}\n`}`

/** A command below another one. */
export const declare = (parent: Command, declaration: Declaration): Command => {
  const { description, group, usage } = declaration
  const command = parent.command(usage).description(description)
  if (group !== undefined) command.helpGroup(group)
  return command.addHelpText("after", exampleText(declaration))
}

/** What the first argument may be, for completion; the command itself refuses others. */
export const proposing = (command: Command, choices: ReadonlyArray<string>): Command => {
  const [first] = command.registeredArguments
  if (first !== undefined) first.argChoices = [...choices]
  return command
}

/** Options of commands that ask the service. */
export const ofService = (command: Command): Command =>
  command
    .option("--url <url>", "address of the service, in place of the context's or ALK_URL")
    .option("--context <name>", "a context of alk login, in place of the current one")

/** Options of commands that have a result. */
export const withResult = (command: Command): Command =>
  command
    .option("--json", "JSON, as in a pipe: a line each for lists")
    .option("-q, --quiet", "nothing on standard error but errors")
    .option("-o, --output <file>", "write into a file, which is there once it is whole")

/** Filters of lists of events. */
export const withFilters = (command: Command): Command =>
  command
    .option("--action <pattern>", "action, or its beginning with a star; may be repeated", collect)
    .option("--actor <id>", "id of the actor; may be repeated", collect)
    .option("--actor-type <type>", "human, agent or system", collect)
    .option("--resource <id>", "id of the resource; may be repeated", collect)
    .option("--resource-type <type>", "type of the resource", collect)
    .option("--outcome <outcome>", "success, failure or error", collect)
    .option("--from <time>", "RFC 3339, or from now: -24h")
    .option("--to <time>", "RFC 3339, or from now: -1h")
    .option("--search <words>", "words anywhere in the event")
    .option("--where <expression>", "an expression with AND, OR and NOT")
    .option("--filter <condition>", "any parameter of the list: metadata.with=carol", collect)

/** `--limit`. */
export const withLimit = (command: Command, what: string, byDefault: number): Command =>
  command.option(
    "-n, --limit <number>",
    `${what} at most; 0 for all`,
    wholeNumber("--limit", 0),
    byDefault
  )
