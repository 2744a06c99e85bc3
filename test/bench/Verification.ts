/**
 * How fast a chain is verified, as ratios to hashing the same bytes once with nothing else: by the
 * store's recomputation and by the program's own. `--quick` is the small form. The store is a
 * process of its own on this machine; everything else runs here.
 */
import { createHash } from "node:crypto"
import { rmSync } from "node:fs"
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { layerRecompute } from "../../src/adapters/clickhouse/events/Recompute.ts"
import { layerTraceStore } from "../../src/adapters/clickhouse/TraceStoreClickHouse.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import { SignedCheckpoints } from "../../src/verify/SignedCheckpoints.ts"
import { layerVerifier, Verifier, type VerifyRequest } from "../../src/verify/Verifier.ts"
import { startStore } from "../adapters/clickhouse/support/StoreProcesses.ts"
import { freshFolder } from "../support/Program.ts"
import { Chain, type Fields } from "../verify/support/Chains.ts"
import { CheckpointWorld } from "../verify/support/CheckpointWorld.ts"
import { LogWorld, layerLog } from "../verify/support/LogWorld.ts"

const quick = process.argv.includes("--quick")
/** Runs of each measurement: medians and spread come from these. */
const RUNS = quick ? 3 : 5
const EVENTS = quick ? 100_000 : 1_000_000
/** Events that the program goes through by itself, and that are hashed for comparison. */
const PART = quick ? 20_000 : 50_000
const INSERT_ROWS = 25_000
const TENANT = "bench"

const fields = (n: number): Fields => ({
  actor: { id: `user-${n % 1_000}`, type: "human", email: `user-${n % 1_000}@example.com` },
  action: ["document.read", "document.share", "login.succeeded"][n % 3]!,
  resource: { id: `doc-${n % 5_000}`, type: "document", name: `Document ${n}` },
  outcome: n % 5 === 0 ? "failure" : "success",
  metadata: { ip: `10.0.0.${n % 255}`, tags: ["a", "b"], request: { n, ms: n * 1.5 } }
})

interface Measured {
  readonly name: string
  /** Events per second. */
  readonly values: ReadonlyArray<number>
}

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((left, right) => left - right)[values.length >> 1]!

const spread = ({ values }: Measured): string => {
  const low = Math.min(...values) / median(values)
  const high = Math.max(...values) / median(values)
  return `spread ${low.toFixed(2)}-${high.toFixed(2)} of the median, ${values.length} runs`
}

const ratio = (what: string, of: Measured, to: Measured): void => {
  console.log(`${what}: ${(median(of.values) / median(to.values)).toFixed(2)}`)
  console.log(`    ${of.name}: ${spread(of)}`)
  console.log(`    ${to.name}: ${spread(to)}`)
  const goal = 1_000_000 / median(of.values)
  console.log(`    1,000,000 events/s are ${goal.toFixed(2)} of the median`)
}

const repeat = async (
  name: string,
  events: number,
  once: () => Promise<unknown>
): Promise<Measured> => {
  const values: Array<number> = []
  for (let run = 0; run < RUNS; run++) {
    const started = performance.now()
    await once()
    values.push(events / ((performance.now() - started) / 1_000))
  }
  return { name, values }
}

const folder = freshFolder("bench-verify")
const store = await startStore(folder)
if (store.said.url === undefined) throw new Error(store.said.message)
const connection = ClickHouseConnection.layerServer({ url: store.said.url, database: "bench" })
const world = new LogWorld()
const checkpoints = new CheckpointWorld()
const services = layerVerifier.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      layerClickHouse,
      layerTraceStore,
      layerRecompute,
      layerLog(world),
      Layer.succeed(SignedCheckpoints, checkpoints.service)
    )
  ),
  Layer.provide(connection)
)

/** Store the chain; keeps the first bodies. */
const fill = Effect.gen(function* () {
  const events = yield* EventStore
  yield* events.migrate
  const chain = new Chain(TENANT)
  const kept: Array<Buffer> = []
  for (let at = 0; at < EVENTS; at += INSERT_ROWS) {
    for (let n = at; n < Math.min(EVENTS, at + INSERT_ROWS); n++) chain.append(fields(n))
    const bodies = chain.bodies.splice(0).map((body) => Buffer.from(body))
    if (kept.length < PART) kept.push(...bodies.slice(0, PART - kept.length))
    yield* events.insertEvents(
      bodies.map((body, index) => ({ partition: 0, offset: at + index, body }))
    )
  }
  world.heads.set(TENANT, chain.head!)
  return kept
})

const verify = (request: Partial<VerifyRequest>) =>
  Effect.gen(function* () {
    const verifier = yield* Verifier
    const report = yield* verifier.verify({ tenantId: TENANT, requireHead: true, ...request })
    if (!report.valid) throw new Error(JSON.stringify(report.breaks.slice(0, 3)))
    return report
  })

const bench = Effect.gen(function* () {
  const bodies = yield* fill
  const context = yield* Effect.context<Verifier>()
  const run = (request: Partial<VerifyRequest>) => () =>
    Effect.runPromise(verify(request).pipe(Effect.provideContext(context)))
  const bytes = Math.round(bodies.reduce((sum, body) => sum + body.length, 0) / bodies.length)
  console.log(
    `alk verification bench: ${EVENTS} events of ${bytes} bytes, store and verifier on one machine`
  )
  yield* Effect.promise(async () => {
    const raw = await repeat("SHA-256 over the same bytes, one thread", PART, async () => {
      for (const body of bodies) createHash("sha256").update(body).digest()
    })
    const byStore = await repeat("verified, recomputed by the store", EVENTS, run({}))
    ratio("recomputed by the store, of raw SHA-256", byStore, raw)
    const byProgram = await repeat(
      "verified, recomputed by the program",
      PART,
      run({ toSequence: PART, recompute: "program" })
    )
    ratio("recomputed by the program, of raw SHA-256", byProgram, raw)
    // A root that is none: what counts is that the tree is built.
    checkpoints.kept.push({ treeSize: EVENTS, rootHash: "0".repeat(64), note: "" })
    const withTree = await repeat("verified with the tree of a checkpoint", EVENTS, () =>
      run({})().then(
        () => Promise.reject(new Error("a wrong root was taken")),
        () => undefined
      )
    )
    ratio("recomputed by the store with the tree, of raw SHA-256", withTree, raw)
  })
})

try {
  await Effect.runPromise(bench.pipe(Effect.provide(services)))
} finally {
  await store.stop()
  rmSync(folder, { recursive: true, force: true })
}
