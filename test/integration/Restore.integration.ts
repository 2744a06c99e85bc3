/** How a sequencer comes back: every case of a restore, on a real broker. */

import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import { linkOf } from "../../src/domain/chain/ChainLink.ts"
import { makeCheckpoint, signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import { COMMAND_FORMAT } from "../../src/domain/records/Command.ts"
import { CommandWriter } from "../../src/domain/records/CommandWriter.ts"
import { OwnOffsets } from "../../src/domain/records/OwnOffsets.ts"
import { KIND_HEADER, MAC_HEADER } from "../../src/domain/records/RecordHeaders.ts"
import { EventLog, type LogRecord } from "../../src/ports/EventLog.ts"
import { eventually } from "../support/Eventually.ts"
import {
  append,
  deleteBelow,
  leaveTransaction,
  loseTopic,
  produceRaw,
  readAll,
  withLog
} from "../support/Log.ts"

import {
  acmeOf,
  assertChain,
  assertRefused,
  command,
  compacted,
  linking,
  runUntil,
  settings,
  start,
  toRecord,
  withOwnLog,
  written
} from "./support/Starts.ts"

describe("a sequencer that starts", () => {
  it.live("is ready on an empty partition, time and again", () =>
    withLog(() =>
      Effect.gen(function* () {
        assert.strictEqual(yield* start, "ready")
        assert.strictEqual(yield* start, "ready")
      })
    )
  )

  it.live("goes on where it stopped, without a gap or a repeat", () =>
    withLog(() =>
      Effect.gen(function* () {
        yield* append([command(1, 3), command(2, 2)].map((one) => toRecord(one)))
        assertChain((yield* runUntil(2)).links, 5)
        yield* append([toRecord(command(3, 4))])
        assertChain((yield* runUntil(3)).links, 9)
      })
    )
  )

  it.live("remembers ids: the same content is a duplicate, other content a conflict", () =>
    withLog(() =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 2))])
        yield* runUntil(1)
        yield* append([toRecord(command(101, 2)), toRecord(command(201, 2, "other"))])
        const { links, receipts: found } = yield* runUntil(3)
        assertChain(links, 2)
        assert.deepStrictEqual(
          found[1]?.duplicates?.map(({ sequence_number }) => sequence_number),
          [1, 2]
        )
        assert.deepStrictEqual(
          found[2]?.errors.map(({ code }) => code),
          ["id_conflict", "id_conflict"]
        )
      })
    )
  )

  it.live("is not misled by aborted transactions at the end of events and state", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        for (const topic of ["events", "state", "receipts"] as const) {
          yield* leaveTransaction(prefix, topic, Array(30).fill("aborted"), "abort")
        }
        yield* append([toRecord(command(2, 2))])
        assertChain((yield* runUntil(2)).links, 5)
      })
    )
  )

  it.live("waits out a transaction that a dead owner left open, and reuses its numbers", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        const dead = yield* log.writer("sequencer-0")
        yield* Effect.flip(
          dead.commit([{ topic: "events", partition: 0, key: "acme", value: "never" }], () => {
            throw new Error("killed before the commit")
          })
        )
        yield* append([toRecord(command(2, 2))])
        assertChain((yield* runUntil(2)).links, 5)
      })
    )
  )

  it.live("rebuilds a lost changelog from the topics: chain, ids and position", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        yield* append([command(1, 3), command(2, 2)].map((one) => toRecord(one)))
        yield* runUntil(2)
        yield* loseTopic(prefix, "state")
        yield* append([toRecord(command(101, 3)), toRecord(command(202, 2, "other"))])
        yield* append([toRecord(command(3))])
        const { links, receipts: found } = yield* runUntil(5)
        assertChain(links, 6)
        assert.strictEqual(found[2]?.duplicates?.length, 3)
        assert.strictEqual(found[3]?.errors.length, 2)
        // And once more from the rebuilt changelog.
        yield* append([toRecord(command(301, 3))])
        const again = yield* runUntil(6)
        assertChain(again.links, 6)
        assert.strictEqual(again.receipts[5]?.duplicates?.length, 3)
      })
    )
  )

  it.live("is not put back by copies of records of its own, and makes its state anew", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        for (const one of [command(1, 3), command(2, 2), { ...command(3), tenantId: "other" }]) {
          yield* append([toRecord(one)])
          yield* runUntil(Number(one.receiptId.slice(4)))
        }
        const records = yield* readAll("state")
        const copied = ["head/acme", "applied", "dedup/0"].map((name) => {
          const { headers, key, value } = records.find((record) => record.key?.toString() === name)!
          return { key, value, headers: { [MAC_HEADER]: headers[MAC_HEADER]!.toString() } }
        })
        yield* produceRaw(prefix, "state", copied)
        const refused = (yield* readAll("state")).slice(records.length)
        assert.deepStrictEqual(
          refused.map(({ refused }) => refused),
          copied.map(() => "its MAC is not that of this service")
        )
        yield* append([toRecord(command(4)), toRecord(command(101, 3))])
        const after = yield* runUntil(5)
        assertChain(acmeOf(after.links), 6)
        assert.strictEqual(after.receipts[4]?.duplicates?.length, 3)
      })
    )
  )

  it.live("remembers ids, though what says so is gone", () =>
    withOwnLog(() =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3))])
        yield* runUntil(1)
        assert.strictEqual(yield* compacted((name) => name === "dedup/0", start), "ready")
        yield* append([toRecord(command(101, 3))])
        const { links, receipts: found } = yield* runUntil(2)
        assertChain(links, 3)
        assert.strictEqual(found[1]?.duplicates?.length, 3)
      })
    )
  )

  it.live("applies no old command once more, though what says who wrote them is gone", () =>
    Effect.forEach([["writer/"], ["writer/", "applied"]], (gone) =>
      withOwnLog((prefix) =>
        Effect.gen(function* () {
          const [before, after] = [new CommandWriter(), new CommandWriter()]
          const at = (second: number) => `2026-11-21T12:00:0${second}.000000Z`
          const old = [1, 2, 3].map((n) => written(n, before, at(n)))
          yield* append(old)
          yield* runUntil(3)
          // All that is left of the commands is a copy, by which its writer has come to 1 only.
          yield* append([old[0]!])
          yield* Effect.raceFirst(
            runSequencer(0, settings, () => Effect.void),
            eventually("it is set aside", readAll("quarantine"), ({ length }) => length > 1)
          )
          yield* deleteBelow(prefix, "commands", 3)
          const isGone = (key: string) => gone.some((name) => key.startsWith(name))
          assert.strictEqual(yield* compacted(isGone, start), "ready")
          yield* append([...old, written(4, after, at(4))])
          const { links } = yield* runUntil(4)
          assertChain(links, 4)
          const reasons = (yield* readAll("quarantine")).flatMap(({ headers }) => {
            const reason = headers["alk-reason"]?.toString()
            return reason === undefined
              ? []
              : [[headers[KIND_HEADER]?.toString(), reason.slice(0, 16)]]
          })
          const maybe = ["copy", "it may be a copy"]
          assert.deepStrictEqual(reasons.slice(1), [["copy", "it is a copy: th"], maybe, maybe])
        })
      )
    )
  )

  it.live("sees that a head is gone: the heads do not add up", () =>
    withOwnLog(() =>
      Effect.gen(function* () {
        for (const one of [command(1, 3), command(2, 2), { ...command(3), tenantId: "other" }]) {
          yield* append([toRecord(one)])
          yield* runUntil(Number(one.receiptId.slice(4)))
        }
        assert.strictEqual(yield* compacted((name) => name === "head/acme", start), "ready")
        yield* append([toRecord(command(4))])
        assertChain(acmeOf((yield* runUntil(4)).links), 6)
      })
    )
  )

  it.live("does not take another history of as many records for the written one", () =>
    Effect.forEach(
      [
        { gone: "head/", found: "adopted" },
        { gone: "dedup/", found: /another history than alk\.state says: the head of acme/ }
      ] as const,
      ({ found, gone }) =>
        withOwnLog((prefix) =>
          Effect.gen(function* () {
            for (const one of [command(1, 3), { ...command(2), tenantId: "other" }]) {
              yield* append([toRecord(one)])
              yield* runUntil(Number(one.receiptId.slice(4)))
            }
            const { end } = yield* (yield* EventLog).bounds("events", 0)
            const [first, , , other] = (yield* readAll("events")).map(({ value }) => value!)
            const forged = [first!, linking(first!, "a".repeat(64))]
            const history = [...forged, linking(forged[1]!, "b".repeat(64)), other!]
            yield* loseTopic(prefix, "events", "delete")
            yield* loseTopic(prefix, "checkpoints", "delete")
            yield* produceRaw(
              prefix,
              "events",
              history.map((value) => ({ key: String(linkOf(Buffer.from(value))!.tenantId), value }))
            )
            const rest = end - history.length
            yield* produceRaw(prefix, "events", Array(rest).fill({ key: "acme", value: "junk" }))
            const result = yield* compacted(
              (name) => /^checkpoint\//.test(name) || name.startsWith(gone),
              start
            )
            const state = (yield* readAll("state")).filter(({ refused }) => refused === undefined)
            const isAdopted = String(state.at(-1)?.value).includes('"adopted":{')
            if (found !== "adopted") {
              assertRefused(result, found)
              return assert.isFalse(isAdopted)
            }
            assert.strictEqual(result, "ready")
            return assert.isTrue(isAdopted)
          })
        )
    )
  )

  it.live("finds by the heads what others have written, where it is not said any more", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        for (const one of [command(1, 3), { ...command(2, 2), tenantId: "other" }]) {
          yield* append([toRecord(one)])
          yield* runUntil(Number(one.receiptId.slice(4)))
        }
        // Two that link, before the genuine ones with the same numbers, and one that is nothing.
        const [first, second] = [
          linking((yield* readAll("events"))[2]!.value!, "a".repeat(64))
        ].flatMap((value) => [value, linking(value, "b".repeat(64))])
        yield* produceRaw(prefix, "events", [
          { key: "acme", value: first! },
          { key: "acme", value: "{}" },
          { key: "acme", value: second! }
        ])
        yield* append([toRecord(command(3, 2))])
        yield* runUntil(3)
        const strays = (records: ReadonlyArray<LogRecord>) =>
          records.flatMap(({ key, value }) =>
            key?.toString().startsWith("strays/") === true ? [`${key} ${value}`] : []
          )
        const said = strays(yield* readAll("state"))
        assert.deepStrictEqual(said, ['strays/events/6 {"next":10}'])
        const lost = (name: string) => name.startsWith("strays/")
        assert.strictEqual(yield* compacted(lost, start), "ready")
        const again = strays(yield* readAll("state")).slice(1)
        assert.deepStrictEqual(again, ['strays/events/7 {"next":10}'])
        yield* append([toRecord(command(4))])
        yield* runUntil(4)
        const genuine = (yield* readAll("events")).filter(({ offset }) => offset < 7 || offset > 9)
        const links = acmeOf(genuine.map(({ value }) => linkOf(value!)!))
        assertChain(links, 6)
        assert.notInclude(String(yield* readAll("state")), "adopted")
      })
    )
  )

  it.live(
    "takes nothing over behind a head that is there, where it is not said how far it goes",
    () =>
      withOwnLog((prefix) =>
        Effect.gen(function* () {
          for (const one of [command(1, 3), { ...command(2), tenantId: "other" }]) {
            yield* append([toRecord(one)])
            yield* runUntil(Number(one.receiptId.slice(4)))
          }
          const forged = linking((yield* readAll("events"))[2]!.value!, "a".repeat(64))
          yield* produceRaw(prefix, "events", [{ key: "acme", value: forged }])
          const gone = (name: string) => ["applied", "head/other"].includes(name)
          assert.strictEqual(yield* compacted(gone, start), "ready")
          const own = new OwnOffsets()
          for (const { key, refused, value } of yield* readAll("state")) {
            if (refused === undefined) own.take(String(key), value)
          }
          const { length: records } = yield* readAll("events")
          assert.strictEqual(records, 5)
          assert.deepInclude(own.adopted, { events_next: 5 })
          assert.strictEqual(own.next("events"), 5)
          yield* append([toRecord(command(3, 2))])
          yield* runUntil(3)
          const genuine = (yield* readAll("events")).filter(({ value }) => String(value) !== forged)
          assertChain(acmeOf(genuine.map(({ value }) => linkOf(value!)!)), 5)
        })
      )
  )

  it.live("believes no receipts, checkpoints and set aside commands of others", () =>
    withOwnLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1, 3)), toRecord(command(2))])
        yield* runUntil(2)
        const headers = { "alk-command": "99", "alk-kind": "outcome" }
        const [receipt] = yield* readAll("receipts")
        yield* produceRaw(prefix, "receipts", [{ key: "acme", value: receipt!.value, headers }])
        yield* produceRaw(prefix, "quarantine", [{ key: "99", value: "x", headers }])
        const tree = Frontier.empty()
        for (let size = 0; size < 1_000; size++) tree.append("ab".repeat(32))
        const other = signerOf("alk", Buffer.alloc(32, 8))
        const at = "2026-11-21T12:00:00.000000Z"
        const value = JSON.stringify(makeCheckpoint(other, "alk", "acme", tree, at))
        yield* produceRaw(prefix, "checkpoints", [{ key: "acme", value }])
        for (const gone of ["applied", "head/acme"]) {
          const what = (name: string) => name === gone
          assert.strictEqual(yield* compacted(what, start), "ready", gone)
        }
        const said = (yield* readAll("state")).filter(
          ({ key }) => key?.toString() === "checkpoint/acme"
        )
        assert.notInclude(said.map(({ value }) => String(value)).join(), "1000")
        yield* append([toRecord(command(3))])
        // With the receipt that is forged.
        assertChain((yield* runUntil(4)).links, 5)
      })
    )
  )

  it.live("passes over what others leave among the commands, and starts again after it", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        yield* append([toRecord(command(1))])
        yield* runUntil(1)
        // Nobody writes commands in transactions; whoever does leaves offsets that hold nothing.
        yield* leaveTransaction(prefix, "commands", ["never committed"], "abort")
        yield* append([toRecord(command(2))])
        assertChain((yield* runUntil(2)).links, 2)
        yield* leaveTransaction(prefix, "commands", ["never committed"], "abort")
        assert.strictEqual(yield* start, "ready")
        yield* append([toRecord(command(3))])
        assertChain((yield* runUntil(3)).links, 3)
      })
    )
  )

  it.live("sets unreadable commands aside, fails their receipts, and goes on", () =>
    withLog(() =>
      Effect.gen(function* () {
        const truncated = toRecord(command(1, 2))
        yield* append([
          { ...truncated, value: String(truncated.value).slice(0, 40) },
          { ...toRecord(command(2)), value: null },
          { ...toRecord(command(3)), value: "null" },
          toRecord(command(4, 2))
        ])
        const { links, receipts: found } = yield* runUntil(4)
        assertChain(links, 2)
        assert.deepStrictEqual(
          found.map(({ status }) => status),
          ["failed", "failed", "failed", "committed"]
        )
        const aside = yield* readAll("quarantine")
        assert.deepStrictEqual(
          aside.map(({ headers }) => headers["alk-command"]?.toString()),
          ["0", "1", "2"]
        )
        assert.isTrue(aside.every(({ headers }) => headers["alk-reason"]!.length > 0))
        assert.isTrue(aside.every(({ headers }) => headers["alk-format"]!.toString() === "1"))
      })
    )
  )

  it.live("stops at a command of a newer format, with everything before it applied", () =>
    withLog(() =>
      Effect.gen(function* () {
        const newer = toRecord(command(2), COMMAND_FORMAT + 1)
        yield* append([toRecord(command(1)), newer])
        const result = yield* Effect.flip(runUntil(2))
        assertRefused(result, /offset 1 has format 2, this program reads up to 1: upgrade/)
        assert.strictEqual((yield* readAll("events")).length, 1)
        assert.strictEqual((yield* readAll("quarantine")).length, 0)
        assertRefused(yield* Effect.flip(runUntil(2)), /offset 1 has format 2/)
      })
    )
  )

  it.live("makes no state again of commands that only a newer program reads", () =>
    withLog((topics) =>
      Effect.gen(function* () {
        const newer = toRecord(command(2), COMMAND_FORMAT + 1)
        yield* append([toRecord(command(1))])
        yield* runUntil(1)
        yield* append([
          newer,
          {
            topic: "quarantine",
            partition: 0,
            key: "1",
            value: "what a newer sequencer has set aside",
            headers: { "alk-command": "1", "alk-reason": "none of ours" }
          }
        ])
        yield* loseTopic(topics, "state")
        assertRefused(yield* start, /offset 1 has format 2, this program reads up to 1/)
      })
    )
  )
})
