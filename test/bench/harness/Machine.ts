/** What the machine is and what runs on it, for the report. */
import { execFileSync, spawnSync } from "node:child_process"
import { cpus, loadavg, release, totalmem } from "node:os"
import { KAFKA_VERSION } from "../../../src/adapters/embedded/broker/KafkaJars.ts"
import type { Machine } from "../report/Results.ts"

const ASK_VERSION =
  'import("chdb").then(({ query }) => console.log(query("SELECT version()", "TSV")))'

/** Asked in a process of its own: the engine stays in the process that has loaded it. */
const clickHouseVersion = (): string =>
  execFileSync(process.execPath, ["-e", ASK_VERSION], { encoding: "utf8" }).trim()

const javaVersion = (): string => {
  const { stderr = "" } = spawnSync("java", ["-version"], { encoding: "utf8" })
  return /"([^"]+)"/.exec(stderr)?.[1] ?? "unknown"
}

export const describeMachine = (): Machine => ({
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memory: Math.round(totalmem() / 1e9),
  kernel: release(),
  loadBefore: Math.round(loadavg()[0]! * 10) / 10,
  node: process.version.slice(1),
  clickhouse: clickHouseVersion(),
  kafka: KAFKA_VERSION,
  java: javaVersion()
})

/** The commit of a checkout; with -dirty where tracked files differ from it. */
export const commitOf = (checkout: string): string => {
  const git = (...args: ReadonlyArray<string>): string =>
    spawnSync("git", ["-C", checkout, ...args], { encoding: "utf8" }).stdout?.trim() ?? ""
  const commit = git("rev-parse", "--short=10", "HEAD")
  if (commit === "") return "unknown"
  return git("status", "--porcelain", "--untracked-files=no") === "" ? commit : `${commit}-dirty`
}
