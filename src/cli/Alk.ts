/** The command `alk`: runs what its arguments name, and turns failures into lines and exit codes. */
import { CommanderError } from "commander"
import { refuseSecrets } from "./Arguments.ts"
import { commandFailureOf, EXIT, linesOf } from "./Failure.ts"
import { makeProgram } from "./Program.ts"

const isReaderGone = (error: NodeJS.ErrnoException): boolean => error.code === "EPIPE"

/** A reader that has enough, as `head`, is no failure. */
const endWithReader = (): void => {
  process.stdout.on("error", (error) => {
    if (!isReaderGone(error)) throw error
    process.exit(EXIT.ok)
  })
}

const run = async (args: ReadonlyArray<string>): Promise<void> => {
  try {
    refuseSecrets(args)
    await makeProgram().parseAsync(args.length === 0 ? ["--help"] : args, { from: "user" })
  } catch (error) {
    if (error instanceof CommanderError) {
      // It has said it already.
      process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage
      return
    }
    const failure = commandFailureOf(error)
    process.stderr.write(linesOf(failure))
    process.exitCode = failure.exitCode
  }
}

endWithReader()
await run(process.argv.slice(2))
