/**
 * Runs one program to its end and hands back how it ended and the last of what it said. Knows
 * nothing of any program in particular; stopping the effect stops the program.
 */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { Effect, Schema } from "effect"

/** The program is not there or may not be run. */
export class CommandNotFound extends Schema.TaggedError<CommandNotFound>()("CommandNotFound", {
  command: Schema.String,
  cause: Schema.Defect()
}) {}

export interface CommandResult {
  /** 0 for success; a signal counts as 128. */
  readonly exitCode: number
  /** Lines of both outputs, at most the last `OUTPUT_LINES_MAX`. */
  readonly lines: ReadonlyArray<string>
}

const OUTPUT_LINES_MAX = 200
/** A program that ignores SIGTERM this long is killed. */
const STOP_MILLISECONDS_MAX = 5_000

/** The environment of every child: what it may need to run, and none of alk's own secrets. */
export const childEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:ALK|KAFKA|CLICKHOUSE)_/.test(name))
  )

/** Runs `command` with its standard input closed; `onLine` sees each line as it comes. */
export const runCommand = (
  command: string,
  args: ReadonlyArray<string>,
  options: {
    readonly cwd?: string
    readonly onLine?: (line: string) => void
  } = {}
): Effect.Effect<CommandResult, CommandNotFound> =>
  Effect.callback((resume) => {
    const lines: Array<string> = []
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: childEnvironment(),
      stdio: ["ignore", "pipe", "pipe"]
    })
    for (const output of [child.stdout, child.stderr]) {
      createInterface({ input: output }).on("line", (line) => {
        lines.push(line)
        if (lines.length > OUTPUT_LINES_MAX) lines.shift()
        options.onLine?.(line)
      })
    }
    child.once("error", (cause) => resume(Effect.fail(new CommandNotFound({ command, cause }))))
    child.once("close", (code) => resume(Effect.succeed({ exitCode: code ?? 128, lines })))
    return Effect.callback<void>((stopped) => {
      if (child.exitCode !== null || child.signalCode !== null) return stopped(Effect.void)
      const kill = setTimeout(() => child.kill("SIGKILL"), STOP_MILLISECONDS_MAX)
      child.once("close", () => {
        clearTimeout(kill)
        stopped(Effect.void)
      })
      child.kill("SIGTERM")
    })
  })
