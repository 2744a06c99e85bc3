/**
 * Ctrl-C (SIGINT) and SIGTERM: what a command does before it ends by them. The second signal ends
 * it at once, as the system does.
 */
import { EXIT, type ExitCode } from "../Failure.ts"

const EXIT_CODES = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated } as const

type Interrupt = keyof typeof EXIT_CODES

const INTERRUPTS = Object.keys(EXIT_CODES) as ReadonlyArray<Interrupt>

/** Calls `act` at the first signal, with the exit code of it. Gives what stops listening. */
export const onInterrupt = (act: (exitCode: ExitCode) => void): (() => void) => {
  const stop = () => {
    for (const one of INTERRUPTS) process.removeListener(one, listener)
  }
  const listener = (signal: Interrupt) => {
    stop()
    act(EXIT_CODES[signal])
  }
  for (const one of INTERRUPTS) process.on(one, listener)
  return stop
}

/** Aborted by the first signal, so that a command stops cleanly. `reason` gets its exit code. */
export const untilInterrupted = (reason?: (exitCode: ExitCode) => Error): AbortSignal => {
  const controller = new AbortController()
  onInterrupt((exitCode) => controller.abort(reason?.(exitCode)))
  return controller.signal
}
