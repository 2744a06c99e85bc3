/** When keys were last used: noted in memory, written by the hour, never in the way of a request. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { RegistryView } from "../../../src/actors/follower/LogFollower.ts"
import type { Command } from "../../../src/domain/records/Command.ts"
import { KEY_USES_MAX } from "../../../src/domain/registry/RegistryEntry.ts"
import { RegistryTable } from "../../../src/domain/registry/RegistryTable.ts"
import { formatMicros } from "../../../src/domain/Timestamp.ts"
import { LogUnavailable } from "../../../src/ports/EventLog.ts"
import {
  KEY_USE_INTERVAL_MS,
  KEYS_NOTED_MAX,
  NotedUses,
  writeUses
} from "../../../src/services/administration/KeyUses.ts"
import { CommandLog } from "../../../src/services/commands/CommandLog.ts"

const START = Date.parse("2026-11-21T10:00:00Z")
const timeOf = (milliseconds: number): string => formatMicros(milliseconds * 1_000)
const idsOf = (uses: ReadonlyArray<{ readonly key_id: string }>) => uses.map(({ key_id }) => key_id)

/** A registry, and a log that takes commands or doesn't. */
const world = () => {
  const registry = new RegistryTable()
  const commands: Array<Command> = []
  const state = { isDown: false }
  const layer = Layer.mergeAll(
    Layer.succeed(RegistryView, {
      registry: () => registry,
      until: () => Effect.never,
      caughtUp: Effect.void
    }),
    Layer.succeed(CommandLog, {
      submit: (command) =>
        state.isDown
          ? Effect.fail(new LogUnavailable({ operation: "test", cause: new Error("down") }))
          : Effect.sync(() => void commands.push(command))
    })
  )
  const write = (noted: NotedUses) =>
    Effect.provide(writeUses(noted, Redacted.make("a secret of this test")), layer)
  return { registry, commands, state, write }
}

describe("the uses that a process has seen", () => {
  it("are written once an hour for each key, however often it is used", () => {
    const noted = new NotedUses()
    const registry = new RegistryTable()
    for (let second = 0; second < 3_600; second++) noted.note("a", START + second * 1_000)
    assert.deepStrictEqual(noted.take(registry), [{ key_id: "a", used_at: timeOf(START) }])
    assert.deepStrictEqual(noted.take(registry), [])
    noted.note("a", START + KEY_USE_INTERVAL_MS)
    noted.note("b", START + KEY_USE_INTERVAL_MS)
    assert.deepStrictEqual(idsOf(noted.take(registry)), ["a", "b"])
  })

  it("are not written where another process has just done so", () => {
    const noted = new NotedUses()
    const key_use = { key_id: "a", used_at: timeOf(START) }
    const registry = new RegistryTable().take([{ kind: "key_use", key_use }])
    noted.note("a", START + KEY_USE_INTERVAL_MS - 1)
    assert.deepStrictEqual(noted.take(registry), [])
    noted.note("a", START + 2 * KEY_USE_INTERVAL_MS)
    assert.deepStrictEqual(idsOf(noted.take(registry)), ["a"])
  })

  it("take so much memory and no more", () => {
    const noted = new NotedUses()
    const registry = new RegistryTable()
    for (let n = 0; n <= KEYS_NOTED_MAX; n++) noted.note(`key_${n}`, START)
    assert.deepStrictEqual(idsOf(noted.take(registry)), [`key_${KEYS_NOTED_MAX}`])
  })

  it("go on where the clock was set back", () => {
    const noted = new NotedUses()
    const registry = new RegistryTable()
    noted.note("a", START)
    noted.take(registry)
    noted.note("a", START - 2 * KEY_USE_INTERVAL_MS)
    assert.deepStrictEqual(idsOf(noted.take(registry)), ["a"])
  })
})

describe("writing them", () => {
  it.effect("is one command of the service for many keys, without an event", () =>
    Effect.gen(function* () {
      const { commands, write } = world()
      const noted = new NotedUses()
      yield* write(noted)
      assert.deepStrictEqual(commands, [])
      for (let n = 0; n < KEY_USES_MAX + 1; n++) noted.note(`key_${n}`, START)
      yield* write(noted)
      yield* write(noted)
      assert.deepStrictEqual(
        commands.map(({ events, kind, operation, tenantId }) => [
          kind,
          tenantId,
          events.count,
          operation?.op === "use_keys" ? operation.uses.length : undefined
        ]),
        [
          ["registry", "_system", 0, KEY_USES_MAX],
          ["registry", "_system", 0, 1]
        ]
      )
    })
  )

  it.effect("fails nothing when the log can't be written, and is made up for", () =>
    Effect.gen(function* () {
      const { commands, state, write } = world()
      const noted = new NotedUses()
      noted.note("a", START)
      state.isDown = true
      yield* write(noted)
      yield* write(noted)
      assert.deepStrictEqual(commands, [])
      state.isDown = false
      yield* write(noted)
      assert.deepStrictEqual(commands[0]?.operation, {
        op: "use_keys",
        uses: [{ key_id: "a", used_at: timeOf(START) }]
      })
    })
  )
})
