/** A pack of a large tenant: made with flat memory, opened with ordinary tools, verified offline. */
import { execFileSync } from "node:child_process"
import { createWriteStream, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { alkVerify, Verifiers } from "../exports/support/Verifiers.ts"
import { Client } from "../support/Client.ts"
import { peakWhile, residentBytes } from "../support/Memory.ts"
import { populate } from "../support/Population.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const EVENTS = Number(process.env["LARGE_EVENTS"] ?? 1_000_000)
/** Bytes by which the program may grow while it makes a pack; the pack itself is larger. */
const GROWTH_MAX = 512 * 1_048_576
/** Bytes that a verifier may need, whatever the size of the pack. */
const VERIFIER_BYTES_MAX = 256 * 1_048_576

const folder = freshFolder("large-pack")
let running: Started
let verifiers: Verifiers

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    LOG_LEVEL: "warn",
    ALK_BOOTSTRAP_KEYS: `${testKey("large")}=large:read+write`
  })
  verifiers = await Verifiers.open()
})
afterAll(async () => {
  await verifiers.close()
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Run a verifier and return its verdict and its peak in bytes. */
const measured = (command: string, program: string, pack: string) => {
  const python =
    "import json, resource, subprocess, sys\n"
    + "out = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE).stdout\n"
    + "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024\n"
    + "print(json.dumps({'report': json.loads(out), 'peak': peak}))"
  const args = ["-c", python, command, join(verifiers.folder, program), pack, "--json"]
  const said = execFileSync("python3", args, { maxBuffer: 64 * 1_048_576 }).toString()
  return JSON.parse(said) as { report: { verdict: string; events: number }; peak: number }
}

describe(`a pack of ${EVENTS} events`, () => {
  const pack = join(folder, "pack.zip")

  it("is made with flat memory", async () => {
    const client = new Client(running.url, testKey("large"))
    await populate(client, EVENTS)
    const get = async () => {
      const response = await fetch(`${running.url}/v1/export/evidence-pack?pdf=false`, {
        headers: { authorization: `Bearer ${client.key}` }
      })
      assert.strictEqual(response.status, 200)
      await pipeline(Readable.fromWeb(response.body as never), createWriteStream(pack))
    }
    const before = residentBytes(running.pid)
    const peak = await peakWhile(running.pid, get())
    const grown = peak - before
    console.log(`${statSync(pack).size} bytes of ZIP; the program grew by ${grown} bytes`)
    assert.isBelow(grown, GROWTH_MAX)
  })

  it("opens with ordinary tools, and its sums are right", () => {
    const unpacked = join(folder, "unpacked")
    execFileSync("python3", ["-m", "zipfile", "-e", pack, unpacked])
    const args = ["--check", "--strict", "--quiet", "sha256sums.txt"]
    execFileSync("sha256sum", args, { cwd: unpacked })
    rmSync(unpacked, { recursive: true })
  })

  it("is verified offline with bounded memory by every verifier", async () => {
    const { report } = await alkVerify([pack, "--json"])
    assert.strictEqual(report.verdict, "consistent")
    for (const [command, program] of [
      ["node", "verify.mjs"],
      ["python3", "verify.py"]
    ] as const) {
      const { peak, report } = measured(command, program, pack)
      assert.strictEqual(report.verdict, "consistent", program)
      assert.strictEqual(report.events, EVENTS)
      assert.isBelow(peak, VERIFIER_BYTES_MAX, program)
    }
    const page = await verifiers.page.check(pack, {}, 1_200_000)
    assert.strictEqual(page.verdict, "consistent")
  })
})
