/** The program verify.mjs: what it prints and its exit code; a module of other programs, too. */
import { existsSync, realpathSync } from "node:fs"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { EXIT_CODES, Usage, VERIFY_OPTIONS, verify } from "./Verify.ts"

const HELP = `node verify.mjs [pack.zip | folder] [options]

Checks an alk evidence pack, without a network and without anything to install. Without a name it
checks the folder that it lies in.

${VERIFY_OPTIONS}`

const main = async (args: ReadonlyArray<string>): Promise<number> => {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(HELP)
    return 0
  }
  const { exitCode, text } = await verify(args, dirname(fileURLToPath(import.meta.url)))
  process.stdout.write(text)
  return exitCode
}

/** True if this file is the program that was started, not a module of another one. */
const isProgram = (): boolean => {
  const [, started] = process.argv
  if (started === undefined || !existsSync(started)) return false
  return realpathSync(started) === fileURLToPath(import.meta.url)
}

if (isProgram()) {
  main(process.argv.slice(2)).then(
    (code) => {
      process.exitCode = code
    },
    (error) => {
      process.stderr.write(`verify.mjs: ${error instanceof Usage ? error.message : error.stack}\n`)
      process.exitCode = EXIT_CODES.unreadable
    }
  )
}

export { Usage, verify }
