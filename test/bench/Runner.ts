/** Runs scenarios one after another; one that fails is reported, and the others still run. */
import { LargeStore } from "./harness/LargeStore.ts"
import { commitOf, describeMachine } from "./harness/Machine.ts"
import { killAll, subjectAgainst, thisSubject } from "./harness/Programs.ts"
import { sizeText } from "./harness/Samples.ts"
import type { Options } from "./Options.ts"
import { Recorder, type Results, type ScenarioResult } from "./report/Results.ts"
import type { Bench, LargeScenario, PlainScenario, Scenario } from "./Scenario.ts"

/** What a scenario has so far. */
interface Progress {
  readonly scenario: Scenario
  readonly recorder: Recorder
  seconds: number
  failed: string | undefined
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : `${error}`)

const isLarge = (scenario: Scenario): scenario is LargeScenario => "runAt" in scenario

export class Runner {
  readonly #options: Options
  readonly #started = performance.now()
  readonly #bench: Omit<Bench, "recorder">
  #now = ""
  #keep: () => void = () => undefined

  constructor(options: Options) {
    this.#options = options
    const against = options.against === undefined ? [] : [subjectAgainst(options.against)]
    this.#bench = {
      options,
      subjects: [thisSubject(), ...against],
      say: (line) => this.#say(line)
    }
  }

  #say(line: string): void {
    const seconds = Math.round((performance.now() - this.#started) / 1_000)
    const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
    process.stderr.write(`${clock.padStart(6)}  ${this.#now}: ${line}\n`)
  }

  /** Runs a part of a scenario, and writes its time and failure down. */
  async #part(progress: Progress, work: (bench: Bench) => Promise<void>): Promise<void> {
    this.#now = progress.scenario.name
    const started = performance.now()
    try {
      await work({ ...this.#bench, recorder: progress.recorder })
    } catch (error) {
      progress.failed ??= messageOf(error)
      this.#say(`failed: ${messageOf(error)}`)
    }
    progress.seconds += (performance.now() - started) / 1_000
    this.#keep()
  }

  async #runPlain(all: ReadonlyArray<Progress>): Promise<void> {
    for (const progress of all) {
      const { scenario } = progress
      if (isLarge(scenario)) continue
      await this.#part(progress, (bench) => (scenario as PlainScenario).run(bench))
    }
  }

  async #runLarge(all: ReadonlyArray<Progress>): Promise<void> {
    const large = all.filter(({ scenario }) => isLarge(scenario))
    if (large.length === 0) return
    const store = new LargeStore(this.#options.folder, (line) => this.#say(line))
    try {
      for (const size of this.#options.sizes) {
        this.#now = "filling"
        this.#say(`up to ${sizeText(size)} events`)
        try {
          await store.fill(size)
        } catch (error) {
          this.#say(`failed: ${messageOf(error)}`)
          for (const progress of large) {
            progress.failed ??= `filling: ${messageOf(error)}`
            progress.seconds ||= 1
          }
          return
        }
        for (const progress of large) {
          const { runAt } = progress.scenario as LargeScenario
          await this.#part(progress, (bench) => {
            this.#say(`at ${sizeText(size)} events`)
            return runAt(bench, store, size)
          })
        }
      }
    } finally {
      await store.stop()
    }
  }

  /** The results of the scenarios, in their order; `keep` gets those so far after each of them. */
  async run(scenarios: ReadonlyArray<Scenario>, keep: (sofar: Results) => void): Promise<Results> {
    const { against, quick } = this.#options
    const machine = describeMachine()
    const commit = commitOf(".")
    const againstCommit = against === undefined ? {} : { against: commitOf(against) }
    const all = scenarios.map(
      (scenario): Progress => ({
        scenario,
        recorder: new Recorder(!quick),
        seconds: 0,
        failed: undefined
      })
    )
    const sofar = (): Results => ({
      machine,
      ...againstCommit,
      day: new Date().toISOString().slice(0, 10),
      quick,
      scenarios: all
        .filter(({ seconds }) => seconds > 0)
        .map(
          ({ failed, recorder, scenario, seconds }): ScenarioResult => ({
            name: scenario.name,
            title: scenario.title,
            about: scenario.about(this.#options),
            commit,
            seconds: Math.round(seconds),
            figures: recorder.figures(),
            ...(failed === undefined ? {} : { failed })
          })
        )
    })
    this.#keep = () => keep(sofar())
    try {
      await this.#runPlain(all)
      await this.#runLarge(all)
    } finally {
      await killAll()
    }
    this.#keep()
    return sofar()
  }
}
