/**
 * A run of the whole service in memory: processes that crash, lose their groups and come back,
 * clients that repeat what they are not sure of, readers that look all the time; then quiet, in
 * which all must come to its end. A seed decides everything, so a seed that fails can be run again.
 */
import { Cause, Effect, Exit, Fiber } from "effect"
import { takeEach } from "../../src/actors/log/Malformed.ts"
import { noProgress, progressAfter } from "../../src/domain/records/Progress.ts"
import { REBUILD_KEY, REBUILT_KEY } from "../../src/domain/records/ViewRebuild.ts"
import { Chance } from "./Chance.ts"
import { Faults } from "./Faults.ts"
import { checkAll, eventsOnTopic, Violation } from "./Oracle.ts"
import { readLists, StreamClient } from "./Readers.ts"
import { type BrokenPromises, SimulatedLog } from "./SimulatedLog.ts"
import { SimulatedProcess } from "./SimulatedProcess.ts"
import { INSERT_ENDS_MS, SimulatedStore } from "./SimulatedStore.ts"
import { NoEnd, SimulatedTime } from "./SimulatedTime.ts"
import { Acknowledged, Writer } from "./Writers.ts"

const PARTITIONS = 2
const TENANTS = ["tenant-0", "tenant-1", "tenant-2"]
const WRITERS = 3
const REQUESTS = 4
const PAUSE_MS = 4_000
/** Milliseconds of faults, and those after them in which all must become quiet. */
const FAULTS_MS = 15_000
const QUIET_MS = 120_000
/** Share of calls between which a process crashes. */
const CRASHES = 0.0015

export interface SimulationOptions {
  readonly seed: number
  readonly log?: (line: string) => void
  /** What is broken on purpose, to see that it is noticed. */
  readonly broken?: BrokenPromises
  readonly settleMs?: number
}

/** What a run was like. */
export interface SimulationReport {
  /** What went wrong; undefined if nothing did. */
  readonly failure: string | undefined
  readonly requests: number
  readonly calls: number
  readonly crashes: number
  /** Simulated milliseconds. */
  readonly took: number
}

export class Simulation {
  readonly #chance: Chance
  readonly #time: SimulatedTime
  readonly #faults: Faults
  readonly #log: SimulatedLog
  readonly #store: SimulatedStore
  readonly #processes: ReadonlyArray<SimulatedProcess>
  readonly #acknowledged = new Acknowledged()
  readonly #streams: ReadonlyArray<StreamClient>
  /** Ids of the last requests to build a view again, by partition. */
  readonly #rebuilds = new Map<number, string>()
  #calls = 0
  #crashes = 0

  constructor({ broken, log, seed, settleMs }: SimulationOptions) {
    this.#chance = new Chance(seed)
    this.#time = new SimulatedTime(this.#chance)
    const rates = {
      failure: this.#chance.pick([0, 0.005, 0.02]),
      slow: this.#chance.pick([0, 0.02, 0.1])
    }
    const line = (text: string) => log?.(`${this.#time.now.toFixed(0).padStart(7)} ${text}`)
    this.#faults = new Faults(this.#time, this.#chance, rates, line)
    this.#log = new SimulatedLog(this.#faults, PARTITIONS, broken)
    this.#store = new SimulatedStore(this.#faults)
    const world = {
      faults: this.#faults,
      log: this.#log,
      store: this.#store,
      settleMs: settleMs ?? INSERT_ENDS_MS
    }
    this.#faults.onCall = (life, what) => {
      this.#calls += 1
      line(`${life.name} ${what}`)
      if (!this.#faults.isOn || !this.#chance.isHit(CRASHES)) return
      const process = this.#processes.find((one) => one.life === life)
      if (process !== undefined) this.#time.after(0, () => this.#crash(process))
    }
    this.#processes = ["a", "b"].map((name) => new SimulatedProcess(name, world))
    this.#streams = TENANTS.map((id) => new StreamClient(this.#faults, this.#processes, id))
  }

  run(): SimulationReport {
    let failure: string | undefined
    try {
      const exit = this.#time.run(this.#main, FAULTS_MS + QUIET_MS)
      if (Exit.isFailure(exit)) {
        const found = Cause.squash(exit.cause)
        failure = found instanceof Violation ? found.message : Cause.pretty(exit.cause)
      }
    } catch (error) {
      if (!(error instanceof NoEnd)) throw error
      failure = `no end: ${error.message}; ${this.#unquiet()}`
    }
    const { requests } = this.#acknowledged
    return {
      failure,
      requests,
      calls: this.#calls,
      crashes: this.#crashes,
      took: this.#time.now
    }
  }

  get #main(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const lists = readLists(this.#faults, this.#processes, this.#acknowledged, TENANTS)
      const readers = Effect.all([lists, ...this.#streams.map(({ run }) => run)], {
        concurrency: "unbounded",
        discard: true
      })
      const names = Array.from({ length: WRITERS }, (_, index) => `w${index}`)
      const written = Effect.forEach(
        names,
        (name) =>
          new Writer(name, this.#faults, this.#processes, this.#acknowledged).run(
            TENANTS,
            REQUESTS,
            PAUSE_MS
          ),
        { concurrency: "unbounded", discard: true }
      )
      const watched = yield* Effect.forkChild(readers)
      const all = Effect.gen({ self: this }, function* () {
        yield* Effect.all([written, this.#disturb], { concurrency: "unbounded", discard: true })
        while (this.#unquiet() !== undefined) yield* this.#time.sleep(500)
      })
      // A reader that finds something ends the run.
      yield* Effect.raceFirst(all, Fiber.join(watched))
      checkAll(this.#log, this.#store, this.#acknowledged.ids)
    })
  }

  /** One disturbance after the other, until faults are over. */
  get #disturb(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      while (this.#time.now < FAULTS_MS) {
        yield* this.#time.sleep(this.#chance.between(200, 5_000))
        this.#chance.pick(this.#disturbances)()
      }
      this.#faults.isOn = false
      this.#faults.log("faults are over")
      for (const process of this.#processes) process.start()
    })
  }

  get #disturbances(): ReadonlyArray<() => void> {
    const process = this.#chance.pick(this.#processes)
    const group = this.#log.group(this.#chance.pick(["sequencer", "projection"]))
    return [
      () => this.#crash(process),
      () => process.stop(),
      () => group.rebalance(),
      () => group.evictOne(),
      () => {
        for (const one of ["sequencer", "projection"]) this.#log.group(one).evictOne()
        const { life } = process
        if (life !== undefined) life.frozenUntil = this.#time.now + this.#chance.between(500, 8_000)
      },
      () => {
        this.#time.skew += this.#chance.between(-3_000, 3_000)
      },
      () => this.#log.compact(),
      () => this.#rebuild()
    ]
  }

  /** An operator asks for the view of a partition to be compared with the topics. */
  #rebuild(): void {
    const partition = this.#chance.between(0, PARTITIONS - 1)
    const id = `00000000-0000-4000-8000-${String(this.#time.now.toFixed(0)).padStart(12, "0")}`
    const value = JSON.stringify({ id, requested_at: "2026-11-21T00:00:00.000000Z" })
    this.#rebuilds.set(partition, id)
    const record = { topic: "progress", partition, key: REBUILD_KEY, value } as const
    this.#log.of("progress", partition).append([record], this.#time.wall)
  }

  #crash(process: SimulatedProcess): void {
    if (!this.#faults.isOn) return
    this.#crashes += 1
    process.crash()
  }

  /** What is not at its end yet; undefined if all is. */
  #unquiet(): string | undefined {
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const records = this.#log.of("progress", partition).committed
      let progress = noProgress(partition)
      takeEach({ topic: "progress", partition }, records, (record) => {
        progress = progressAfter(progress, record)
      })
      if (progress.number === 0) return `partition ${partition} is not projected`
      const rebuilt = records.findLast(({ key }) => key?.toString() === REBUILT_KEY)
      const said = rebuilt === undefined ? undefined : JSON.parse(String(rebuilt.value))
      const asked = this.#rebuilds.get(partition)
      if (asked !== undefined && (said?.id !== asked || said?.done !== true)) {
        return `the view of partition ${partition} is compared for ever`
      }
      if (progress.final) return `rows of partition ${partition} may be there twice for ever`
      if (progress.rebuilding) return `partition ${partition} is being rebuilt for ever`
      for (const topic of ["events", "receipts", "checkpoints"] as const) {
        const { stableEnd } = this.#log.of(topic, partition)
        const next = progress[`${topic}_next`]
        if (next < stableEnd) return `${topic} of ${partition} are shown up to ${next}`
      }
    }
    const heads = eventsOnTopic(this.#log)
    for (const [index, tenantId] of TENANTS.entries()) {
      const head = heads.get(tenantId)?.at(-1)?.sequence_number ?? 0
      const seen = this.#streams[index]!.last.sequence_number
      if (seen < head) return `a stream of ${tenantId} has seen ${seen} of ${head}`
    }
    return this.#faults.isOn ? "faults are on" : undefined
  }
}

export const simulate = (options: SimulationOptions): SimulationReport =>
  new Simulation(options).run()
