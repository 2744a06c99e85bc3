/**
 * Load for a while (SOAK_MINUTES, default 30) and a look at the program every ten seconds: memory must
 * not grow and receipts must settle. Exits with 1 if they don't. `npm run test:soak`.
 */
import { readFileSync, rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { Client, type Json } from "../support/Client.ts"
import { freshFolder, start, testKey } from "../support/Program.ts"

const minutes = Number(process.env["SOAK_MINUTES"] ?? 30)
const SAMPLE_MS = 10_000
/** Milliseconds between two batches of one client: far below what the machine can take. */
const PAUSE_MS = 200
const CLIENTS = 4
const BATCH = 200
/** The last third may use this much more memory than the second: caches fill, leaks go on. */
const GROWTH_MAX = 1.25

const folder = freshFolder("soak")
const program = await start({
  ALK_DATA_DIR: folder,
  LOG_LEVEL: "warn",
  ALK_BOOTSTRAP_KEYS: `${testKey("soak")}=soak:read+write`
})
const api = new Client(program.url, testKey("soak"))
const until = Date.now() + minutes * 60_000
const event = (n: number): Json => ({
  actor: { id: `user-${n % 100}`, type: "agent" },
  action: "tool.called",
  resource: { id: `tool-${n % 20}`, type: "tool" },
  outcome: "success",
  metadata: { n }
})

const residentBytes = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${program.pid}/status`, "utf8"))![1]) * 1_024

let sent = 0
const load = Array.from({ length: CLIENTS }, async () => {
  while (Date.now() < until) {
    const { body, status, text } = await api.batch(
      Array.from({ length: BATCH }, (_, n) => event(n))
    )
    if (status !== 202) throw new Error(`${status} ${text}`)
    await api.settled(body.receipt_id)
    sent += BATCH
    await sleep(PAUSE_MS)
  }
})
const samples: Array<number> = []
const watch = (async () => {
  while (Date.now() < until) {
    await sleep(Math.min(SAMPLE_MS, Math.max(0, until - Date.now())))
    samples.push(residentBytes())
    console.log(`${sent} events, ${Math.round(samples.at(-1)! / 1_048_576)} MiB resident`)
  }
})()

const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

try {
  await Promise.all([...load, watch])
  const { body } = await api.call("/v1/events?page_size=1")
  const third = Math.floor(samples.length / 3)
  const growth = mean(samples.slice(2 * third)) / mean(samples.slice(third, 2 * third))
  const { body: report } = await api.call("/v1/verify")
  const holds = body.total === sent && report.valid && !(growth > GROWTH_MAX)
  console.log(`${body.total} of ${sent} listed, valid ${report.valid}, growth ${growth.toFixed(3)}`)
  process.exitCode = holds ? 0 : 1
} finally {
  await program.stop()
  rmSync(folder, { recursive: true, force: true })
}
