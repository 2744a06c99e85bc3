#!/usr/bin/env node
/**
 * The command `alk`, for any Node from 20 on. The rest is TypeScript, which the project's own Node
 * runs: this file hands over to it, and knows no command.
 */
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import * as modules from "node:module"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

/** The first versions that run TypeScript as it is. */
const RUNS_TYPESCRIPT = { 22: 18, 23: 6 }
/** Signals that a terminal sends to the whole group: the program that does the work has them already. */
const OF_TERMINALS = ["SIGINT", "SIGHUP"]

const here = fileURLToPath(new URL(".", import.meta.url))
const program = join(here, "Alk.ts")
const ownNode = join(here, "..", "..", "node_modules", "node", "bin", "node")

const [major, minor] = process.versions.node.split(".").map(Number)
const runsTypeScript = major >= 24 || minor >= (RUNS_TYPESCRIPT[major] ?? Infinity)

const handOver = () => {
  const command = [fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  const child = spawn(ownNode, command, { stdio: "inherit" })
  for (const signal of OF_TERMINALS) process.on(signal, () => {})
  process.on("SIGTERM", () => child.kill("SIGTERM"))
  child.once("exit", (code, signal) => {
    for (const one of [...OF_TERMINALS, "SIGTERM"]) process.removeAllListeners(one)
    if (signal === null) process.exitCode = code
    else process.kill(process.pid, signal)
  })
}

if (!existsSync(program)) {
  process.stderr.write("alk: the command runs in a clone of the repository, not in a package\n")
  process.exitCode = 1
} else if (runsTypeScript) {
  // What TypeScript became is kept for the next time, which halves the time to an answer.
  modules.enableCompileCache?.()
  await import(pathToFileURL(program).href)
} else if (existsSync(ownNode)) handOver()
else {
  process.stderr.write(
    `alk: Node ${process.version} can't run it, and the project's own is missing: run npm ci\n`
  )
  process.exitCode = 1
}
