/** Who a key belongs to, and the end of it: revoked, or expired while somebody holds a stream open. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import { Keys } from "../../../src/actors/follower/Keys.ts"
import { RegistryView } from "../../../src/actors/follower/LogFollower.ts"
import { newApiKey, sha256Hex } from "../../../src/domain/Identifiers.ts"
import type { ApiKey } from "../../../src/domain/registry/RegistryEntry.ts"
import { RegistryTable } from "../../../src/domain/registry/RegistryTable.ts"
import { currentTime, formatMicros, microsOf } from "../../../src/domain/Timestamp.ts"
import { layerKeys } from "../../../src/services/administration/Administration.ts"
import { KeyUses } from "../../../src/services/administration/KeyUses.ts"
import { SystemAuditLog } from "../../../src/services/administration/SystemAuditLog.ts"

const secret = newApiKey("alk_live_")
const bootstrap = newApiKey("alk_live_")
const BOOTSTRAP_ID = `key_cfg_${sha256Hex(bootstrap).slice(0, 16)}`

const inMilliseconds = (milliseconds: number): string =>
  formatMicros(microsOf(currentTime()) + milliseconds * 1_000)

const key = (more: Partial<ApiKey> = {}): ApiKey => ({
  id: "key_1",
  tenant_id: "acme",
  scopes: ["read"],
  hint: "alk_live_abcd…",
  hash: sha256Hex(secret),
  created_at: currentTime(),
  ...more
})

/** The keys over a registry with one of them, and the uses that they note. */
const keysWith = (made: ApiKey) => {
  const used: Array<string> = []
  const registry = new RegistryTable().take([{ kind: "key", key: made }])
  const layer = layerKeys({
    adminToken: undefined,
    bootstrapKeys: [{ key: Redacted.make(bootstrap), tenantId: "acme", scopes: ["read"] }]
  }).pipe(
    Layer.provide([
      Layer.succeed(RegistryView, {
        registry: () => registry,
        until: () => Effect.never,
        caughtUp: Effect.void
      }),
      Layer.mock(SystemAuditLog, {}),
      Layer.mock(Heads, {}),
      Layer.succeed(KeyUses, { note: (keyId) => void used.push(keyId) })
    ])
  )
  const asked = <A, E>(ask: (keys: Keys["Service"]) => Effect.Effect<A, E>) =>
    Effect.provide(Keys.use(ask), layer)
  return { asked, registry, used }
}

const refusalOf = (made: ApiKey, token = secret) =>
  Effect.map(
    Effect.flip(keysWith(made).asked((keys) => keys.authenticate(token))),
    ({ message }) => message
  )

describe("a key", () => {
  it.live("is refused from its end on, with the time of that", () =>
    Effect.gen(function* () {
      const expires_at = inMilliseconds(-1)
      const expired = key({ expires_at })
      const message = yield* refusalOf(expired)
      assert.strictEqual(message, `the API key has expired at ${expires_at}; ask for a new one`)
      assert.isUndefined(
        yield* keysWith(expired).asked((keys) => Effect.sync(() => keys.known("key_1")))
      )
      const unknown = "the API key is missing, unknown or revoked"
      assert.strictEqual(yield* refusalOf(key({ expires_at, revoked_at: expires_at })), unknown)
      assert.strictEqual(yield* refusalOf(expired, newApiKey("alk_live_")), unknown)
      const valid = keysWith(key({ expires_at: inMilliseconds(60_000) }))
      yield* valid.asked((keys) => keys.authenticate(secret))
      assert.deepStrictEqual(valid.used, ["key_1"])
    })
  )

  const endOf = (made: ApiKey, session?: { readonly id: string; readonly expiresAt: string }) =>
    keysWith(made).asked((keys) =>
      keys.ended({ keyId: "key_1", tenantId: "acme", ...(session && { session }) })
    )
  const farMs = 10 * 365 * 86_400_000

  it.effect("that expires ends the streams that are open with it, and no others", () =>
    Effect.gen(function* () {
      // What is left is asked once, of the wall clock.
      vi.useFakeTimers({ toFake: ["Date", "performance"] })
      const soon = inMilliseconds(60_000)
      const far = inMilliseconds(farMs)
      const ends = [
        endOf(key({ expires_at: soon })),
        endOf(key({ expires_at: soon }), { id: "ses_1", expiresAt: far }),
        endOf(key()),
        endOf(key({ expires_at: far }))
      ]
      const waiting = yield* Effect.forEach(ends, (end) => Effect.forkChild(end))
      const isEnded = () => waiting.map((fiber) => fiber.pollUnsafe() !== undefined)
      yield* TestClock.adjust(59_999)
      assert.deepStrictEqual(isEnded(), [false, false, false, false])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(isEnded(), [true, true, false, false])
      yield* TestClock.adjust(farMs - 60_001)
      assert.deepStrictEqual(isEnded(), [true, true, false, false])
    }).pipe(Effect.ensuring(Effect.sync(() => vi.useRealTimers())))
  )

  it.live("that expires in years ends nothing now: a timer of Node can't wait for so long", () =>
    Effect.gen(function* () {
      const end = endOf(key({ expires_at: inMilliseconds(farMs) }))
      assert.isTrue(Option.isNone(yield* Effect.timeoutOption(end, "50 millis")))
    })
  )

  it.live(
    "of the configuration never expires; its last use is shown, and it stays out of the registry",
    () =>
      Effect.gen(function* () {
        const { asked, registry, used } = keysWith(key())
        yield* asked((keys) => keys.authenticate(bootstrap))
        assert.deepStrictEqual(used, [BOOTSTRAP_ID])
        const key_use = { key_id: BOOTSTRAP_ID, used_at: currentTime() }
        registry.take([{ kind: "key_use", key_use }])
        const listed = yield* asked((keys) => keys.keysOf("acme"))
        const own = listed?.find(({ id }) => id === BOOTSTRAP_ID)
        assert.strictEqual(own?.last_used_at, key_use.used_at)
        assert.isUndefined(own?.expires_at)
        assert.isUndefined(registry.key(BOOTSTRAP_ID))
        assert.isUndefined(listed?.find(({ id }) => id === "key_1")?.last_used_at)
      })
  )
})
