/** A whole program with a broker of its own, for the faults whose victim is the broker. */
import { execFileSync } from "node:child_process"
import { rmSync } from "node:fs"
import { freePort } from "../support/FreePort.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start } from "../support/Program.ts"
import { bootstrapKeys, keepLogs, resume, type Target } from "./Parts.ts"

export class Embedded implements Target {
  readonly topicPrefix = "alk"
  readonly #folder: string
  readonly program: Started

  constructor(folder: string, program: Started) {
    this.#folder = folder
    this.program = program
  }

  static async start(): Promise<Embedded> {
    const folder = freshFolder("fault-embedded")
    const program = await start({
      ALK_DATA_DIR: folder,
      // The broker comes back there after it was killed.
      ALK_KAFKA_PORT: String(await freePort()),
      ALK_ADMIN_TOKEN: ADMIN_TOKEN,
      ALK_BOOTSTRAP_KEYS: bootstrapKeys
    })
    return new Embedded(folder, program)
  }

  urls = (): ReadonlyArray<string> => [this.program.url]
  bootstrap = (): string => this.program.topics

  /** The broker itself; its watchdog, a shell, has the same words in its arguments. */
  findBroker(): number | undefined {
    const line = execFileSync("ps", ["-eo", "pid,comm,args"], { encoding: "utf8" })
      .split("\n")
      .find((entry) => /^ *\d+ java .*kafka\.Kafka/.test(entry) && entry.includes(this.#folder))
    return line === undefined ? undefined : Number(line.trim().split(" ")[0])
  }

  broker(): number {
    const found = this.findBroker()
    if (found === undefined) throw new Error("the program has no broker")
    return found
  }

  async stop(): Promise<void> {
    const broker = this.findBroker()
    if (broker !== undefined) resume({ pid: broker })
    await this.program.stop()
    keepLogs("embedded", [this.program])
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** A test on a program of its own, which ends with it. */
export const withEmbedded =
  (test: (embedded: Embedded) => Promise<void>) => async (): Promise<void> => {
    const embedded = await Embedded.start()
    try {
      await test(embedded)
    } finally {
      await embedded.stop()
    }
  }
