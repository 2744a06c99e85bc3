/** What tests of starts share: commands, runs of a sequencer, and what compaction or others have done. */
import { assert } from "@effect/vitest"
import { Deferred, Effect, type Scope } from "effect"
import {
  runSequencer,
  type SequencerFailure,
  type SequencerSettings
} from "../../../src/actors/sequencer/Sequencer.ts"
import { acceptLoss } from "../../../src/cli/Repair.ts"
import { type ChainLink, linkOf } from "../../../src/domain/chain/ChainLink.ts"
import { GENESIS_HASH } from "../../../src/domain/chain/Chains.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"
import { COMMAND_FORMAT, type Command, dedupKeyOf } from "../../../src/domain/records/Command.ts"
import { encodeCommand } from "../../../src/domain/records/CommandBytes.ts"
import type { CommandWriter } from "../../../src/domain/records/CommandWriter.ts"
import { toBatch } from "../../../src/domain/records/EventBatch.ts"
import type { Receipt } from "../../../src/domain/records/Receipt.ts"
import { KIND_HEADER, WRITER_HEADER } from "../../../src/domain/records/RecordHeaders.ts"
import { nowMicros } from "../../../src/domain/Timestamp.ts"
import { storeFact } from "../../../src/domain/traces/FactText.ts"
import {
  EventLog,
  type Fetched,
  type LogReader,
  type NewRecord
} from "../../../src/ports/EventLog.ts"
import { asService } from "../../support/Authenticated.ts"
import { eventually } from "../../support/Eventually.ts"
import { readAll, withLog } from "../../support/Log.ts"
import { checkpointSigner } from "../../support/Signer.ts"

export const settings = { ...checkpointSigner, windows: { dedup: 100, idempotency: 100 } }

export const command = (n: number, count = 1, content = "same"): Command => ({
  kind: "ingest",
  tenantId: "acme",
  receiptId: `rcp-${n}`,
  attempt: `attempt-${n}`,
  receivedAt: "2026-11-21T12:00:00.000000Z",
  events: toBatch(
    Array.from({ length: count }, (_, index) => {
      const id = `e-${n % 100}-${index}`
      return {
        index,
        id,
        body: `{"id":"${id}"`,
        contentHash: sha256Hex(`${n}/${index}`),
        dedupKey: dedupKeyOf("acme", id),
        fingerprint: sha256Hex(content).slice(0, 32)
      }
    })
  ),
  errors: [],
  warnings: []
})

export const toRecord = (wanted: Command, format = COMMAND_FORMAT): NewRecord => ({
  topic: "commands",
  partition: 0,
  key: wanted.tenantId,
  value: encodeCommand(wanted),
  headers: {
    "alk-format": String(format),
    "alk-receipt": wanted.receiptId,
    "alk-tenant": wanted.tenantId
  }
})

/** A command of a writer, of whose event no id of a client tells that it was there. */
export const written = (n: number, writer: CommandWriter, receivedAt: string): NewRecord => {
  const event = { index: 0, id: `e-${n}`, body: `{"id":"e-${n}"`, contentHash: sha256Hex("") }
  const record = toRecord({ ...command(n), receivedAt, events: toBatch([event]) })
  return { ...record, headers: { ...record.headers, [WRITER_HEADER]: writer.next(nowMicros()) } }
}

export const receipts = readAll("receipts").pipe(
  Effect.map((records) =>
    records
      .filter(({ headers }) => headers[KIND_HEADER]?.toString() === "outcome")
      .map(({ value }) => JSON.parse(value!.toString()) as Receipt)
  )
)

/** Run a sequencer until so many receipts stand in the topic; what it failed with ends the wait. */
export const runUntil = Effect.fnUntraced(function* (count: number) {
  yield* Effect.raceFirst(
    runSequencer(0, settings, () => Effect.void),
    eventually(`${count} receipts`, receipts, ({ length }) => length >= count)
  )
  const links = (yield* readAll("events")).map(({ value }) => linkOf(value!)!)
  return { links, receipts: yield* receipts }
})

/** On topics of its own, internal records authenticated. */
export const withOwnLog = <A, E>(
  test: (prefix: string) => Effect.Effect<A, E, EventLog | Scope.Scope>
) => withLog((prefix) => asService({ prefix }, test(prefix)))

/** With an `alk.state` from which compaction has removed records, and nothing is left of what did it. */
export const compacted = <A, E>(
  isGone: (key: string) => boolean,
  run: Effect.Effect<A, E, EventLog>
) =>
  Effect.flatMap(EventLog, (log) => {
    const left = (fetched: Fetched): Fetched =>
      fetched.topic === "state"
        ? { ...fetched, records: fetched.records.filter(({ key }) => !isGone(String(key))) }
        : fetched
    const reader = Effect.map(
      log.reader,
      (own): LogReader => ({
        fetch: (positions, limits) =>
          Effect.map(own.fetch(positions, limits), (all) => all.map(left))
      })
    )
    return Effect.provideService(run, EventLog, { ...log, reader })
  })

/** An event that follows another one, as anybody can write it. */
export const linking = (before: string | Buffer, hash: string): string => {
  const event = JSON.parse(before.toString()) as Record<string, unknown>
  return JSON.stringify({
    ...event,
    sequence_number: Number(event["sequence_number"]) + 1,
    prev_hash: event["hash"],
    hash
  })
}

/** A fact that no sequencer has written, of a chain that has not begun. */
export const strayFact = storeFact(
  {
    type: "execution.ended",
    execution_id: "x",
    fact_number: 2,
    status: "COMPLETED",
    ended_at: "2026-11-21T12:00:00.000000Z"
  },
  undefined,
  {
    tenantId: "acme",
    chainSequence: 7,
    createdAt: "2026-11-21T12:00:00.000000Z",
    prevHash: "ab".repeat(32)
  }
).body

/** An event of a number, as anybody can write it. */
export const numbered = (like: string | Buffer, tenantId: string, sequenceNumber: number): string =>
  JSON.stringify({
    ...(JSON.parse(like.toString()) as Record<string, unknown>),
    tenant_id: tenantId,
    sequence_number: sequenceNumber
  })

export const acceptAll = acceptLoss(["0", "--accept-loss"])

/** How a start ends: ready, or refused. */
export const startWith = Effect.fnUntraced(function* (
  lookups: Pick<SequencerSettings, "checkpointStore">
) {
  const ready = yield* Deferred.make<"ready">()
  return yield* Effect.raceFirst(
    runSequencer(0, { ...settings, ...lookups }, () =>
      Effect.asVoid(Deferred.succeed(ready, "ready"))
    ).pipe(Effect.catch((error: SequencerFailure) => Effect.succeed(error))),
    eventually("the sequencer is ready or refuses", Deferred.await(ready))
  )
})

export const start = startWith({})

export const assertRefused = (result: unknown, message: RegExp): void => {
  const refusal = result as { readonly _tag?: string; readonly message?: string }
  assert.strictEqual(refusal._tag, "PartitionRefused")
  assert.match(refusal.message ?? "", message)
}

export const assertChain = (links: ReadonlyArray<ChainLink>, length: number): void => {
  assert.strictEqual(links.length, length)
  links.forEach((link, index) => {
    assert.strictEqual(link.sequenceNumber, index + 1)
    assert.strictEqual(link.prevHash, links[index - 1]?.hash ?? GENESIS_HASH)
  })
}

export const acmeOf = (links: ReadonlyArray<ChainLink>) =>
  links.filter(({ tenantId }) => tenantId === "acme")
