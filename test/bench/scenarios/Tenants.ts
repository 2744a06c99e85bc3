/** Many tenants: what an event costs, and how long a list takes, beside one tenant alone. */
import { ADMIN_TOKEN } from "../../support/Program.ts"
import type { Api } from "../harness/Api.ts"
import { bodiesOf, type LoadShape, sendFor, sendWhile } from "../harness/Load.ts"
import { Program, thisSubject } from "../harness/Programs.ts"
import { recordTimes, timesOf } from "../harness/Samples.ts"
import { CpuWatch, sumOf } from "../harness/Threads.ts"
import type { Bench, PlainScenario } from "../Scenario.ts"

const SHAPE: LoadShape = { batch: 100, size: "400 bytes", sync: false, clients: 8 }
/** Tenants that are made at once. */
const MAKERS = 32
const PROGRESS_EVERY = 1_000
const PAGES = { quick: 10, full: 100 }
const ONE = "one"

/** A tenant and a key of it. */
const makeTenant = async (program: Program, admin: Api, n: number): Promise<Api> => {
  const id = `tenant-${n}`
  await admin.json("/v1/admin/tenants", { body: JSON.stringify({ id }) })
  const body = JSON.stringify({ scopes: ["read", "write"] })
  const { key } = await admin.json(`/v1/admin/tenants/${id}/keys`, { body })
  return program.apiWithKey(key)
}

const makeTenants = async (
  { options, say }: Bench,
  program: Program
): Promise<ReadonlyArray<Api>> => {
  const admin = program.apiWithKey(ADMIN_TOKEN)
  const apis: Array<Api> = []
  let next = 0
  const maker = async (): Promise<void> => {
    while (next < options.tenants) {
      const n = next++
      apis[n] = await makeTenant(program, admin, n)
      if (n > 0 && n % PROGRESS_EVERY === 0) say(`${n.toLocaleString("en-US")} tenants made`)
    }
  }
  await Promise.all(Array.from({ length: MAKERS }, maker))
  return apis
}

const pageName = (name: string): string => `${name}: a filtered page of one tenant`

const pages = async ({ options, recorder }: Bench, api: Api, name: string): Promise<void> => {
  const count = PAGES[options.quick ? "quick" : "full"]
  const times = await timesOf(count, (n) =>
    api.json(`/v1/events?actor_id=user-${(n * 7_919) % 20_000}&outcome=success`)
  )
  recordTimes(recorder, pageName(name), times, {
    p50: undefined,
    p95: undefined
  })
}

const ingest = async (
  { options, recorder }: Bench,
  program: Program,
  apis: ReadonlyArray<Api>,
  name: string
): Promise<void> => {
  const watch = new CpuWatch(program.process.pid)
  const { events, seconds, settled } = await sendFor(apis, SHAPE, bodiesOf(SHAPE), options.seconds)
  recorder.add(`${name}: rate`, "events/s", events / seconds)
  recorder.add(`${name}: CPU of an event`, "µs", sumOf(watch.lap()) / events)
  await settled()
}

export const tenants: PlainScenario = {
  name: "tenants",
  title: "Many tenants",
  about: ({ seconds, tenants: count }) =>
    `Batches of 100 to one tenant, then to ${count.toLocaleString("en-US")} tenants in turn, `
    + `${seconds} s of load for each value, until listed, each tenant with a key of its own. Pages `
    + `are those of the one tenant, by actor and outcome with the total.`,
  run: async (bench) => {
    const { options, recorder, say } = bench
    const program = await Program.start(thisSubject(), {
      tenants: [ONE],
      environment: { ALK_ADMIN_TOKEN: ADMIN_TOKEN }
    })
    try {
      const one = program.api(ONE)
      const many = `${options.tenants.toLocaleString("en-US")} tenants`
      await sendFor([one], SHAPE, bodiesOf(SHAPE), Math.min(10, options.seconds))
      for (let run = 0; run < options.runs; run++) {
        say(`run ${run + 1} of ${options.runs}: one tenant`)
        await ingest(bench, program, [one], "one tenant")
        await pages(bench, one, "one tenant")
      }
      const apis = await makeTenants(bench, program)
      // Each of them has a chain before anything is measured.
      const bodies = bodiesOf(SHAPE)
      const body = (n: number) => bodies[n % bodies.length]!
      const first = await sendWhile(apis, SHAPE, body, (sent) => sent < apis.length * SHAPE.batch)
      await first.settled()
      for (let run = 0; run < options.runs; run++) {
        say(`run ${run + 1} of ${options.runs}: ${many}`)
        await ingest(bench, program, apis, many)
        await pages(bench, one, many)
      }
      const cpu = (name: string): readonly [string] => [`${name}: CPU of an event`]
      recorder.ratio(`CPU of an event, ${many} over one`, cpu(many), cpu("one tenant"))
      const page = (name: string): readonly [string] => [`${pageName(name)}, p95`]
      recorder.ratio(`a filtered page, p95, ${many} over one`, page(many), page("one tenant"))
    } finally {
      await program.stop()
    }
  }
}
