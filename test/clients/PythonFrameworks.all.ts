/**
 * The Python client as it is installed, in an environment of its own: its types, and its middlewares
 * in FastAPI and Django. Needs PyPI, or a mirror that pip is set up for.
 */
import { cpSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { freshFolder } from "../support/Program.ts"
import { PYTHON_CLIENT, startPython } from "./PythonPrograms.ts"

const PACKAGES = ["fastapi==0.165.0", "httpx==0.28.1", "django==5.2.19", "mypy==2.4.1"]

const folder = freshFolder("python-frameworks")
const python = join(folder, "venv", "bin", "python")

const succeed = async (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {},
  program = python
): Promise<string> => {
  const { code, output } = await startPython(args, environment, program).ended
  assert.strictEqual(code, 0, output)
  return output
}

beforeAll(async () => {
  await succeed(["-m", "venv", join(folder, "venv")], {}, "python3")
  // A build leaves files beside what it builds.
  const copy = join(folder, "python")
  cpSync(PYTHON_CLIENT, copy, { recursive: true })
  await succeed(["-m", "pip", "install", "--quiet", copy, ...PACKAGES])
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the Python client, installed", () => {
  it("has its types with it, and they hold", async () => {
    const uses = join(folder, "uses.py")
    writeFileSync(
      uses,
      "from alk_client import AlkClient\nreveal_type(AlkClient().record('a.b'))\n"
    )
    const mypy = ["-m", "mypy", "--cache-dir", join(folder, "mypy")]
    const said = await succeed([...mypy, "--config-file=", "--strict", uses])
    assert.include(said, 'Revealed type is "alk_client.outbox.Receipt"')
    await succeed(mypy)
  })

  it("logs the requests of FastAPI and Django", async () => {
    const args = ["-W", "ignore", "tests/programs/frameworks.py"]
    assert.include(await succeed(args, { PYTHONPATH: PYTHON_CLIENT }), "OK")
  })
})
