/**
 * When keys were last used, for those who look after them. A use is a number in memory; what is new is
 * written by the hour and in the background, so no request waits for it or fails with it. It is no act:
 * the log of the service doesn't hold it.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { SYSTEM_TENANT } from "../../domain/Identifiers.ts"
import type { Registry } from "../../domain/registry/Registry.ts"
import { KEY_USES_MAX, type KeyUse } from "../../domain/registry/RegistryEntry.ts"
import { formatMicros, microsOf } from "../../domain/Timestamp.ts"
import type { CommandLog } from "../commands/CommandLog.ts"
import { newCommand } from "../commands/NewCommand.ts"
import { submitted } from "./Submit.ts"

/** Milliseconds in which a key's use is written once by a process: as exact as `last_used_at` is. */
export const KEY_USE_INTERVAL_MS = 3_600_000
/** Keys whose use a process remembers; beyond it, all are noted anew. */
export const KEYS_NOTED_MAX = 100_000
/** Time between two looks at what is to be written. */
const WRITTEN_EVERY = "10 seconds"

/** The uses of keys that this process has seen. */
export class NotedUses {
  /** Key id and milliseconds since 1970 of the last use that is written or waits to be. */
  readonly #noted = new Map<string, number>()
  readonly #waiting = new Map<string, number>()

  /** Hot path: of each request with a key. */
  note(keyId: string, now: number): void {
    const before = this.#noted.get(keyId)
    // A clock that was set back must not silence a key.
    if (before !== undefined && Math.abs(now - before) < KEY_USE_INTERVAL_MS) return
    if (this.#noted.size >= KEYS_NOTED_MAX) {
      this.#noted.clear()
      this.#waiting.clear()
    }
    this.#noted.set(keyId, now)
    this.#waiting.set(keyId, now)
  }

  /** What is to be written now: not what another process has just written. */
  take(registry: Pick<Registry, "keyUse">): ReadonlyArray<KeyUse> {
    const uses: Array<KeyUse> = []
    for (const [key_id, at] of this.#waiting) {
      if (uses.length >= KEY_USES_MAX) break
      this.#waiting.delete(key_id)
      const known = registry.keyUse(key_id)
      const isNews =
        known === undefined || at - microsOf(known.used_at) / 1_000 >= KEY_USE_INTERVAL_MS
      if (isNews) uses.push({ key_id, used_at: formatMicros(at * 1_000) })
    }
    return uses
  }

  /** They could not be written: they wait again. */
  putBack(uses: ReadonlyArray<KeyUse>): void {
    for (const { key_id, used_at } of uses) {
      if (!this.#waiting.has(key_id)) this.#waiting.set(key_id, microsOf(used_at) / 1_000)
    }
  }
}

export class KeyUses extends Context.Service<
  KeyUses,
  {
    /** A key was used now. Costs nothing. */
    note(keyId: string): void
  }
>()("alk/KeyUses") {}

/** Writes what waits; what can't be written waits on. */
export const writeUses = Effect.fnUntraced(function* (noted: NotedUses, secret: Redacted.Redacted) {
  const view = yield* RegistryView
  const uses = noted.take(view.registry())
  if (uses.length === 0) return
  const command = {
    ...newCommand("registry", Redacted.value(secret), SYSTEM_TENANT),
    operation: { op: "use_keys" as const, uses }
  }
  yield* submitted(command, "note the use of keys").pipe(
    Effect.catch((failure) => {
      noted.putBack(uses)
      return Effect.logDebug("the use of keys is written later", { reason: String(failure) })
    })
  )
})

const make = Effect.fnUntraced(function* (secret: Redacted.Redacted) {
  const noted = new NotedUses()
  yield* Effect.forkScoped(
    writeUses(noted, secret).pipe(Effect.delay(WRITTEN_EVERY), Effect.forever)
  )
  return KeyUses.of({ note: (keyId) => noted.note(keyId, Date.now()) })
})

/** `secret` is `ALK_SECRET`. What was not written yet is lost when the process ends. */
export const layerKeyUses = (
  secret: Redacted.Redacted
): Layer.Layer<KeyUses, never, RegistryView | CommandLog> => Layer.effect(KeyUses, make(secret))
