/** Every example of a consumer, with its own command; `TOPIC` stands for the topic to read. */
import { execFile, spawnSync } from "node:child_process"
import { cpSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { hasGo } from "../support/Fsck.ts"
import { freshFolder } from "../support/Program.ts"
import { pythonPackages } from "../support/Python.ts"
import type { Example } from "./Examples.ts"

const FOLDER = "test/examples/consumers"
const BUILD_TIMEOUT_MS = 300_000

const run = promisify(execFile)

const typescript = (name: string): Example => ({
  name,
  command: async () => [
    process.execPath,
    "--disable-warning=TimeoutNegativeWarning",
    `${FOLDER}/typescript/${name}.ts`,
    "--until-end",
    "TOPIC"
  ]
})

export const kafkajs = typescript("kafkajs")
export const platformatic = typescript("platformatic")

export const kcat: Example = {
  name: "kcat",
  missing: spawnSync("kcat", ["-V"]).status === 0 ? undefined : "kcat is not installed",
  command: async () => [`${FOLDER}/kcat/consume.sh`, "--until-end", "TOPIC"]
}

export const python = async (): Promise<Example> => ({
  name: "confluent-kafka",
  environment: { PYTHONPATH: await pythonPackages(`${FOLDER}/python/requirements.txt`) },
  command: async () => ["python3", "-B", `${FOLDER}/python/consume.py`, "--until-end", "TOPIC"]
})

/** A copy of an example's folder: what is built stays out of the repository. */
const copyOf = (language: string): string => {
  const folder = freshFolder(`consumer-${language}`)
  cpSync(join(FOLDER, language), folder, { recursive: true })
  return folder
}

let javaFolder: string | undefined

/** As the comment of each class says. */
const java = (mainClass: string): Example => ({
  name: mainClass,
  command: async () => [
    "mvn",
    "--quiet",
    "--batch-mode",
    `--file=${(javaFolder ??= copyOf("java"))}/pom.xml`,
    "compile",
    "exec:java",
    `-Dexec.mainClass=${mainClass}`,
    "-Dexec.args=--until-end TOPIC"
  ]
})

export const kafkaClients = java("ConsumeEvents")
export const kafkaStreams = java("CountActions")

let built: Promise<string> | undefined
const buildGo = async (): Promise<string> => {
  const folder = copyOf("go")
  await run("go", ["build", "-C", folder, "-o", "consume", "."], { timeout: BUILD_TIMEOUT_MS })
  return join(folder, "consume")
}

export const franzGo: Example = {
  name: "franz-go",
  missing: hasGo ? undefined : "Go is not installed",
  command: async () => [await (built ??= buildGo()), "--until-end", "TOPIC"]
}
