/** The registry on a real log: what has ended leaves it, and stays away at every start. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layerLogFollower, RegistryView } from "../../src/actors/follower/LogFollower.ts"
import { REGISTRY } from "../../src/actors/log/RegistryChanges.ts"
import { trimRegistry } from "../../src/actors/sequencer/RegistryTrim.ts"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import { emptyState } from "../../src/actors/sequencer/SequencerState.ts"
import { acceptRegistry } from "../../src/cli/Repair.ts"
import { SYSTEM_TENANT } from "../../src/domain/Identifiers.ts"
import { LINKS_MAX } from "../../src/domain/registry/Registry.ts"
import { CONTENT_KEY } from "../../src/domain/registry/RegistryContent.ts"
import {
  type RegistryChange,
  registryRecord,
  type ShareLink
} from "../../src/domain/registry/RegistryEntry.ts"
import { formatMicros, nowMicros } from "../../src/domain/Timestamp.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import { asService } from "../support/Authenticated.ts"
import { commandRecord } from "../support/Events.ts"
import { eventually } from "../support/Eventually.ts"
import { append, cleanupPolicy, deleteBelow, produceRaw, readAll } from "../support/Log.ts"
import { TENANT, withView } from "./support/Evidence.ts"
import {
  apiKey,
  assertWorks,
  finalState,
  registryCommand,
  running,
  type Service,
  settings as sequencerSettings
} from "./support/Service.ts"

const DAY_MICROS = 86_400_000_000

/** A link that expires so many days from now. */
const link = (id: string, days: number, more: Partial<ShareLink> = {}): ShareLink => ({
  id,
  tenant_id: TENANT,
  filter: { metadata: [] },
  hash: Buffer.from(id).toString("hex").padEnd(64, "0"),
  created_by: "key_1",
  created_at: formatMicros(nowMicros() - 100 * DAY_MICROS),
  expires_at: formatMicros(nowMicros() + days * DAY_MICROS),
  uses: 0,
  ...more
})

const make = (...links: ReadonlyArray<ShareLink>) =>
  append(links.map((one) => commandRecord(registryCommand({ op: "create_link", link: one }))))

const linksOf = (service: Service) => Effect.sync(() => [...service.view.registry().links.keys()])

const shows = (service: Service, ...ids: ReadonlyArray<string>) =>
  eventually(
    `the registry has the links ${ids.join()}`,
    linksOf(service),
    (links) => links.length === ids.length && ids.every((id) => links.includes(id))
  )

const idsOf = (links: ReadonlyArray<ShareLink>) => links.map(({ id }) => id)

const systemEvents = Effect.map(
  readAll("events"),
  (records) => records.filter(({ key }) => key?.toString() === "_system").length
)

describe("share links that ended long ago", () => {
  it.live("leave the registry by records without a value, and stay away", () =>
    withView(() =>
      Effect.gen(function* () {
        const registered = Effect.map(readAll("registry"), (records) =>
          records.map(({ key, value }) => [key?.toString(), value === null])
        )
        yield* make(
          link("old", -31),
          link("recent", -29),
          link("revoked", 20, { revoked_at: formatMicros(nowMicros() - 40 * DAY_MICROS) }),
          link("usable", 20)
        )
        yield* Effect.scoped(
          Effect.flatMap(running, (service) => shows(service, "recent", "usable"))
        )
        const written = yield* registered
        assert.sameDeepMembers(
          written.filter(([, isGone]) => isGone),
          [
            ["link/old", true],
            ["link/revoked", true]
          ]
        )
        // What was done with them stays in the chain of the system tenant, and nothing is added.
        assert.strictEqual(yield* systemEvents, 4)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const service = yield* running
            yield* shows(service, "recent", "usable")
            yield* make(link("new", 5))
            yield* shows(service, "recent", "usable", "new")
            // Its id can be used again: the sequencer has forgotten it too.
            yield* make(link("old", 5))
            yield* shows(service, "recent", "usable", "new", "old")
          })
        )
        assert.deepStrictEqual((yield* registered).slice(0, written.length), written)
      })
    )
  )

  it.live("are not counted by the single writer, which refuses one usable link too many", () =>
    withView(() =>
      Effect.gen(function* () {
        const usable = Array.from({ length: LINKS_MAX + 5 }, (_, n) => link(`usable-${n}`, 5))
        yield* make(...usable)
        const service = yield* running
        yield* eventually(
          `${LINKS_MAX} links in the registry`,
          Effect.map(linksOf(service), ({ length }) => length),
          (count) => count >= LINKS_MAX
        )
        const late = registryCommand({ op: "create_link", link: link("late", 5) })
        yield* append([commandRecord(late)])
        const state = yield* finalState(service, SYSTEM_TENANT, late.receiptId)
        assert(state.status === "failed")
        assert.strictEqual(state.receipt.error?.code, "limit_reached")
        assert.match(state.receipt.error?.message ?? "", /1000 share links.*revoke some/)
        assert.strictEqual(service.view.registry().links.size, LINKS_MAX)
        const again = yield* Layer.build(Layer.fresh(layerLogFollower))
        const { registry } = yield* RegistryView.pipe(Effect.provideContext(again))
        assert.strictEqual(registry().links.size, LINKS_MAX)
      })
    )
  )
})

describe("the topic of the registry", () => {
  it.live("is made short by its writer, and the broker removes nothing from it", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          const links = Array.from({ length: 3 }, (_, index) => link(`l-${index}`, 20))
          yield* make(...links)
          yield* Effect.scoped(
            Effect.flatMap(running, (service) => shows(service, ...idsOf(links)))
          )
          const revoked = { ...links[1]!, revoked_at: formatMicros(nowMicros()) }
          const log = yield* EventLog
          const partition = log.partitionOf(SYSTEM_TENANT)
          const trimmed = Effect.gen(function* () {
            const writer = yield* log.writer(`sequencer-${partition}`)
            const state = emptyState(partition, log.partitions, { dedup: 10, idempotency: 10 })
            state.registry.take(links.map((one): RegistryChange => ({ kind: "link", link: one })))
            for (let count = 0; count < 20; count++) {
              const change: RegistryChange = { kind: "link", link: revoked }
              state.registry.take([change])
              const record = { ...REGISTRY, ...registryRecord(change) }
              yield* writer.commit([], () => [record])
            }
            assert.isFalse(yield* trimRegistry(log, writer, state))
            // A record of another program with the key of a revocation.
            yield* produceRaw(prefix, "registry", [{ key: "link/l-1", value: null }])
            assert.isTrue(yield* trimRegistry(log, writer, state, 10))
          }).pipe(Effect.scoped)
          const before = yield* log.bounds("registry", 0)
          yield* trimmed
          const after = yield* log.bounds("registry", 0)
          assert.isAbove(after.start, before.end)
          const left = (yield* readAll("registry")).map(({ key, refused }) => [`${key}`, refused])
          const keys = [...idsOf(links).map((id) => `link/${id}`), CONTENT_KEY]
          assert.deepStrictEqual(
            left,
            keys.map((key) => [key, undefined])
          )
          assert.strictEqual(yield* cleanupPolicy(prefix, "registry"), "delete")
          yield* Effect.scoped(
            Effect.gen(function* () {
              const service = yield* running
              yield* shows(service, ...idsOf(links))
              const { links: known } = service.view.registry()
              assert.strictEqual(known.get("l-1")?.revoked_at, revoked.revoked_at)
            })
          )
        })
      )
    )
  )

  it.live("starts nobody once records are deleted from it that count, until that is accepted", () =>
    withView((prefix) =>
      asService(
        { prefix },
        Effect.gen(function* () {
          const isRevoked = ({ view }: Service) =>
            view.registry().keys.get("key_1")?.revoked_at !== undefined
          const revoked = (service: Service) =>
            eventually(
              "the key is revoked",
              Effect.sync(() => isRevoked(service)),
              (is) => is
            )
          const revoke = registryCommand({
            op: "revoke_key",
            tenant_id: TENANT,
            key_id: "key_1",
            revoked_at: formatMicros(nowMicros())
          })
          yield* Effect.scoped(
            Effect.gen(function* () {
              const service = yield* running
              yield* assertWorks(service, "key_1")
              yield* append([commandRecord(revoke)])
              yield* revoked(service)
            })
          )
          yield* Effect.scoped(Effect.flatMap(running, revoked))
          const log = yield* EventLog
          const later = registryCommand({ op: "create_key", key: apiKey("key_3") })
          yield* Effect.scoped(
            Effect.gen(function* () {
              const service = yield* running
              yield* assertWorks(service, "key_2")
              const { end } = yield* log.bounds("registry", 0)
              yield* deleteBelow(prefix, "registry", end)
              // While it runs nothing changes, and what is written then does not hide it.
              yield* append([commandRecord(later)])
              yield* finalState(service, SYSTEM_TENANT, later.receiptId)
              assert.isTrue(isRevoked(service))
            })
          )
          const follower = Layer.build(Layer.fresh(layerLogFollower)).pipe(Effect.scoped)
          const sequencer = runSequencer(0, sequencerSettings, () => Effect.void)
          const assertRefused = Effect.gen(function* () {
            for (const started of [follower, sequencer]) {
              const refusal = yield* Effect.flip(
                started as Effect.Effect<unknown, unknown, EventLog>
              )
              assert.match(
                (refusal as Error).message,
                /alk\.registry is incomplete.*repair registry/
              )
            }
          })
          yield* assertRefused
          const { end } = yield* log.bounds("registry", 0)
          yield* deleteBelow(prefix, "registry", end)
          yield* assertRefused
          yield* acceptRegistry(["registry", "--accept-loss"])
          yield* Effect.scoped(
            Effect.gen(function* () {
              const service = yield* running
              yield* assertWorks(service, "key_4")
              assert.deepStrictEqual([...service.view.registry().keys.keys()], ["key_4"])
            })
          )
          yield* Effect.scoped(running)
        })
      )
    )
  )
})
