/**
 * The role store, and the query store of the other roles: the embedded engine or a server elsewhere.
 */
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Context, Effect, Layer, Redacted, Scope } from "effect"
import { ChdbEngine } from "../adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../adapters/clickhouse/client/ClickHouseConnection.ts"
import { StoreServer } from "../adapters/clickhouse/client/StoreServer.ts"
import { UsesFastSplit } from "../adapters/clickhouse/events/EventInsert.ts"
import { layerStores } from "../adapters/clickhouse/Stores.ts"
import type { DataFolder } from "../adapters/embedded/DataFolder.ts"
import type { Config } from "../config/Config.ts"
import { defined } from "../domain/Defined.ts"
import type { RecordMac } from "../domain/records/RecordMac.ts"
import { EventStore } from "../ports/EventStore.ts"
import { FactMac } from "../ports/FactMac.ts"
import { contentOf } from "./TlsContent.ts"
import { embedsStore, has, needsStore } from "./Topology.ts"

const connectionOf = Effect.fnUntraced(function* (
  config: Config,
  engine: ChdbEngine["Service"] | undefined
) {
  const { clickhouse, database } = config
  if (engine !== undefined) {
    return yield* ClickHouseConnection.toEngine({ database }).pipe(
      Effect.provideService(ChdbEngine, engine)
    )
  }
  if (clickhouse._tag === "Embedded") {
    return yield* Effect.die(new Error("no role of this process opens the embedded store"))
  }
  const { cluster, password, tls: files, url, user } = clickhouse
  const tls = files === undefined ? undefined : yield* contentOf("CLICKHOUSE", files)
  return yield* ClickHouseConnection.toServer(
    defined({ database, url, username: user, password, cluster, tls })
  )
})

/** The query store, its schema up to date where this process needs it. */
const storesOf = Effect.fnUntraced(function* (
  config: Config,
  engine: ChdbEngine["Service"] | undefined,
  mac: RecordMac
) {
  const connection = yield* connectionOf(config, engine)
  const stores = yield* Layer.build(
    layerStores.pipe(
      Layer.provide(Layer.succeed(ClickHouseConnection, connection)),
      Layer.provide(Layer.succeed(UsesFastSplit, config.fastAccept)),
      Layer.provide(Layer.succeed(FactMac, mac))
    )
  )
  if (needsStore(config)) yield* Context.get(stores, EventStore).migrate
  return stores
})

/** Of the store's server: 256 bits. */
const PASSWORD_BYTES = 32
/** Where it is kept in the data folder. */
const PASSWORD_FILE = "store.password"
/** Sockets of a process to the store's server at most, see `ClickHouseConnection`. */
const SOCKETS_OF_A_WORKER = 16

/** The one of an earlier start, which other processes have, or a new one. */
const keptPassword = Effect.fnUntraced(function* (folder: DataFolder["Service"]) {
  const file = folder.file(PASSWORD_FILE)
  const kept = (yield* file.read)?.trim()
  if (kept !== undefined && kept !== "") return Redacted.make(kept)
  const made = randomBytes(PASSWORD_BYTES).toString("hex")
  yield* file.write(`${made}\n`)
  return Redacted.make(made)
})

const isOpen = (config: Config): boolean =>
  config.clickhouse._tag === "Embedded" && config.clickhouse.isOpen && has(config, "store")

/**
 * The server before the engine: for other processes of the machine in the role store, else for the
 * workers only.
 */
const serverOf = Effect.fnUntraced(function* (config: Config, folder: DataFolder["Service"]) {
  const port = has(config, "store") ? config.storePort : 0
  const moreSockets = config.workers * SOCKETS_OF_A_WORKER
  const password = isOpen(config) ? undefined : yield* keptPassword(folder)
  const { url } = yield* StoreServer.listen(defined({ port, password, moreSockets }))
  const passwordFile = password === undefined ? undefined : join(folder.path, PASSWORD_FILE)
  return { url, passwordFile }
})

/**
 * The engine, the server before it for other processes, and the store on top. `mac` is that of the
 * facts it shows.
 */
export const openStore = Effect.fnUntraced(function* (
  config: Config,
  folder: DataFolder["Service"] | undefined,
  mac: RecordMac
) {
  const engine =
    folder !== undefined && embedsStore(config)
      ? yield* ChdbEngine.open(folder.clickhouse)
      : undefined
  const server =
    folder !== undefined && engine !== undefined && (has(config, "store") || config.workers > 0)
      ? yield* serverOf(config, folder).pipe(Effect.provideService(ChdbEngine, engine))
      : undefined
  const scope = yield* Effect.scope
  const stores = yield* Effect.cached(storesOf(config, engine, mac).pipe(Scope.provide(scope)))
  return { engine, server, stores }
})

/** The parts of the store that this process has opened. */
export type OpenedStore = Effect.Success<ReturnType<typeof openStore>>
