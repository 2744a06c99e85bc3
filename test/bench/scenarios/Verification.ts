/** How fast a chain is verified over HTTP, with the tree and without; proofs; SHA-256 beside it. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Api } from "../harness/Api.ts"
import { hashRate } from "../harness/Hashes.ts"
import type { LargeStore } from "../harness/LargeStore.ts"
import { recordTimes, sizeText, timesOf } from "../harness/Samples.ts"
import type { Bench, LargeScenario } from "../Scenario.ts"

/** Events that are hashed for comparison, again and again. */
const HASHED = 20_000
const PROOFS = { quick: 5, full: 100 }

/** Seconds of a verification; throws if the chain is not valid, or fewer events were checked. */
const verify = async (api: Api, firstSequence: number, size: number): Promise<number> => {
  const started = performance.now()
  const report = await api.json(
    `/v1/verify?chain=events&from_sequence=${firstSequence}&to_sequence=${size}`
  )
  const seconds = (performance.now() - started) / 1_000
  const checked = size - firstSequence + 1
  if (!report.valid || report.events_checked !== checked) {
    throw new Error(`verify: ${JSON.stringify(report).slice(0, 500)}`)
  }
  return seconds
}

const CHECKPOINT_WAIT_MS = 60_000
const CHECKPOINT_POLL_MS = 500

/** Until a checkpoint covers the chain: without one there is no tree to compare with. */
const checkpointed = async (api: Api): Promise<number> => {
  const until = performance.now() + CHECKPOINT_WAIT_MS
  const total = await api.total()
  for (;;) {
    const { tree_size } = await api.json("/v1/chain/checkpoints/latest")
    if (tree_size >= total) return tree_size
    if (performance.now() > until) throw new Error(`a checkpoint of ${tree_size}, not of ${total}`)
    await sleep(CHECKPOINT_POLL_MS)
  }
}

const verifyTree = async (api: Api): Promise<number> => {
  const size = await checkpointed(api)
  const started = performance.now()
  const report = await api.json("/v1/verify?chain=events")
  const seconds = (performance.now() - started) / 1_000
  if (!report.valid || report.assurance !== "signed" || report.events_checked !== size) {
    throw new Error(`verify: ${JSON.stringify(report).slice(0, 500)}`)
  }
  return size / seconds
}

/** Stored JSON of the first events. */
const sampleOf = async (api: Api): Promise<ReadonlyArray<Buffer>> => {
  const text = await api.text(`/v1/events?order=asc&to_sequence=${HASHED}`, {
    headers: { accept: "application/x-ndjson" }
  })
  return text
    .trimEnd()
    .split("\n")
    .map((line) => Buffer.from(line))
}

const runAt = async (bench: Bench, store: LargeStore, size: number): Promise<void> => {
  const { options, recorder, say } = bench
  const api = await store.api()
  const at = sizeText(size)
  const [plain, tree, hashes] = [
    `${at}: without the tree`,
    `${at}: with the tree`,
    `${at}: SHA-256`
  ]
  const sample = await sampleOf(api)
  const proofs = PROOFS[options.quick ? "quick" : "full"]
  for (let run = 0; run < options.runs; run++) {
    say(`run ${run + 1} of ${options.runs}`)
    // The tree is compared where a check begins with the first event.
    recorder.add(plain, "events/s", (size - 1) / (await verify(api, 2, size)), { goal: 1e6 })
    recorder.add(tree, "events/s", await verifyTree(api), { goal: 800_000 })
    recorder.add(hashes, "events/s", hashRate(sample))
    const inclusion = (n: number) =>
      api.json(`/v1/chain/proofs/inclusion?sequence_number=${1 + ((n * 104_729) % size)}`)
    const { checkpoints } = await api.json("/v1/chain/checkpoints")
    const consistency = (n: number) => {
      const { tree_size } = checkpoints[n % checkpoints.length]
      return api.json(`/v1/chain/proofs/consistency?first=${tree_size}`)
    }
    const shares = { p50: undefined, p95: undefined }
    recordTimes(recorder, `${at}: inclusion proof`, await timesOf(proofs, inclusion), shares)
    recordTimes(recorder, `${at}: consistency proof`, await timesOf(proofs, consistency), shares)
  }
  recorder.ratio(`${at}: without the tree, of SHA-256 alone`, [plain], [hashes])
  recorder.ratio(`${at}: with the tree, of SHA-256 alone`, [tree], [hashes])
}

export const verification: LargeScenario = {
  name: "verification",
  title: "Verification and proofs",
  about: () =>
    "GET /v1/verify over the whole chain of one tenant, from the request until the report is there; "
    + "with the tree: from the first event on, where it has to lead to the root of a signed "
    + "checkpoint. SHA-256: the stored JSON of the first of these events, on one thread. Proofs one "
    + "after another, each of another event or size.",
  runAt
}
