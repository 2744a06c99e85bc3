/**
 * Bytes of erased details on the disk: they are in the files of the store before they are purged,
 * and in none of them afterwards.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import { eventually } from "../../../support/Eventually.ts"
import { Chain } from "../../../verify/support/Chains.ts"
import { temporaryFolder } from "../support/StoreProcesses.ts"

const SECRET = "zq7kfgeheimnis4xw"
const ERASED_AT = "2026-11-22T08:00:00.000000Z"
const database = "purged"
/** Milliseconds until the engine has removed old files on a busy machine. */
const REMOVED_MS = 240_000

/** What the reading gives, or nothing where the engine removed the file or folder meanwhile. */
const unlessRemoved = <A, B>(read: () => A, otherwise: B): A | B => {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return otherwise
    throw error
  }
}

/** Files below a folder in which the text is, as it is or in lower case. */
const holding = (folder: string, text: string): ReadonlyArray<string> =>
  unlessRemoved(() => fs.readdirSync(folder, { withFileTypes: true }), []).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return holding(path, text)
    if (!entry.isFile()) return []
    return unlessRemoved(() => fs.readFileSync(path).includes(text), false) ? [path] : []
  })

const command = (query: string) =>
  ClickHouseConnection.use(({ client }) => Effect.promise(() => client.command({ query })))

describe("the details of an erased event", () => {
  it.live("leave the disk", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const stores = layerClickHouse.pipe(
        Layer.provideMerge(ClickHouseConnection.layerEmbedded({ database })),
        Layer.provide(ChdbEngine.layer(folder))
      )
      yield* Effect.gen(function* () {
        const store = yield* EventStore
        yield* store.migrate
        // As they are, so that they are found, and old files go at once.
        for (const column of ["metadata", "search", "actor_email", "resource_name"]) {
          yield* command(`ALTER TABLE ${database}.events MODIFY COLUMN ${column} CODEC(NONE)`)
        }
        yield* command(`ALTER TABLE ${database}.events MODIFY SETTING old_parts_lifetime = 1`)
        const chain = new Chain("acme").extend(300, (n) => ({
          actor: { id: `user-${n}`, type: "human", email: n === 150 ? `${SECRET}@x.org` : "a@b" },
          resource: { id: "r", type: "t", name: n === 150 ? SECRET : "n" },
          metadata: { note: n === 150 ? SECRET : "nothing" }
        }))
        yield* store.insertEvents(
          chain.bodies.map((body, offset) => ({ partition: 0, offset, body: Buffer.from(body) }))
        )
        assert.isAbove(holding(folder, SECRET).length, 0)
        yield* store.eraseDetails("acme", [{ sequenceNumber: 151, erasedAt: ERASED_AT }])
        assert.strictEqual(yield* store.purgeErased, 1)
        // The engine removes the files of old parts when its own thread comes to that.
        yield* eventually(
          "the secret has left the disk",
          Effect.sync(() => holding(folder, SECRET)),
          (files) => files.length === 0,
          REMOVED_MS
        )
      }).pipe(Effect.provide(stores))
    })
  )
})
