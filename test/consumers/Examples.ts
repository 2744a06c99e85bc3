/**
 * Runs an example of a consumer as a stranger would: its own command, its settings in environment
 * variables; and what every example has to say about the two topics of a world.
 */
import { execFile } from "node:child_process"
import { stripVTControlCharacters } from "node:util"
import { assert, describe, it } from "vitest"
import { forgeries } from "./Forgeries.ts"
import type { World } from "./World.ts"

/** Milliseconds after which it hangs. */
const RUN_TIMEOUT_MS = 500_000

export interface Example {
  readonly name: string
  /** Why it can't be run here; undefined if it can. */
  readonly missing?: string | undefined
  /** Program and first arguments. */
  readonly command: () => Promise<ReadonlyArray<string>>
  readonly environment?: Readonly<Record<string, string>>
}

interface Outcome {
  readonly code: number
  readonly lines: ReadonlyArray<string>
  readonly errors: string
}

export const runExample = async (
  { command, environment }: Example,
  connection: Readonly<Record<string, string>>,
  topic: string
): Promise<Outcome> => {
  const given = (await command()).map((part) => part.replace("TOPIC", topic))
  const [program, ...args] = given
  return new Promise((resolve) => {
    const options = {
      env: { ...process.env, ...environment, ...connection },
      timeout: RUN_TIMEOUT_MS
    }
    execFile(program!, args, options, (error, output, errors) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1
      // Maven resets the colours of its terminal, whether or not it has one.
      const lines = stripVTControlCharacters(output).split("\n")
      resolve({ code, lines: lines.filter((line) => line !== ""), errors })
    })
  })
}

const BREAK =
  /^broken: tenant (\S+) sequence (\S+) \(partition \d+ offset \d+\): (\w+) is .+, expected .+$/

/** Reads the topic as alk wrote it: nothing is broken. */
const assertIntact = async (example: Example, world: World): Promise<void> => {
  const { code, errors, lines } = await runExample(example, world.connection, world.topic)
  assert.strictEqual(
    lines.at(-1),
    `intact: ${world.events} events of ${world.tenants} tenants`,
    errors
  )
  assert.strictEqual(code, 0, errors)
  assert.deepStrictEqual(
    lines.filter((line) => line.startsWith("erased")),
    [world.erased]
  )
}

/** Reads the copy: each forgery is named with its place, and nothing else. */
const assertForgeriesFound = async (example: Example, world: World): Promise<void> => {
  const { code, errors, lines } = await runExample(example, world.connection, world.forgedTopic)
  const wanted = forgeries.flatMap(({ found, tenant }) =>
    found.map(([sequence, member]) => `${tenant} ${sequence} ${member}`)
  )
  const named = lines.flatMap((line) => {
    const [, tenant, sequence, member] = BREAK.exec(line) ?? []
    return member === undefined ? [] : [`${tenant} ${sequence} ${member}`]
  })
  assert.sameMembers(named, wanted, `${lines.join("\n")}\n${errors}`)
  const seen = `${world.forgedEvents} events of ${world.tenants} tenants`
  assert.strictEqual(lines.at(-1), `broken: ${wanted.length} breaks in ${seen}`)
  assert.strictEqual(code, 1, errors)
}

/** The tests of examples; those that can't be run here are skipped, with the reason. */
export const describeExamples = (examples: ReadonlyArray<Example>, world: () => World): void => {
  for (const example of examples) {
    const { missing, name } = example
    const title = `the consumer with ${name}`
    if (missing !== undefined) console.warn(`SKIPPED: ${title}: ${missing}`)
    describe.skipIf(missing !== undefined)(
      missing === undefined ? title : `${title} (skipped: ${missing})`,
      () => {
        it("reads the topic to its end and finds the chains whole", () =>
          assertIntact(example, world()))
        it("finds what is forged in the middle of chains, and names the place", () =>
          assertForgeriesFound(example, world()))
      }
    )
  }
}
