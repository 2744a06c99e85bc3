/**
 * How commands fail: an exit code, what is wrong, and what to do next. Knows how refusals of the
 * service are to be read, and no command.
 */
import type { ApiFailure } from "../client/ApiFailure.ts"

/** Exit codes of `alk`, documented in docs/cli.md. */
export const EXIT = {
  ok: 0,
  /** It was not done, or a check has found a break. */
  failed: 1,
  /** The command was called with something that it does not know. */
  usage: 2,
  /** The service can't be reached, or refuses the key. */
  unreachable: 3,
  /** Ended by Ctrl-C (SIGINT): 128 and the number of the signal, as shells have it. */
  interrupted: 130,
  /** Ended by SIGTERM. */
  terminated: 143
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** A command that ends here, with one line of what is wrong and, if possible, one of what to do. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure"
  readonly exitCode: ExitCode
  readonly next: string | undefined

  constructor(exitCode: ExitCode, message: string, next?: string) {
    super(message)
    this.exitCode = exitCode
    this.next = next
  }
}

/** A wrong argument. */
export const usage = (message: string, next?: string): CommandFailure =>
  new CommandFailure(EXIT.usage, message, next)

const NEXT_OF_STATUS: Readonly<Record<number, string>> = {
  401: "give another key: alk login, or ALK_API_KEY",
  403: "use a key that may do this: alk login --show says its scopes; alk keys create makes others",
  404: "check the id, and that the key is of the right tenant: alk login --show",
  429: "wait a moment, or send less at once"
}

/** How a 503 begins that is not an outage: a signed checkpoint does not fit to the chain. */
const CHAIN_BROKEN = "checkpoint_mismatch"

const isApiFailure = (error: unknown): error is ApiFailure =>
  error instanceof Error && error.name === "ApiFailure"

const ofApi = ({ code, field, message, requestId, status }: ApiFailure): CommandFailure => {
  if (status === 0) {
    return new CommandFailure(
      EXIT.unreachable,
      message,
      "start it with: alk up; or give its address: alk login, or ALK_URL"
    )
  }
  const where = field === undefined || message.startsWith(field) ? "" : `${field}: `
  const named = requestId === undefined ? "" : ` (request ${requestId})`
  const exitCode = message.startsWith(CHAIN_BROKEN)
    ? EXIT.failed
    : status === 401 || status === 403 || status === 502 || status === 503
      ? EXIT.unreachable
      : status === 400
        ? EXIT.usage
        : EXIT.failed
  return new CommandFailure(
    exitCode,
    `${where}${message} [${code}]${named}`,
    NEXT_OF_STATUS[status]
  )
}

/** What a failure of any kind says to the person who called the command. */
export const commandFailureOf = (error: unknown): CommandFailure => {
  if (error instanceof CommandFailure) return error
  if (isApiFailure(error)) return ofApi(error)
  // The client names the option at fault.
  if (error instanceof TypeError && /^(?:url|key|path)\b/.test(error.message)) {
    return usage(error.message)
  }
  const { code, message, path } = error as NodeJS.ErrnoException
  if (code === "ENOENT") return usage(`${path}: there is no such file`)
  if (code === "EACCES") return new CommandFailure(EXIT.failed, `${path}: not permitted`)
  return new CommandFailure(EXIT.failed, message ?? String(error))
}

/** The lines of a failure on standard error. */
export const linesOf = ({ message, next }: CommandFailure): string =>
  `alk: ${message}\n${next === undefined ? "" : `next: ${next}\n`}`
