/**
 * The program as a child process, started the way a user starts it: its environment, its start line,
 * its signals. Shares no code with the program.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Started {
  readonly process: ChildProcess
  readonly pid: number
  readonly url: string
  readonly kafka: string
  /** How a subscriber reads its topics: the file with the settings for that, or the address. */
  readonly topics: string
  readonly store: string
  /** Where it takes OTLP over gRPC, if it does. */
  readonly otlpGrpc: string
  /** Everything printed so far. */
  readonly output: () => string
  /** Resolves with the exit code (or signal) once the process is gone. */
  readonly ended: Promise<number | NodeJS.Signals>
  /** SIGTERM, then wait. */
  readonly stop: () => Promise<number | NodeJS.Signals>
  /** SIGKILL to the process and everything in its group. */
  readonly kill: () => Promise<void>
}

export const freshFolder = (name: string): string => mkdtempSync(join(tmpdir(), `alk-${name}-`))

/** Keys that the tests make known at start; 43 base62 characters behind the prefix. */
export const testKey = (name: string, prefix = "alk_live_"): string =>
  prefix
  + name
    .replaceAll(/[^A-Za-z0-9]/g, "")
    .padEnd(43, "x")
    .slice(0, 43)

export const TEST_SECRET = "a-secret-of-the-tests-that-is-long-enough"
export const ADMIN_TOKEN = "an-admin-token-of-the-tests"

const START_TIMEOUT_MS = 150_000

interface ReadyLine {
  readonly message: string
  readonly url?: string
  readonly kafka?: string
  readonly subscriber_file?: string
  readonly store?: string
  readonly otlp_grpc?: string
}

/** What it says to a person. */
const bannerIn = (output: string): ReadyLine | undefined => {
  if (!/\nCtrl-C stops (?:everything|this process)\.\n/.test(output)) return undefined
  const url = /^ {2}API +(\S+)$/m.exec(output)?.[1]
  const kafka = /^ {2}Kafka +([^\s,]+)/m.exec(output)?.[1]
  const grpc = /^ {2}OTLP gRPC +(\S+)$/m.exec(output)?.[1]
  const file = /^ +to read them: (.+)$/m.exec(output)?.[1]
  return {
    message: "ready",
    ...(url && { url }),
    ...(kafka && { kafka }),
    ...(grpc && { otlp_grpc: grpc }),
    ...(file && { subscriber_file: file })
  }
}

const readyIn = (output: string): ReadyLine | undefined => {
  for (const line of output.split("\n")) {
    if (!line.includes('"ready"')) continue
    try {
      const parsed = JSON.parse(line) as ReadyLine & { readonly annotations?: ReadyLine }
      const found = { ...parsed.annotations, ...parsed }
      if (found.message === "ready") return found
    } catch {}
  }
  return bannerIn(output)
}

/** What `npm start` of a checkout runs, without npm and shell in between. */
export interface Checkout {
  readonly folder: string
  readonly command: ReadonlyArray<string>
  /** What the start line sets. */
  readonly variables: Readonly<Record<string, string>>
}

/** `node` is the Node that runs it. */
export const checkoutAt = (folder: string, node: string): Checkout => {
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    readonly scripts: { readonly start: string }
  }
  const [, variables = "", command = ""] = /^(.*?)\s*exec node (.*)$/.exec(scripts.start) ?? []
  return {
    folder,
    command: [node, ...command.split(" ")],
    variables: Object.fromEntries(
      variables
        .split(" ")
        .filter((variable) => variable !== "")
        .map((variable) => variable.split("=") as [string, string])
    )
  }
}

const thisCheckout = checkoutAt(".", process.execPath)

/** What `npm start` runs, without npm and shell in between, with the Node of the tests. */
export const START_COMMAND: ReadonlyArray<string> = thisCheckout.command

/**
 * Switches for all programs of a run: TEST_WORKERS=1 gives each with an API that many workers,
 * TEST_FAST_ACCEPT=false leaves the modules of accept and projection out.
 */
const switchesOfRun = ({ ALK_ROLES: roles = "api" }: Readonly<Record<string, string>>) => {
  const { TEST_FAST_ACCEPT: fastAccept, TEST_WORKERS: workers } = process.env
  return {
    ...(fastAccept === undefined ? {} : { ALK_FAST_ACCEPT: fastAccept }),
    ...(workers !== undefined && roles.includes("api") ? { ALK_WORKERS: workers } : {})
  }
}

/** Programs that are not ready yet, for those who don't want to wait for them. */
export const starting = new Set<ChildProcess>()

/** Start the program as `npm start` does and wait until it says that it is ready. */
export const start = async (
  environment: Readonly<Record<string, string>>,
  command: ReadonlyArray<string> = START_COMMAND,
  checkout: Checkout = thisCheckout
): Promise<Started> => {
  const { PATH, HOME, JAVA_HOME } = process.env
  const child = spawn(command[0]!, command.slice(1), {
    env: {
      ...(PATH === undefined ? {} : { PATH }),
      ...(HOME === undefined ? {} : { HOME }),
      ...(JAVA_HOME === undefined ? {} : { JAVA_HOME }),
      ...checkout.variables,
      // Any free ones: the program says which it has got.
      PORT: "0",
      ALK_KAFKA_PORT: "0",
      ALK_STORE_PORT: "0",
      ALK_LOG_FORMAT: "json",
      ...switchesOfRun(environment),
      ...environment
    },
    cwd: checkout.folder,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true
  })
  starting.add(child)
  let output = ""
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? signal ?? 0))
  })
  const isReady = new Promise<ReadyLine>((resolve, reject) => {
    const timer = setTimeout(() => {
      process.kill(-child.pid!, "SIGKILL")
      reject(new Error(`not ready in time; it said:\n${output}`))
    }, START_TIMEOUT_MS)
    const take = (chunk: Buffer) => {
      output += chunk.toString()
      const found = readyIn(output)
      if (found === undefined) return
      clearTimeout(timer)
      resolve(found)
    }
    child.stdout.on("data", take)
    child.stderr.on("data", take)
    void ended.then((code) => {
      clearTimeout(timer)
      reject(new Error(`ended with ${code} before it was ready; it said:\n${output}`))
    })
  })
  const ready = await isReady.finally(() => starting.delete(child))
  return {
    process: child,
    pid: child.pid!,
    url: ready.url ?? "",
    kafka: ready.kafka ?? "",
    topics: ready.subscriber_file ?? ready.kafka ?? "",
    store: ready.store ?? "",
    otlpGrpc: ready.otlp_grpc ?? "",
    output: () => output,
    ended,
    stop: async () => {
      child.kill("SIGTERM")
      return ended
    },
    kill: async () => {
      process.kill(-child.pid!, "SIGKILL")
      await ended
    }
  }
}
