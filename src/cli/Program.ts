/** The command line of alk as a whole: all commands with their options. Runs nothing by itself. */
import { Command } from "commander"
import { programVersion } from "../config/ProgramVersion.ts"
import { declareAdministration } from "./declarations/Administration.ts"
import { HELP_WIDTH } from "./declarations/Declare.ts"
import { declareEvidence } from "./declarations/Evidence.ts"
import { declareReading } from "./declarations/Reading.ts"
import { declareSending } from "./declarations/Sending.ts"
import { declareServiceAndShell } from "./declarations/Service.ts"

const EXIT_CODES = `
Exit codes:
  0  done; what was checked holds
  1  not done, something was refused, or a break was found
  2  the command was called with something that it does not know
  3  the service can't be reached, or refuses the key
  130 and 143: ended by Ctrl-C or SIGTERM; a file that was not whole is removed

At a terminal results are tables; in a pipe, in a file and with --json they are JSON, a line each for
lists. Progress goes to standard error. alk COMMAND --help has examples.
`

/** The program; wrong arguments are thrown as CommanderError. */
export const makeProgram = (): Command => {
  const program = new Command("alk")
    .description("Audit log and execution traces that prove themselves")
    .version(programVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this text")
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ getOutHelpWidth: () => HELP_WIDTH, getErrHelpWidth: () => HELP_WIDTH })
    .showSuggestionAfterError(true)
    .addHelpText("after", EXIT_CODES)
  declareServiceAndShell(program)
  declareSending(program)
  declareReading(program)
  declareEvidence(program)
  declareAdministration(program)
  return program
}
