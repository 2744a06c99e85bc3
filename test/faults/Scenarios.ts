/**
 * The faults themselves, as moves on running processes. The long suite repeats them, the short one
 * runs the most telling ones once; both end with the oracle.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import type { Embedded } from "./Embedded.ts"
import type { Load } from "./Load.ts"
import { clientOf, type Parts, pause, resume, type Target, until } from "./Parts.ts"

/** How often the faults that depend on the moment are repeated. */
export const REPEATS = Number(process.env["FAULT_REPEATS"] ?? 5)

/** Milliseconds that surely outlast the session of a group member (10 s). */
export const BEYOND_SESSION_MS = 13_000
/** Milliseconds in which everything that a fault has stopped goes again, on a busy machine too. */
const RECOVERY_MS = 120_000

/** Lists that are looked at, so that something can be said of them. */
const LOOKS_MIN = 5

const random = (below: number): number => Math.floor(Math.random() * below)

/** Every tenant's partition is written and shown again. */
export const assertWritable = async (
  target: Target,
  load: Load,
  tenants: ReadonlyArray<string>
): Promise<void> => {
  for (const tenant of tenants) {
    await until(
      `${tenant} is written again: ${load.summary()}`,
      async () => {
        const request = await load.one(tenant)
        if (request.receiptId === undefined) return false
        const receipt = await clientOf(target, tenant)
          .settled(request.receiptId, RECOVERY_MS)
          .catch((error: Error) => assert.fail(`${tenant}: ${error.message}`))
        return receipt["status"] === "committed"
      },
      RECOVERY_MS
    )
  }
}

/** One sequencer is killed at a random moment of its work, and another one started. */
export const killSequencer = async (parts: Parts, load: Load): Promise<void> => {
  await load.more(5)
  await sleep(random(400))
  const victim = random(parts.sequencers.length)
  await parts.sequencers[victim]!.kill()
  parts.sequencers[victim] = await parts.startRole("sequencer")
}

/** All sequencers are killed at once, so that whoever owned a partition is among them. */
export const killSequencers = async (parts: Parts): Promise<void> => {
  await sleep(random(600))
  await Promise.all(parts.sequencers.map((one) => one.kill()))
  for (const which of parts.sequencers.keys()) {
    parts.sequencers[which] = await parts.startRole("sequencer")
  }
}

/** Nobody else is there to take over; the same process comes back twice within a second. */
export const restartTwiceWithinASecond = async (parts: Parts, load: Load): Promise<void> => {
  await load.more(5)
  const [only] = parts.sequencers
  await only!.kill()
  const first = parts.startRole("sequencer")
  await sleep(random(900))
  const second = parts.startRole("sequencer")
  const [started, other] = await Promise.all([first, second])
  await started.kill()
  parts.sequencers[0] = other
}

/**
 * A sequencer freezes for longer than its session, another one takes its partitions over, and it
 * thaws with what it knew before.
 */
export const freezeSequencer = async (
  parts: Parts,
  whileFrozen: () => Promise<void>
): Promise<void> => {
  const [victim] = parts.sequencers
  pause(victim!)
  await sleep(BEYOND_SESSION_MS)
  await whileFrozen()
  resume(victim!)
}

/** The projection is killed at a random moment between its inserts and its progress. */
export const killProjection = async (parts: Parts, load: Load): Promise<void> => {
  await load.more(3)
  await sleep(random(300))
  await parts.projection.kill()
  await load.more(3)
  parts.projection = await parts.startRole("projection")
}

/**
 * The projection freezes with an insert in its hands, for longer than its session. Another one
 * takes over; the returned function thaws the first, which then learns that its insert was stored.
 */
export const freezeProjection = async (parts: Parts, load: Load): Promise<() => void> => {
  const frozen = parts.projection
  pause(parts.store)
  await load.more(6)
  await sleep(500)
  pause(frozen)
  resume(parts.store)
  parts.projection = await parts.startRole("projection")
  await sleep(BEYOND_SESSION_MS)
  await load.more(10)
  return () => resume(frozen)
}

/** No list shows an event twice, asked again and again while the projection comes and goes. */
export class DuplicateWatch {
  readonly #target: Target
  readonly #tenants: ReadonlyArray<string>
  readonly #running: Promise<void>
  #stopped = false
  looks = 0
  readonly found: Array<string> = []

  constructor(target: Target, tenants: ReadonlyArray<string>) {
    this.#target = target
    this.#tenants = tenants
    this.#running = this.#run()
  }

  async finish(): Promise<void> {
    await until("several lists have been looked at", () => this.looks > LOOKS_MIN)
    this.#stopped = true
    await this.#running
    assert.deepStrictEqual(this.found, [])
  }

  async #run(): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const tenant = this.#tenants[n % this.#tenants.length]!
      await this.#look(tenant, n).catch(() => undefined)
      await sleep(100)
    }
  }

  async #look(tenant: string, which: number): Promise<void> {
    const api = clientOf(this.#target, tenant, which)
    const { body, status } = await api.call("/v1/events?page_size=200")
    if (status !== 200) return
    const sequences: ReadonlyArray<number> = body.events.map(
      (entry: { readonly sequence_number: number }) => entry.sequence_number
    )
    this.looks += 1
    if (new Set(sequences).size !== sequences.length) this.found.push(`${tenant}: ${sequences}`)
    // A chain has as many events as its newest one says, and total and page are of one moment.
    const [newest] = sequences
    if (newest !== undefined && body.total !== newest) {
      this.found.push(`${tenant}: ${body.total} events up to ${newest}`)
    }
  }
}

/** The embedded broker is killed under load; its supervisor starts it again. */
export const killBroker = async (embedded: Embedded, load: Load): Promise<void> => {
  await load.more(5)
  const before = embedded.broker()
  process.kill(before, "SIGKILL")
  await until("another broker", () => {
    const now = embedded.findBroker()
    return now !== undefined && now !== before
  })
  await load.more(5, RECOVERY_MS)
}

/** The broker answers nothing until that is noticed, and a while longer, with every connection open. */
export const freezeBroker = async (embedded: Embedded, load: Load): Promise<void> => {
  await load.more(5)
  const pid = embedded.broker()
  pause({ pid })
  try {
    const before = load.statuses.get(503) ?? 0
    await until("503 while the log is away", () => (load.statuses.get(503) ?? 0) > before)
    await sleep(4_000)
  } finally {
    resume({ pid })
  }
  await load.more(5, RECOVERY_MS)
}
