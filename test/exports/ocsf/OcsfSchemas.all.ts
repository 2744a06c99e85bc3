/**
 * OCSF's own JSON Schemas take every line that alk writes: those of the version that the lines name,
 * and those of all later ones. They come from a package of PyPI that shares no code with alk.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { Ajv2020 } from "ajv/dist/2020.js"
import { assert, beforeAll, describe, it } from "vitest"
import { OCSF_VERSION } from "../../../src/exports/ocsf/OcsfEvent.ts"
import { pythonPackages } from "../../support/Python.ts"
import { sampleBodies, toLine } from "./OcsfSamples.ts"

const FOLDER = "test/exports/ocsf/python"
const VERSIONS = [OCSF_VERSION, "1.5.0", "1.6.0", "1.7.0", "1.8.0"]
const CLASSES = [3001, 3002, 3004, 6003]
const OUTPUT_BYTES_MAX = 256 * 1_048_576

const run = promisify(execFile)

interface Published {
  readonly version: string
  readonly class_uid: number
  readonly schema: object
}

let published: ReadonlyArray<Published>
beforeAll(async () => {
  const folder = await pythonPackages(`${FOLDER}/requirements.txt`)
  const given = [VERSIONS.join(), CLASSES.join()]
  const { stdout } = await run("python3", ["-B", `${FOLDER}/ocsf_schemas.py`, ...given], {
    env: { ...process.env, PYTHONPATH: folder },
    maxBuffer: OUTPUT_BYTES_MAX
  })
  published = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Published)
})

const events = sampleBodies.map((body) => JSON.parse(toLine(body)))

/** What the schemas of a version say of events that were changed so; nothing of those they take. */
const refused = (version: string, change: (event: any) => unknown): ReadonlyArray<string> =>
  published
    .filter((one) => one.version === version)
    .flatMap(({ class_uid, schema }) => {
      const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false })
      const validate = ajv.compile(schema)
      return events
        .filter((event) => event.class_uid === class_uid)
        .filter((event) => validate(change(event)) !== true)
        .map(() => `${version} ${class_uid}: ${ajv.errorsText(validate.errors)}`)
    })

describe("OCSF's schemas", () => {
  it.each(VERSIONS)("of version %s take every event", (version) => {
    assert.strictEqual(published.filter((one) => one.version === version).length, CLASSES.length)
    assert.deepStrictEqual([...new Set(refused(version, (event) => event))], [])
  })

  it.each(["class_uid", "metadata", "time", "severity_id", "type_uid"])("demand %s", (name) => {
    const without = ({ [name]: _, ...rest }: Record<string, unknown>) => rest
    assert.strictEqual(refused(OCSF_VERSION, without).length, events.length)
  })

  it("take no attribute that OCSF does not know", () => {
    const more = (event: object) => ({ ...event, hash: "ab" })
    assert.strictEqual(refused(OCSF_VERSION, more).length, events.length)
  })
})
