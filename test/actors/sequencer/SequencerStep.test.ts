/**
 * The laws of the pure step: whatever the interleaving, the cuts into chunks and the restarts, every
 * tenant's chain is the same, and no command is counted twice or lost.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { advance, type LogEnds, stateRecords } from "../../../src/actors/sequencer/Changelog.ts"
import type { StateChanges } from "../../../src/actors/sequencer/SequencerDraft.ts"
import {
  emptyReplay,
  emptyState,
  finishReplay,
  replay,
  type SequencerState,
  snapshot,
  totalsOf
} from "../../../src/actors/sequencer/SequencerState.ts"
import {
  type ReceivedCommand,
  step,
  stepEach
} from "../../../src/actors/sequencer/SequencerStep.ts"
import { GENESIS_HASH } from "../../../src/domain/chain/Chains.ts"
import { linkHash } from "../../../src/domain/events/HashChain.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"
import { type Command, dedupKeyOf } from "../../../src/domain/records/Command.ts"
import { eventsOf, type PreparedEvent, toBatch } from "../../../src/domain/records/EventBatch.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { parseFact } from "../../../src/domain/traces/FactText.ts"
import { hashedDetails } from "../../../src/services/ingest/HashedDetails.ts"
import { ingestCommand } from "../../support/Events.ts"
import { eventsIn } from "../../support/PackedEvents.ts"
import { checkpointSigner } from "../../support/Signer.ts"
import { details, endExecution, otlpSpan, startExecution } from "../support/Traces.ts"

const NOW = "2026-11-21T12:00:00.000000Z"
const TENANTS = ["acme", "globex", "initech"] as const
const windows = { dedup: 7, idempotency: 5 }

interface Item {
  readonly id: number | undefined
  readonly content: number
}

interface Request {
  readonly tenant: number
  readonly items: ReadonlyArray<Item>
  readonly key: number | undefined
  readonly body: number
}

const request: fc.Arbitrary<Request> = fc.record({
  tenant: fc.nat({ max: TENANTS.length - 1 }),
  items: fc.array(
    fc.record({
      id: fc.option(fc.nat({ max: 12 }), { nil: undefined }),
      content: fc.nat({ max: 1 })
    }),
    { maxLength: 6 }
  ),
  key: fc.option(fc.nat({ max: 6 }), { nil: undefined, freq: 3 }),
  body: fc.nat({ max: 1 })
})

const toEvent = (tenantId: string, item: Item, index: number, offset: number): PreparedEvent => {
  const id = item.id === undefined ? `made-${offset}-${index}` : `id-${item.id}`
  return {
    index,
    id,
    body: `{"id":"${id}"`,
    contentHash: sha256Hex(`${offset}/${index}`),
    ...(item.id === undefined
      ? {}
      : {
          dedupKey: dedupKeyOf(tenantId, id),
          fingerprint: sha256Hex(`content ${item.content}`).slice(0, 32)
        })
  }
}

const toArrival = (wanted: Request, offset: number): ReceivedCommand => {
  const tenantId = TENANTS[wanted.tenant]!
  const command: Command = {
    kind: "ingest",
    tenantId,
    receiptId: `rcp-${offset}`,
    attempt: `attempt-${offset}`,
    receivedAt: NOW,
    events: toBatch(wanted.items.map((item, index) => toEvent(tenantId, item, index, offset))),
    errors: [],
    warnings: [],
    ...(wanted.key === undefined
      ? {}
      : {
          idempotency: {
            key: sha256Hex(`key ${wanted.key} of ${tenantId}`).slice(0, 32),
            body: sha256Hex(`body ${wanted.body}`).slice(0, 32),
            forgetConflict: wanted.body === 1
          }
        })
  }
  return { offset, value: null, command }
}

/** What a partition has said in all: the part that must not depend on cuts and restarts. */
interface Said {
  readonly events: Array<string>
  readonly receipts: Array<string>
  readonly verdicts: Array<string>
}

const say = (said: Said, changes: StateChanges): void => {
  for (const event of eventsIn(changes)) said.events.push(`${event.tenantId} ${event.body}`)
  for (const { receipt } of changes.receipts) said.receipts.push(JSON.stringify(receipt))
  for (const verdict of changes.verdicts) said.verdicts.push(JSON.stringify(verdict))
}

/** The compacted changelog, as a restart would read it back. */
class Changelog {
  readonly #records = new Map<string, Buffer>()

  write(records: ReadonlyArray<{ readonly key: string; readonly value: string | Buffer | null }>) {
    for (const { key, value } of records) {
      if (value === null) this.#records.delete(key)
      else this.#records.set(key, Buffer.from(value))
    }
  }

  restart(): SequencerState {
    const gathered = emptyReplay(0, 1, windows)
    for (const [key, value] of this.#records) replay(gathered, key, value)
    return finishReplay(gathered)
  }

  get size(): number {
    return this.#records.size
  }
}

const endsAfter = (state: SequencerState, { events, traces }: StateChanges): LogEnds => ({
  eventsNext: state.eventsNext + events.count,
  tracesNext: state.tracesNext + traces.facts.length,
  strays: []
})

const run = (
  receivedCommands: ReadonlyArray<ReceivedCommand>,
  cuts: ReadonlyArray<number>,
  restartAfterEach: boolean
): { readonly said: Said; readonly state: SequencerState; readonly changelog: Changelog } => {
  const said: Said = { events: [], receipts: [], verdicts: [] }
  const changelog = new Changelog()
  let state = emptyState(0, 1, windows)
  let at = 0
  for (let turn = 0; at < receivedCommands.length; turn++) {
    const chunk = receivedCommands.slice(at, at + (cuts[turn % cuts.length] ?? 1))
    at += chunk.length
    const changes = step(state, chunk, checkpointSigner, NOW)
    const ends = endsAfter(state, changes)
    changelog.write(stateRecords(state, changes, ends))
    say(said, changes)
    if (restartAfterEach) state = changelog.restart()
    else advance(state, changes, ends)
    assert.deepStrictEqual(changes.totals, totalsOf(state))
  }
  return { said, state, changelog }
}

describe("step", () => {
  it("S1: gives the same chains and receipts however commands are cut and restarted", () => {
    fc.assert(
      fc.property(
        fc.array(request, { minLength: 1, maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 }),
        (requests, cuts) => {
          const receivedCommands = requests.map(toArrival)
          const whole = run(receivedCommands, [receivedCommands.length], false).said
          assert.deepStrictEqual(run(receivedCommands, [1], false).said, whole)
          assert.deepStrictEqual(run(receivedCommands, cuts, false).said, whole)
          assert.deepStrictEqual(run(receivedCommands, cuts, true).said, whole)
        }
      ),
      { numRuns: 300 }
    )
  })

  it("remembers up to where a restart forgets executions, where a store has them", () => {
    const traces = (offset: number, ...operations: Command["traces"] & {}): ReceivedCommand => {
      const received = toArrival({ tenant: 0, items: [], key: undefined, body: 0 }, offset)
      if (!("command" in received)) throw new Error("not a command")
      return { ...received, command: { ...received.command, kind: "trace", traces: operations } }
    }
    const whole = traces(0, startExecution("over"), { ...endExecution("over"), index: 1 })
    const running = traces(1, startExecution("runs"))
    for (const [hasStore, forgotten] of [
      [true, 3],
      [false, 0]
    ] as const) {
      const changelog = new Changelog()
      const state = emptyState(0, 1, windows)
      for (const received of [whole, running]) {
        const changes = step(state, [received], { ...checkpointSigner, hasStore }, NOW)
        const ends = endsAfter(state, changes)
        changelog.write(stateRecords(state, changes, ends))
        advance(state, changes, ends)
      }
      assert.strictEqual(state.traces.size, 4)
      assert.strictEqual(state.evictedBelow, 0)
      const restarted = changelog.restart()
      assert.strictEqual(restarted.evictedBelow, forgotten)
      assert.strictEqual(restarted.traces.execution(TENANTS[0]!, "over") === undefined, hasStore)
      assert.isDefined(restarted.traces.execution(TENANTS[0]!, "runs"))
      // A snapshot of the state, or an eviction, must not take it back.
      const snapshotted = new Changelog()
      snapshotted.write(snapshot(state))
      assert.strictEqual(snapshotted.restart().evictedBelow, forgotten)
    }
  })

  it("records the values of the events that it appends, as an execution that no operation starts", () => {
    const tenantId = TENANTS[0]!
    const arrival = (offset: number, items: ReadonlyArray<Item>): ReceivedCommand => {
      const received = toArrival({ tenant: 0, items, key: undefined, body: 0 }, offset)
      if (!("command" in received)) throw new Error("not a command")
      const values = eventsOf(received.command.events).map(({ id, index }) => ({
        index,
        executionId: `holder-${offset}-${index}`,
        spanId: id,
        payloads: [{ sha256: sha256Hex(id), chunks: [hashedDetails('{"payload":{"text":"a"}}')] }]
      }))
      return { ...received, command: { ...received.command, values } }
    }
    const commands = [
      arrival(0, [{ id: 1, content: 0 }]),
      // The same, another one under its id, and a new one.
      arrival(1, [
        { id: 1, content: 0 },
        { id: 1, content: 1 },
        { id: 2, content: 0 }
      ])
    ]
    for (const hasStore of [true, false]) {
      const state = emptyState(0, 1, windows)
      const changelog = new Changelog()
      const changes = step(state, commands, { ...checkpointSigner, hasStore }, NOW)
      const facts = changes.traces.facts.map(({ body }) => parseFact(body)!)
      assert.deepStrictEqual(
        facts.map((fact) => [
          fact.type,
          fact.execution_id,
          fact.fact_number,
          fact.details?.payload
        ]),
        ["holder-0-0", "holder-1-2"].map((id) => ["span.payload", id, 1, { text: "a" }])
      )
      assert.deepStrictEqual(
        changes.receipts.map(({ eventsBefore, factsBefore }) => [eventsBefore, factsBefore]),
        [
          [1, 1],
          [2, 2]
        ]
      )
      const ends = endsAfter(state, changes)
      changelog.write(stateRecords(state, changes, ends))
      advance(state, changes, ends)
      const restarted = changelog.restart()
      assert.strictEqual(restarted.evictedBelow, hasStore ? 2 : 0)
      const known = restarted.traces.execution(tenantId, "holder-0-0")
      assert.strictEqual(known?.header.status, hasStore ? undefined : "COMPLETED")
    }
  })

  it("S3: keeps each tenant's chain the same whatever the other tenants do in between", () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 40 }), (requests) => {
        // Without ids and keys nothing but the order within the tenant may matter.
        const plain = requests.map(({ items, tenant }) => ({
          tenant,
          items: items.map(({ content }) => ({ id: undefined, content })),
          key: undefined,
          body: 0
        }))
        const mixed = plain.map(toArrival)
        const { events } = run(mixed, [3], false).said
        for (const tenant of TENANTS) {
          const own = mixed
            .filter((received) => "command" in received && received.command.tenantId === tenant)
            .map((received, offset) => ({ ...received, offset }))
          const alone = own.length === 0 ? [] : run(own, [own.length], false).said.events
          assert.deepStrictEqual(
            events.filter((line) => line.startsWith(`${tenant} `)),
            alone
          )
        }
      }),
      { numRuns: 200 }
    )
  })

  it("S2: numbers from 1 without a gap and links every event to the one before", () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 40 }), (requests) => {
        const { events } = run(requests.map(toArrival), [4], true).said
        const heads = new Map<string, { readonly sequence: number; readonly hash: string }>()
        for (const line of events) {
          const at = line.indexOf(" ")
          const tenantId = line.slice(0, at)
          const event = JSON.parse(line.slice(at + 1)) as Record<string, string> & {
            readonly sequence_number: number
          }
          const before = heads.get(tenantId) ?? { sequence: 0, hash: GENESIS_HASH }
          assert.strictEqual(event.sequence_number, before.sequence + 1)
          assert.strictEqual(event["prev_hash"], before.hash)
          const hash = linkHash({
            tenantId,
            sequenceNumber: event.sequence_number,
            createdAt: event["created_at"]!,
            contentHash: event["content_hash"]!,
            prevHash: before.hash
          })
          assert.strictEqual(event["hash"], hash)
          heads.set(tenantId, { sequence: event.sequence_number, hash })
        }
      }),
      { numRuns: 200 }
    )
  })

  it("S4: answers every command exactly once, and counts what it says it counts", () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 40 }), (requests) => {
        const receivedCommands = requests.map(toArrival)
        const { events, receipts, verdicts } = run(receivedCommands, [5], false).said
        assert.strictEqual(receipts.length + verdicts.length, receivedCommands.length)
        let appended = 0
        for (const text of receipts) {
          const receipt = JSON.parse(text) as Record<string, unknown>
          const duplicates = (receipt["duplicates"] as Array<unknown> | undefined) ?? []
          const ids = receipt["ids"] as Array<string>
          assert.strictEqual(receipt["accepted"], ids.length)
          appended += ids.length - duplicates.length
        }
        assert.strictEqual(events.length, appended)
      }),
      { numRuns: 200 }
    )
  })

  it("keeps the changelog bounded by the windows", () => {
    const requests = Array.from({ length: 400 }, (_, index) => ({
      tenant: 0,
      items: [{ id: index, content: 0 }],
      key: index,
      body: 0
    }))
    const { changelog, state } = run(requests.map(toArrival), [1], true)
    assert.strictEqual(state.heads.get("acme")?.sequence_number, 400)
    assert.isAtMost(changelog.size, windows.dedup + windows.idempotency + 8)
  })

  it("S6: never goes back in time when the clock does", () => {
    const first = toArrival(
      { tenant: 0, items: [{ id: 1, content: 0 }], key: undefined, body: 0 },
      0
    )
    const second = toArrival(
      { tenant: 0, items: [{ id: 2, content: 0 }], key: undefined, body: 0 },
      1
    )
    const state = emptyState(0, 1, windows)
    const changes = step(state, [first], checkpointSigner, NOW)
    advance(state, changes, endsAfter(state, changes))
    const later = step(state, [second], checkpointSigner, "2026-11-21T11:00:00.000000Z")
    assert.strictEqual(eventsIn(later)[0]?.createdAt, NOW)
  })

  it("counts what it refuses itself by code, and not what validation has refused", () => {
    const named = { tenant: 0, key: undefined, body: 0 }
    const first = toArrival({ ...named, items: [{ id: 1, content: 0 }] }, 0)
    const items = [
      { id: 1, content: 1 },
      { id: 1, content: 0 },
      { id: 1, content: 2 }
    ]
    const second = toArrival({ ...named, items }, 1) as ReceivedCommand & { command: Command }
    const rejected = { index: 9, code: "missing_field", message: "actor: required" }
    const command = { ...second.command, errors: [rejected] }
    const state = emptyState(0, 1, windows)
    const { counts } = step(state, [first, { ...second, command }], checkpointSigner, NOW)
    assert.deepStrictEqual([...counts.refused], [["id_conflict", 2]])
    assert.strictEqual(counts.deduplicated, 1)
  })

  it("counts the repairs that it decides on, each once", () => {
    const sent = ["a", "b", "a", "b"].map((name) =>
      otlpSpan("t", "t.0", { details: details({ name }) })
    )
    const command: Command = { ...ingestCommand("acme", 0), kind: "trace", traces: sent }
    const state = emptyState(0, 1, windows)
    const { counts } = step(state, [{ offset: 0, value: null, command }], checkpointSigner, NOW)
    assert.deepStrictEqual([...counts.repaired], [["other_content", 1]])
  })

  it("S5: sets a command aside on which the step fails twice, and goes on behind it", () => {
    const receivedCommands = [0, 1, 2].map((offset) =>
      toArrival(
        { tenant: 0, items: [{ id: undefined, content: 0 }], key: undefined, body: 0 },
        offset
      )
    )
    const [first, poison, last] = receivedCommands as [
      ReceivedCommand,
      ReceivedCommand & { command: Command },
      ReceivedCommand
    ]
    const idempotency = { key: "0".repeat(32), body: "0".repeat(32), forgetConflict: false }
    const value = Buffer.from("as it stood in the topic")
    // Read without complaint, but its time can't be understood: the step fails on it.
    const command = { ...poison.command, idempotency, receivedAt: "yesterday" }
    const broken: ReceivedCommand = { offset: 1, value, command }
    const state = emptyState(0, 1, windows)
    const jumped = [
      { ...last, offset: 1 },
      { ...first, offset: 1 }
    ]
    assert.throws(() => step(state, jumped, checkpointSigner, NOW), /expected/)
    const inSteps = stepEach(state, [first, broken, last], checkpointSigner, NOW)
    const given = Array.from({ length: 3 }, () => inSteps.next().done)
    assert.deepStrictEqual(given, [false, false, false], "others have their turn before each")
    assert.strictEqual(state.applied, -1)
    const changes = finish(inSteps)
    assert.deepStrictEqual(
      eventsIn(changes).map(({ sequenceNumber }) => sequenceNumber),
      [1, 2]
    )
    assert.strictEqual(changes.quarantined[0]?.offset, 1)
    assert.strictEqual(changes.quarantined[0]?.value, value)
    assert.strictEqual(changes.quarantined[0]?.kind, "failed")
    assert.strictEqual(changes.idempotency.length, 0)
    assert.strictEqual(changes.receipts[1]?.receipt.status, "failed")
    assert.strictEqual(changes.receipts[1]?.receipt.received_at, NOW)
    assert.strictEqual(changes.applied, 2)
  })
})
