/**
 * Makes the broker's log directory with Kafka's own tool, once, so that it is there whole or not at
 * all, and reads back which cluster it belongs to.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { runCommand } from "../Command.ts"
import {
  type BrokerNotStarted,
  brokerNotStarted,
  explainEnd,
  inFolder
} from "./BrokerNotStarted.ts"
import {
  brokerPaths,
  formatArguments,
  formatCommand,
  formatProperties,
  NODE_ID,
  writeSettings
} from "./BrokerSettings.ts"
import { type BrokerUsers, withScram } from "./BrokerUsers.ts"

const META = "meta.properties"

/** 16 random bytes as Kafka writes them; a leading dash would read as an option. */
const newClusterId = (): string => {
  const id = randomBytes(16).toString("base64url")
  return id.startsWith("-") ? newClusterId() : id
}

const propertyIn = (text: string, name: string): string | undefined =>
  text
    .split("\n")
    .find((line) => line.startsWith(`${name}=`))
    ?.slice(name.length + 1)
    .trim()

/** The cluster id of a formatted directory; undefined if the directory is not there. */
const clusterIdIn = (folder: string): Effect.Effect<string | undefined, BrokerNotStarted> =>
  Effect.suspend(() => {
    const data = join(folder, brokerPaths.data)
    if (!fs.existsSync(data)) return Effect.succeed(undefined)
    const meta = join(data, META)
    const text = fs.existsSync(meta) ? fs.readFileSync(meta, "utf8") : ""
    const clusterId = propertyIn(text, "cluster.id")
    return clusterId !== undefined
      && /^[A-Za-z0-9_-]{22}$/.test(clusterId)
      && propertyIn(text, "node.id") === String(NODE_ID)
      ? Effect.succeed(clusterId)
      : Effect.fail(brokerNotStarted("damaged", folder, `${meta} is missing or unreadable`))
  })

/**
 * The cluster id of the broker's log directory and its users. One that is not there yet is made, and
 * keeps what SCRAM asks for from the start.
 */
export const formatted = Effect.fn("BrokerFormat.format")(function* (
  folder: string,
  java: string,
  jars: string,
  users: BrokerUsers | undefined
) {
  const kept = yield* clusterIdIn(folder)
  if (kept !== undefined) return { clusterId: kept, users }
  const clusterId = newClusterId()
  const formatting = join(folder, brokerPaths.formatting)
  yield* inFolder(folder, () => {
    fs.rmSync(formatting, { recursive: true, force: true })
    writeSettings(folder, brokerPaths.formatProperties, formatProperties())
    writeSettings(folder, brokerPaths.formatArguments, formatArguments(clusterId, users))
  })
  const { exitCode, lines } = yield* runCommand(java, formatCommand(jars), { cwd: folder }).pipe(
    Effect.mapError(() => brokerNotStarted("ended", folder, `${java} can't be run any more`)),
    Effect.ensuring(
      Effect.sync(() => fs.rmSync(join(folder, brokerPaths.formatArguments), { force: true }))
    )
  )
  if (exitCode !== 0) return yield* explainEnd(folder, lines.join("\n"), exitCode)
  return yield* inFolder(folder, () => {
    fs.renameSync(formatting, join(folder, brokerPaths.data))
    return { clusterId, users: users && withScram(folder, users) }
  })
})
