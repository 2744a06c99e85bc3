/** Programs that are measured: of this checkout or another, each with a data folder and tenants. */
import { existsSync, rmSync } from "node:fs"
import { join, resolve } from "node:path"
import {
  ADMIN_TOKEN,
  type Checkout,
  checkoutAt,
  freshFolder,
  type Started,
  start,
  starting,
  TEST_SECRET,
  testKey
} from "../../support/Program.ts"
import type { Measured } from "../report/Results.ts"
import { Api, newAgent } from "./Api.ts"
import { isBroker, memoryOf, processTree } from "./Threads.ts"

export interface Subject {
  readonly name: Measured
  readonly checkout: Checkout
}

export const thisSubject = (): Subject => ({
  name: "this",
  checkout: checkoutAt(process.cwd(), process.execPath)
})

/** Throws if the folder is no checkout that can run. */
export const subjectAgainst = (path: string): Subject => {
  const folder = resolve(path)
  const node = join(folder, "node_modules/.bin/node")
  if (!existsSync(node)) throw new Error(`${folder} has no node_modules: run npm ci there`)
  return { name: "against", checkout: checkoutAt(folder, node) }
}

export interface ProgramOptions {
  /** Tenants with a key each. */
  readonly tenants: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>>
  /** Data folder to take; else one of its own, which goes with the program. */
  readonly folder?: string
}

/** Megabytes that the processes of a program hold. */
export interface Memory {
  readonly program: number
  readonly programMost: number
  readonly broker: number
}

/** Programs that run now, to be killed if the benchmark is broken off. */
const running = new Set<Program>()

/** Ends what still runs, at once, and deletes its data unless that is kept. */
export const killAll = async (): Promise<void> => {
  for (const { pid } of starting) {
    try {
      process.kill(-pid!, "SIGKILL")
    } catch {
      // It has ended.
    }
  }
  for (const one of running) if (one.runs) await one.kill().catch(() => undefined)
  for (const one of running) one.deleteData()
}

export class Program {
  readonly #subject: Subject
  readonly #options: ProgramOptions
  readonly #folder: string
  readonly #apis = new Map<string, Api>()
  #agent = newAgent()
  #started: Started | undefined

  private constructor(subject: Subject, options: ProgramOptions) {
    this.#subject = subject
    this.#options = options
    this.#folder = options.folder ?? freshFolder("bench")
  }

  static async start(subject: Subject, options: ProgramOptions): Promise<Program> {
    const program = new Program(subject, options)
    running.add(program)
    await program.start()
    return program
  }

  /** Starts it on its data folder, for the first time or again. */
  async start(): Promise<void> {
    const { environment, tenants } = this.#options
    const keys = tenants.map((tenant) => `${testKey(tenant)}=${tenant}:read+write`)
    const started = await start(
      {
        ALK_DATA_DIR: this.#folder,
        ALK_SECRET: TEST_SECRET,
        ALK_ADMIN_TOKEN: ADMIN_TOKEN,
        ALK_BOOTSTRAP_KEYS: keys.join(","),
        LOG_LEVEL: "warn",
        ...environment
      },
      this.#subject.checkout.command,
      this.#subject.checkout
    )
    this.#started = started
  }

  get process(): Started {
    if (this.#started === undefined) throw new Error("the program does not run")
    return this.#started
  }

  get runs(): boolean {
    return this.#started !== undefined
  }

  api(tenant: string): Api {
    const known = this.#apis.get(tenant)
    if (known !== undefined) return known
    const made = this.apiWithKey(testKey(tenant))
    this.#apis.set(tenant, made)
    return made
  }

  /** All keys of a program share its connections. */
  apiWithKey(key: string): Api {
    return new Api(this.process.url, key, this.#agent)
  }

  memory(): Memory {
    const pids = processTree(this.process.pid)
    const sum = (of: ReadonlyArray<number>, field: "VmRSS" | "VmHWM") =>
      of.reduce((megabytes, pid) => megabytes + memoryOf(pid, field), 0)
    const own = pids.filter((pid) => !isBroker(pid))
    return {
      program: sum(own, "VmRSS"),
      programMost: sum(own, "VmHWM"),
      broker: sum(pids.filter(isBroker), "VmRSS")
    }
  }

  #gone(): void {
    this.#agent.destroy()
    this.#agent = newAgent()
    this.#apis.clear()
    this.#started = undefined
  }

  /** SIGKILL; the data folder stays. */
  async kill(): Promise<void> {
    await this.process.kill()
    this.#gone()
  }

  /** Stops it, and deletes its data folder unless that was given. */
  async stop(): Promise<void> {
    if (this.#started !== undefined) await this.#started.stop()
    this.#gone()
    running.delete(this)
    this.deleteData()
  }

  /** Deletes the data folder unless it was given. */
  deleteData(): void {
    if (this.#options.folder !== undefined) return
    // The broker of a program that was killed writes until it has noticed.
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 500 })
  }
}
