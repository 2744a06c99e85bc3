/**
 * The large store: one tenant with so many events, written through the API like any others. The
 * program runs on until the benchmark ends; `--folder` keeps its data for the next one.
 */
import { existsSync, mkdirSync } from "node:fs"
import type { Api } from "./Api.ts"
import { batchBody } from "./Events.ts"
import { type LoadShape, sendWhile } from "./Load.ts"
import { Program, thisSubject } from "./Programs.ts"

/** The tenant with the events. */
export const LARGE_TENANT = "large"
/** A tenant for what would change the counts. */
export const SIDE_TENANT = "side"

const FILL: LoadShape = { batch: 1_000, size: "400 bytes", sync: false, clients: 8 }
const PROGRESS_MS = 5_000

const minutesText = (seconds: number): string =>
  seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`

export class LargeStore {
  readonly #say: (line: string) => void
  readonly #folder: string | undefined
  #program: Program | undefined

  constructor(folder: string | undefined, say: (line: string) => void) {
    this.#folder = folder
    this.#say = say
    if (folder !== undefined && !existsSync(folder)) mkdirSync(folder, { recursive: true })
  }

  /** The program, started again if a scenario left it dead. */
  async program(): Promise<Program> {
    this.#program ??= await Program.start(thisSubject(), {
      tenants: [LARGE_TENANT, SIDE_TENANT],
      environment: { ALK_STREAMS_MAX: "10000" },
      ...(this.#folder === undefined ? {} : { folder: this.#folder })
    })
    if (!this.#program.runs) await this.#program.start()
    return this.#program
  }

  async api(): Promise<Api> {
    return (await this.program()).api(LARGE_TENANT)
  }

  /** Sends what is missing to so many events. */
  async fill(size: number): Promise<void> {
    const api = await this.api()
    const before = await api.total()
    if (before >= size) return
    const started = performance.now()
    let shown = started
    const progress = (events: number): void => {
      const now = performance.now()
      if (now - shown < PROGRESS_MS) return
      shown = now
      const rate = events / ((now - started) / 1_000)
      const left = minutesText((size - before - events) / rate)
      const done = (before + events).toLocaleString("en-US")
      this.#say(`${done} events sent, ${Math.round(rate).toLocaleString("en-US")}/s, ${left} left`)
    }
    await sendWhile(
      [api],
      FILL,
      (request) => batchBody(before + request * FILL.batch, FILL.batch),
      (events) => {
        progress(events)
        return before + events < size
      }
    )
    const after = await api.total()
    if (after < size) throw new Error(`${after} of ${size} events are listed`)
  }

  async stop(): Promise<void> {
    await this.#program?.stop()
    this.#program = undefined
  }
}
