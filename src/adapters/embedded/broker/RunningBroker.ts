/**
 * How another program of this machine reaches the broker that a service runs on its data folder. Reads
 * only; the folder belongs to the service.
 */
import * as fs from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Schema } from "effect"
import { readRunning } from "./BrokerRecord.ts"
import { brokerUsers, PROGRAM, type SignIn, signInOf } from "./BrokerUsers.ts"

/** No broker runs on this folder, or its users can't be read. */
export class BrokerNotRunning extends Schema.TaggedError<BrokerNotRunning>()("BrokerNotRunning", {
  message: Schema.String
}) {}

export interface RunningBroker {
  /** Absolute, without symbolic links. */
  readonly folder: string
  readonly addresses: ReadonlyArray<string>
  readonly signIn?: SignIn
}

/** `isOpen`: the broker asks for no credentials. */
export const runningBroker = (
  dataDir: string,
  isOpen: boolean
): Effect.Effect<RunningBroker, BrokerNotRunning> =>
  Effect.try({
    try: () => {
      const folder = fs.realpathSync(dataDir)
      const kafka = join(folder, "kafka")
      const port = readRunning(kafka, folder)
      if (port === undefined) throw new Error("no service runs there")
      const addresses = [`127.0.0.1:${port}`]
      return isOpen
        ? { folder, addresses }
        : { folder, addresses, signIn: signInOf(brokerUsers(kafka), PROGRAM) }
    },
    catch: (cause) =>
      new BrokerNotRunning({
        message:
          `The data folder ${resolve(dataDir)}: ${(cause as Error).message}. Start the service, or `
          + "name its folder in ALK_DATA_DIR, or its cluster in KAFKA_BROKERS"
      })
  })
