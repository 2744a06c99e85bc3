/** What a sequencer refuses as lost, what it needs no repair for, and that a repair leads to a start. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  readCheckpoint,
  type Signer,
  signerOf
} from "../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import { CommandWriter } from "../../src/domain/records/CommandWriter.ts"
import { currentTime } from "../../src/domain/Timestamp.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import { StoreUnavailable } from "../../src/ports/EventStore.ts"
import {
  append,
  deleteBelow,
  loseTopic,
  produceRaw,
  readAll,
  readAtLeast,
  withLog
} from "../support/Log.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { Chain } from "../verify/support/Chains.ts"
import {
  acceptAll,
  acmeOf,
  assertChain,
  assertRefused,
  command,
  compacted,
  numbered,
  runUntil,
  settings,
  start,
  startWith,
  strayFact,
  toRecord,
  withOwnLog,
  written
} from "./support/Starts.ts"

/** Three commands are applied, of which no receipt is left, and a fourth waits. */
const appliedWithoutReceipts = Effect.fnUntraced(function* (prefix: string) {
  const writer = new CommandWriter()
  yield* append([1, 2, 3].map((n) => written(n, writer, currentTime())))
  yield* runUntil(3)
  const { end } = yield* (yield* EventLog).bounds("receipts", 0)
  yield* deleteBelow(prefix, "receipts", end)
  yield* append([written(4, writer, currentTime())])
})

describe("a sequencer of a log that has lost something", () => {
  it.live("refuses a log that starts behind the next command", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1))])
        yield* runUntil(1)
        yield* append([2, 3, 4].map((n) => toRecord(command(n))))
        yield* deleteBelow(prefix, "commands", 3)
        assertRefused(yield* start, /starts at offset 3, but 1 is the next.*2 acknowledged/)
      })
    )
  )

  it.live("refuses to start again at 1 when the changelog is lost and cannot be rebuilt", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        yield* loseTopic(prefix, "state")
        const { length } = yield* readAll("receipts")
        assert.isAbove(length, 0)
        const log = yield* EventLog
        const { end } = yield* log.bounds("receipts", 0)
        yield* deleteBelow(prefix, "receipts", end)
        assertRefused(yield* start, /alk.state is lost and the receipts/)
        yield* acceptAll
        assert.strictEqual(yield* start, "ready")
      })
    )
  )

  it.live("knows by their writers which commands were applied, where the receipts are gone", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        yield* appliedWithoutReceipts(prefix)
        const gone = (name: string) => name === "applied"
        assert.strictEqual(yield* compacted(gone, start), "ready")
        assertChain((yield* runUntil(1)).links, 4)
        const aside = (yield* readAll("quarantine")).filter(({ headers }) => headers["alk-command"])
        assert.strictEqual(aside.length, 0)
      })
    )
  )

  it.live("sets aside what may have been applied, once nothing tells and a repair accepts it", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        yield* appliedWithoutReceipts(prefix)
        const gone = (name: string) => name === "applied" || name.startsWith("writer/")
        assertRefused(yield* compacted(gone, start), /4 commands: those that were received before/)
        yield* acceptAll
        assertChain((yield* compacted(gone, runUntil(1))).links, 4)
        const reasons = (yield* readAll("quarantine")).flatMap(({ headers }) =>
          headers["alk-command"] === undefined ? [] : [headers["alk-reason"]!.toString()]
        )
        assert.strictEqual(reasons.length, 3)
        for (const reason of reasons) assert.match(reason, /^it may be a copy/)
        // The acceptance is used up.
        yield* loseTopic(prefix, "events")
        assertRefused(yield* start, /the topics are behind alk.state/)
      })
    )
  )

  it.live("passes over what begins in the middle of a chain that no record has begun", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        const { links } = yield* runUntil(1)
        const [event] = yield* readAll("events")
        const value = numbered(event!.value!, "nobody", 7)
        yield* produceRaw(prefix, "traces", [{ key: "acme", value: strayFact }])
        yield* produceRaw(prefix, "events", [{ key: "nobody", value }])
        assertChain(links, 3)
        assert.strictEqual(yield* compacted((name) => name === "applied", start), "ready")
        yield* append([toRecord(command(2, 2))])
        assertChain(acmeOf((yield* runUntil(2)).links), 5)
        // And with nothing of the changelog left.
        assert.strictEqual(yield* compacted((name) => name !== "owner", start), "ready")
        yield* append([toRecord(command(3))])
        assertChain(acmeOf((yield* runUntil(3)).links), 6)
        const strays = (yield* readAll("state")).flatMap(({ key, value }) =>
          key?.toString().startsWith("strays/events/") === true ? [String(value)] : []
        )
        assert.isAbove(strays.length, 0)
      })
    )
  )

  it.live("refuses a log that was put back behind a checkpoint that the store has", () =>
    withOwnLog(() =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        const signed = (size: number, signer: Signer, tenantId = "acme") => {
          const tree = Frontier.empty()
          for (let at = 0; at < size; at++) tree.append("ab".repeat(32))
          return makeCheckpoint(signer, "alk", tenantId, tree, currentTime())
        }
        const { signer } = checkpointSigner
        const holding = (...rows: ReadonlyArray<CheckpointRecord>) => ({
          checkpointStore: { list: () => Effect.succeed([]), outside: () => Effect.succeed(rows) }
        })
        const other = signerOf("alk", Buffer.alloc(32, 8))
        const harmless = [signed(1_000, other), { ...signed(3, signer), tree_size: 1_000 }]
        assert.strictEqual(yield* startWith(holding(...harmless)), "ready")
        const cause = new Error("down")
        const down = Effect.fail(new StoreUnavailable({ operation: "checkpoints", cause }))
        const isDown = { checkpointStore: { list: () => down, outside: () => down } }
        assert.strictEqual(yield* startWith(isDown), "ready")
        assertRefused(yield* startWith(holding(signed(3, signer))), /acme of 3 records/)
        const beyond = holding(...harmless, signed(5, signer), signed(9, signer))
        assertRefused(
          yield* startWith(beyond),
          /acme of 9 records with the root .*, and 3 are left/
        )
        yield* acceptAll
        assert.strictEqual(yield* startWith(beyond), "ready")
        // Accepted for good, but not more than that, and with another changelog as well.
        assert.strictEqual(yield* startWith(beyond), "ready")
        const gone = (name: string) => name === "applied"
        assert.strictEqual(yield* compacted(gone, startWith(beyond)), "ready")
        assertRefused(yield* startWith(holding(signed(8, signer))), /acme of 8 records/)
        const later = holding(signed(10, signer))
        assertRefused(yield* startWith(later), /acme of 10 records/)
      })
    )
  )

  it.live("refuses topics that were written anew beside what was signed, until a repair", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* append([toRecord({ ...command(2, 0), kind: "checkpoint" })])
        yield* Effect.raceFirst(
          runSequencer(0, settings, () => Effect.void),
          readAtLeast("checkpoints", 1)
        )
        const [kept] = yield* readAll("checkpoints")
        const made = readCheckpoint(kept!.value!)
        const down = Effect.fail(
          new StoreUnavailable({ operation: "test", cause: new Error("down") })
        )
        const isDown = { checkpointStore: { list: () => down, outside: () => down } }
        const inStore = {
          checkpointStore: {
            list: () => Effect.succeed([made]),
            outside: () => Effect.succeed([made])
          }
        }
        const all = (name: string) => name !== "owner" && name !== "repair"
        const anew = Effect.fnUntraced(function* (from: number) {
          const { end } = yield* (yield* EventLog).bounds("events", 0)
          yield* deleteBelow(prefix, "events", end)
          const { bodies } = new Chain("acme").extend(5)
          const records = bodies.slice(from - 1).map((value) => ({ key: "acme", value }))
          yield* produceRaw(prefix, "events", records)
        })
        // The genuine topic leads to it.
        assert.strictEqual(yield* compacted(all, startWith(inStore)), "ready")
        yield* anew(2)
        assertRefused(yield* compacted(all, start), /acme of 3 records.*does not say which root/)
        yield* anew(1)
        const other = /another history than was signed: acme of 3 records.*the root there is/
        assertRefused(yield* compacted(all, start), other)
        const gone = (name: string) => name === "applied"
        assertRefused(yield* compacted(gone, start), /does not lead to its hash/)
        yield* deleteBelow(
          prefix,
          "checkpoints",
          (yield* (yield* EventLog).bounds("checkpoints", 0)).end
        )
        assertRefused(yield* compacted(all, startWith(inStore)), other)
        const waiting = (yield* compacted(all, startWith(isDown))) as { readonly _tag: string }
        assert.strictEqual(waiting._tag, "LogUnavailable")
        yield* acceptAll
        assert.strictEqual(yield* compacted(all, startWith(inStore)), "ready")
        assert.strictEqual(yield* startWith(inStore), "ready")
        yield* append([toRecord(command(3))])
        const { links } = yield* runUntil(2)
        assert.strictEqual(links.at(-1)!.sequenceNumber, 6)
      })
    )
  )

  it.live("refuses a chain with a hole until a repair accepts it", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        const [event] = yield* readAll("events")
        const value = numbered(event!.value!, "acme", 7)
        yield* produceRaw(prefix, "events", [{ key: "acme", value }])
        const all = (name: string) => name !== "owner" && name !== "repair"
        assertRefused(yield* compacted(all, start), /alk.events is damaged: offset 4 does not link/)
        yield* acceptAll
        assert.strictEqual(yield* compacted(all, start), "ready")
        yield* append([toRecord(command(2))])
        const { links } = yield* runUntil(2)
        assertChain([...links.slice(0, 3), ...links.slice(4)], 4)
      })
    )
  )

  it.live("sees by a head that is left that the topic has lost the chain", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        yield* loseTopic(prefix, "events")
        const gone = (name: string) => name === "applied"
        const lost = /the head of acme is 3 there, and 0 in the topic/
        assertRefused(yield* compacted(gone, start), lost)
        yield* acceptAll
        assert.strictEqual(yield* compacted(gone, start), "ready")
      })
    )
  )

  it.live("starts after a repair where commands have expired unread, or their topic is lost", () =>
    Effect.forEach(["expired", "lost"], (what) =>
      withLog((prefix) =>
        Effect.gen(function* () {
          const writer = new CommandWriter()
          yield* append([1, 2].map((n) => written(n, writer, currentTime())))
          yield* runUntil(2)
          if (what === "lost") yield* loseTopic(prefix, "commands", "delete")
          else {
            yield* append([3, 4].map((n) => written(n, writer, currentTime())))
            yield* deleteBelow(prefix, "commands", 4)
          }
          assertRefused(yield* start, /commands have expired unread|the topic has lost records/)
          yield* acceptAll
          assert.strictEqual(yield* start, "ready")
          yield* append([written(5, writer, currentTime())])
          assertChain((yield* runUntil(3)).links, 3)
        })
      )
    )
  )

  it.live("refuses topics that are behind its changelog", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        yield* loseTopic(prefix, "events")
        assertRefused(yield* start, /the topics are behind alk.state.*it ends at 0/)
      })
    )
  )

  it.live("starts again after a repair that accepts what the topics have lost", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        yield* loseTopic(prefix, "events")
        assertRefused(yield* start, /the topics are behind alk.state/)
        yield* acceptAll
        assert.strictEqual(yield* start, "ready")
        yield* append([toRecord(command(2, 2))])
        assertChain((yield* runUntil(2)).links, 2)
      })
    )
  )
})
