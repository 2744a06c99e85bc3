/**
 * CPU of the sequencer's own work by part, without a broker: commands of 1,000 events are decoded,
 * stepped and encoded as a transaction's record batches. Microseconds of CPU an event, all threads;
 * `npm run bench:sequencing -- --rounds 100`. `--ids`: the client gives the ids.
 */
import { parseArgs } from "node:util"
import { advance, stateRecords } from "../../src/actors/sequencer/Changelog.ts"
import { emptyState, newStateRecord } from "../../src/actors/sequencer/SequencerState.ts"
import { type ReceivedCommand, step } from "../../src/actors/sequencer/SequencerStep.ts"
import { BatchSender, toRequests } from "../../src/adapters/kafka/protocol/BatchSender.ts"
import type { RawCluster } from "../../src/adapters/kafka/protocol/KafkaClient.ts"
import { encodeProduceRequest } from "../../src/adapters/kafka/protocol/ProduceRequest.ts"
import type { Command } from "../../src/domain/records/Command.ts"
import { decodeCommand, encodeCommand } from "../../src/domain/records/CommandBytes.ts"
import { toBatch } from "../../src/domain/records/EventBatch.ts"
import { prepareItem } from "../../src/services/ingest/Prepare.ts"
import { checkpointSigner } from "../support/Signer.ts"

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "30" },
    commands: { type: "string", default: "10" },
    events: { type: "string", default: "1000" },
    ids: { type: "boolean", default: false }
  }
})
const ROUNDS = Number(options.rounds)
/** Rounds that are not counted: the compiler is still at work. */
const WARM_UP = 5
const COMMANDS = Number(options.commands)
const EVENTS = Number(options.events)
const NOW = "2026-11-21T10:00:00.000000Z"
const LATER = "2026-11-21T10:00:01.000000Z"

/** About 380 bytes as sent. */
const item = (n: number, id: string | undefined) => ({
  ...(id === undefined ? {} : { id }),
  timestamp: `2026-11-21T10:00:00.${String(n % 1_000_000).padStart(6, "0")}Z`,
  actor: { id: `user-${n % 1_000}`, type: "human", email: `user-${n % 1_000}@example.com` },
  action: ["document.read", "document.share", "login.succeeded"][n % 3],
  resource: { id: `doc-${n % 5_000}`, type: "document", name: `Document ${n}` },
  outcome: n % 5 === 0 ? "failure" : "success",
  metadata: { ip: `10.0.0.${n % 255}`, tags: ["a", "b"], request: { n, ms: n * 1.5 } }
})

const command = (round: number, index: number): Command => {
  const tenantId = `bench-${index % 4}`
  const prepared = Array.from({ length: EVENTS }, (_, place) => {
    const n = index * EVENTS + place
    const id = options.ids ? `evt-${round}-${n}` : undefined
    const shared = { mode: "batch", tenantId, acceptedAt: NOW, secret: "secret" } as const
    const made = prepareItem(item(n, id), { index: place, ...shared })
    if ("error" in made) throw new Error(made.error.message)
    return made.ok
  })
  return {
    kind: "ingest",
    tenantId,
    receiptId: `rcp_${"a".repeat(52)}`,
    attempt: crypto.randomUUID(),
    receivedAt: NOW,
    events: toBatch(prepared),
    errors: [],
    warnings: []
  }
}

const valuesOf = (round: number): ReadonlyArray<Buffer> =>
  Array.from({ length: COMMANDS }, (_, index) => {
    return encodeCommand(command(round, index))
  })

const spent = new Map<string, number>()

const measured = async <A>(part: string, work: () => A | Promise<A>): Promise<A> => {
  const before = process.cpuUsage()
  const result = await work()
  const { system, user } = process.cpuUsage(before)
  spent.set(part, (spent.get(part) ?? 0) + user + system)
  return result
}

const state = emptyState(0, 1, { dedup: 1_000_000, idempotency: 1_000_000 })
const sender = new BatchSender({} as RawCluster, "sequencer-0", {
  producerId: 1n,
  producerEpoch: 0
})

const once = async (values: ReadonlyArray<Buffer>): Promise<void> => {
  const chunk = await measured("decode", () =>
    values.map((value, index): ReceivedCommand => {
      const offset = state.applied + 1 + index
      return { offset, value, command: decodeCommand(value) }
    })
  )
  const changes = await measured("step", () => step(state, chunk, checkpointSigner, LATER))
  const records = await measured("records", () => {
    const eventsNext = state.eventsNext + changes.events.count
    const ends = { eventsNext, tracesNext: 0, strays: [] }
    const following = stateRecords(state, changes, ends).map((record) => newStateRecord(0, record))
    advance(state, changes, ends)
    return [...changes.events.packed(0), ...following]
  })
  await measured("encode", async () => {
    for (const request of toRequests("alk", records)) {
      encodeProduceRequest("sequencer-0", await sender.sequence(request))
    }
    changes.events.release()
  })
}

let values = valuesOf(0)
for (let round = 0; round < WARM_UP + ROUNDS; round++) {
  if (round === WARM_UP) spent.clear()
  if (options.ids) values = valuesOf(round)
  await once(values)
}
const events = COMMANDS * EVENTS * ROUNDS
let sum = 0
for (const [part, micros] of spent) {
  sum += micros
  console.log(`${part.padEnd(8)} ${(micros / events).toFixed(2)} µs of CPU an event`)
}
console.log(`${"sum".padEnd(8)} ${(sum / events).toFixed(2)}`)
