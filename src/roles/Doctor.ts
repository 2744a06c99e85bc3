/**
 * `alk doctor`: what the service needs on this machine, by its configuration, and the service that the
 * command line's context names. Starts nothing, and changes nothing but what Chromium unpacks.
 */
import { spawnSync } from "node:child_process"
import { accessSync, constants, existsSync, statfsSync } from "node:fs"
import { createServer, connect as openSocket } from "node:net"
import { dirname } from "node:path"
import { Effect } from "effect"
import { candidatesOf } from "../adapters/chromium/FindChromium.ts"
import { findJava } from "../adapters/embedded/broker/Java.ts"
import { hasKafkaJars } from "../adapters/embedded/broker/KafkaJars.ts"
import { resolveContext } from "../cli/Contexts.ts"
import { type Finding, linesOfFindings } from "../cli/Findings.ts"
import type { Me } from "../client/gen/Api.d.ts"
import type { Config } from "../config/Config.ts"
import { parseJson } from "../domain/json/Json.ts"
import { embedsBroker, embedsStore } from "./Topology.ts"

/** Bytes below which a disk fills up soon. */
const FREE_BYTES_LOW = 2 * 1024 ** 3
/** Milliseconds to wait for an answer. */
const ANSWER_MS = 3_000
/** Milliseconds that two clocks may differ: HTTP dates have seconds. */
const CLOCK_MS = 2_000

type Check = () => Promise<ReadonlyArray<Finding>>

const ok = (name: string, text: string): Finding => ({ name, state: "ok", text })
const bad = (name: string, text: string): Finding => ({ name, state: "missing", text })
const poor = (name: string, text: string): Finding => ({ name, state: "warning", text })

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

const node: Check = async () => [
  ok("Node", `${process.version} on ${process.platform}-${process.arch}`)
]

const java = (config: Config): Check => {
  return async () => {
    if (!embedsBroker(config)) return [ok("Java", "not needed: KAFKA_BROKERS names a cluster")]
    return Effect.runPromise(
      findJava.pipe(
        Effect.map((path) => [ok("Java", path)]),
        Effect.catch(({ message }) => Effect.succeed([bad("Java", message)]))
      )
    )
  }
}

/** Maven fetches the broker's jars, once. */
const maven = (config: Config): Check => {
  return async () => {
    if (!embedsBroker(config)) return []
    if (hasKafkaJars(config.cacheDir)) return [ok("Maven", "not needed: Kafka's jars are there")]
    if (spawnSync("mvn", ["--version"]).status === 0) {
      return [ok("Maven", "fetches Kafka's jars at the first start")]
    }
    return [bad("Maven", "mvn was not found, and the first start needs it: install Maven")]
  }
}

/** Without one everything works but the PDF. */
const chromium = ({ cacheDir, chromiumPath }: Config): Check => {
  return async () => {
    const settings = { path: chromiumPath, cacheFolder: cacheDir }
    let why = "none was found"
    for (const { name, program } of await candidatesOf(settings)) {
      try {
        const { path } = await program()
        return [ok("Chromium", path)]
      } catch (error) {
        why = `${name}: ${messageOf(error)}`
      }
    }
    return [poor("Chromium", `${why}; reports need it: set CHROMIUM_PATH`)]
  }
}

/** True if something can listen there. */
const isFree = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })

const isAlk = async (port: number): Promise<boolean> => {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS)
    return (await fetch(`http://127.0.0.1:${port}/healthz`, { signal })).ok
  } catch {
    return false
  }
}

const port = ({ http }: Config): Check => {
  return async () => {
    if (http.port === 0 || (await isFree(http.host, http.port))) {
      return [ok("port", http.port === 0 ? "any free one" : `${http.port} is free`)]
    }
    return (await isAlk(http.port))
      ? [ok("port", `${http.port}: a service answers there already`)]
      : [bad("port", `${http.port} of ${http.host} is taken: set PORT to another one`)]
  }
}

/** The folder, or the first one above it that is there. */
const existing = (path: string): string => (existsSync(path) ? path : existing(dirname(path)))

const disk = (config: Config): Check => {
  return async () => {
    if (!embedsBroker(config) && !embedsStore(config)) return [ok("disk", "holds no data")]
    const { dataDir } = config
    const folder = existing(dataDir)
    try {
      accessSync(folder, constants.W_OK)
    } catch {
      return [bad("disk", `${dataDir}: not writable; set ALK_DATA_DIR, or change its owner`)]
    }
    const { bavail, bsize } = statfsSync(folder)
    const free = bavail * bsize
    const text = `${(free / 1024 ** 3).toFixed(1)} GiB free for ${dataDir}`
    return [free < FREE_BYTES_LOW ? poor("disk", `${text}; it fills up soon`) : ok("disk", text)]
  }
}

/** True if something accepts connections there. */
const accepts = (host: string, number: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = openSocket({ host, port: number, timeout: ANSWER_MS })
    const end = (isOpen: boolean) => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.once("connect", () => end(true))
    socket.once("timeout", () => end(false))
    socket.once("error", () => end(false))
  })

const brokers = ({ kafka }: Config): Check => {
  return async () => {
    if (kafka._tag === "Embedded") return [ok("Kafka", "embedded: starts with the service")]
    return Promise.all(
      kafka.brokers.map(async (broker) => {
        const at = broker.lastIndexOf(":")
        const isOpen = await accepts(broker.slice(0, at), Number(broker.slice(at + 1)))
        return isOpen
          ? ok("Kafka", `${broker} accepts connections`)
          : bad("Kafka", `${broker} accepts no connections: check KAFKA_BROKERS and that it is up`)
      })
    )
  }
}

const store = ({ clickhouse }: Config): Check => {
  return async () => {
    if (clickhouse._tag === "Embedded")
      return [ok("ClickHouse", "embedded: starts with the service")]
    try {
      const address = new URL("/ping", clickhouse.url)
      const { status } = await fetch(address, { signal: AbortSignal.timeout(ANSWER_MS) })
      if (status === 200) return [ok("ClickHouse", `${clickhouse.url} answers`)]
      return [bad("ClickHouse", `${clickhouse.url} answers ${status}: check CLICKHOUSE_URL`)]
    } catch (error) {
      return [bad("ClickHouse", `${clickhouse.url}: ${messageOf(error)}: check CLICKHOUSE_URL`)]
    }
  }
}

const clockOf = (response: Response): Finding => {
  const theirs = Date.parse(response.headers.get("date") ?? "")
  if (Number.isNaN(theirs)) return poor("clock", "the service says no time")
  const apart = Math.abs(Date.now() - theirs)
  return apart <= CLOCK_MS
    ? ok("clock", "agrees with the service's")
    : poor("clock", `differs from the service's by ${Math.round(apart / 1_000)} s: set it by NTP`)
}

/** What the service says of the key of the context. */
const service: Check = async () => {
  const { key, url } = resolveContext({})
  try {
    const response = await fetch(new URL("/v1/me", url), {
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(ANSWER_MS)
    })
    const clock = clockOf(response)
    if (key === undefined) return [ok("service", `${url} answers`), clock, poor("key", "alk login")]
    if (!response.ok) {
      return [ok("service", `${url} answers`), clock, bad("key", `${url} refuses it: alk login`)]
    }
    const { scopes, tenant_id } = parseJson(await response.text()) as Me
    const text = `tenant ${tenant_id}: ${scopes.join(", ")}`
    const canWrite = scopes.includes("write")
    const finding = canWrite ? ok("key", text) : poor("key", `${text}; it can't write`)
    return [ok("service", `${url} answers`), clock, finding]
  } catch {
    return [poor("service", `${url} does not answer: alk up, alk login, or ALK_URL`)]
  }
}

/** All checks, one after the other. Succeeds with true if nothing is missing. */
export const examine = (config: Config, print: (text: string) => void): Effect.Effect<boolean> =>
  Effect.promise(async () => {
    const checks = [node, java(config), maven(config), chromium(config), port(config), disk(config)]
    const findings: Array<Finding> = []
    for (const check of [...checks, brokers(config), store(config), service]) {
      const found = await check()
      findings.push(...found)
      print(linesOfFindings(found))
    }
    return findings.every(({ state }) => state !== "missing")
  })
