/** The log of a test as the service has it: its internal records authenticated. */
import { Effect } from "effect"
import { RecordMac } from "../../src/domain/records/RecordMac.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import { authenticated } from "../../src/services/commands/AuthenticatedLog.ts"
import { checkInstallation } from "../../src/services/commands/InstallationMarker.ts"
import { TEST_SECRET } from "./Program.ts"

export interface TestInstallation {
  readonly prefix: string
  readonly secret?: string
}

const parts = ({ prefix, secret = TEST_SECRET }: TestInstallation) =>
  Effect.map(EventLog, (log) => ({ log, prefix, mac: new RecordMac(secret) }))

/** The marker, as a start of this installation finds or writes it. */
export const markerOf = (installation: TestInstallation) =>
  Effect.flatMap(parts(installation), checkInstallation)

/** Run with the log of an installation. */
export const asService = <A, E, R>(installation: TestInstallation, test: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const own = yield* parts(installation)
    yield* checkInstallation(own)
    return yield* test.pipe(Effect.provideService(EventLog, authenticated(own.log, own)))
  })
