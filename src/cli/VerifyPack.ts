/**
 * `alk verify`: checks an evidence pack on the disk with the program that is in every pack, in
 * the version of this release. Starts no part of the service and reads no configuration.
 */
import { Effect, Schema } from "effect"
import { Usage, VERIFY_OPTIONS, type VerifyOutcome, verify } from "../exports/checker/Verify.ts"

/** The command was called with something that it does not know. */
export class VerifyRefused extends Schema.TaggedError<VerifyRefused>()("VerifyRefused", {
  message: Schema.String
}) {}

export const VERIFY_HELP = `alk verify <pack.zip | folder> [options]

Checks an evidence pack offline, as the verifiers inside the pack do. Those come from the maker of
the pack; this one comes from the release of alk that you installed.

${VERIFY_OPTIONS}`

const REFUSED = 2

/** Check the pack that the arguments name. */
export const verifyPack = (
  args: ReadonlyArray<string>
): Effect.Effect<VerifyOutcome, VerifyRefused> =>
  Effect.tryPromise({
    try: () => verify(args),
    catch: (error) => {
      if (error instanceof Usage) return new VerifyRefused({ message: `verify: ${error.message}` })
      throw error
    }
  }).pipe(Effect.withSpan("VerifyPack.verify"))

/** The command: says its outcome, or why it could not begin, and sets the exit code. */
export const verifyCommand = (args: ReadonlyArray<string>): Effect.Effect<void> =>
  verifyPack(args).pipe(
    Effect.map(({ exitCode, text }) => {
      process.stdout.write(text)
      process.exitCode = exitCode
    }),
    Effect.catchTag("VerifyRefused", ({ message }) =>
      Effect.sync(() => {
        process.stderr.write(`alk: ${message}\n`)
        process.exitCode = REFUSED
      })
    )
  )
