/** The log of a test as the service has it: its internal records authenticated. */
import { Effect } from "effect"
import { RecordMac } from "../../src/domain/records/RecordMac.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import { authenticated } from "../../src/services/commands/AuthenticatedLog.ts"
import { type MarkerCopy, takeOver } from "../../src/services/commands/TakeOver.ts"
import { TEST_SECRET } from "./Program.ts"

export interface Installation {
  readonly prefix: string
  readonly secret?: string
  readonly copy?: MarkerCopy<never>
}

const parts = ({ copy, prefix, secret = TEST_SECRET }: Installation) =>
  Effect.map(EventLog, (log) => ({ log, prefix, mac: new RecordMac(secret), copy }))

/** Where records without a MAC end, as a start of this installation finds it. */
export const takenOverBy = (installation: Installation) =>
  Effect.flatMap(parts(installation), takeOver)

/** Run with the log of an installation. */
export const asService = <A, E, R>(installation: Installation, test: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const own = yield* parts(installation)
    const takenOver = yield* takeOver(own)
    return yield* test.pipe(
      Effect.provideService(EventLog, authenticated(own.log, { ...own, takenOver }))
    )
  })

/** A place for the marker's copy, empty at first. */
export const memoryCopy = (): MarkerCopy<never> => {
  let kept: string | undefined
  return {
    read: Effect.sync(() => kept),
    write: (text) =>
      Effect.sync(() => {
        kept = text
      })
  }
}
