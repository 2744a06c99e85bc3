/**
 * `alk verify`: checks an evidence pack on the disk with the program that is in every pack, in
 * the version of this release. Starts no part of the service and reads no configuration.
 */
import { Effect, Schema } from "effect"
import { Usage, type VerifyOutcome, verify } from "../exports/verifiers/verify.mjs"

/** The command was called with something that it does not know. */
export class VerifyRefused extends Schema.TaggedError<VerifyRefused>()("VerifyRefused", {
  message: Schema.String
}) {}

export const VERIFY_HELP = `alk verify <pack.zip | folder> [options]

Checks an evidence pack offline, as the verifiers inside the pack do. Those come from the maker of
the pack; this one comes from the release of alk that you installed.

  --public-key KEY     the service's public key, or a file that holds it: the answer of
                       /.well-known/alk-keys.json, C2SP (name+id+base64), PEM, or base64. May be
                       repeated.
  --checkpoint FILE    a checkpoint that you kept earlier: a signed note, or the answer of
                       /v1/chain/checkpoints/latest. May be repeated.
  --require-origin     exit code 3 unless the pack is authentic
  --json               the report as JSON

Verdicts and exit codes
  authentic    0  everything agrees, and a key or checkpoint that you gave shows who made it
  consistent   0  everything agrees; who made it is not shown (3 with --require-origin)
  tampered     1  something does not agree
  unreadable   2  there is no verdict on its content
`

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
