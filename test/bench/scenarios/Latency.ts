/** How long one synchronous event takes, alone and while others come in. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Api } from "../harness/Api.ts"
import { eventText } from "../harness/Events.ts"
import { pathOf, sendPaced } from "../harness/Load.ts"
import { Program, type Subject } from "../harness/Programs.ts"
import { recordTimes, timesOf } from "../harness/Samples.ts"
import type { Options } from "../Options.ts"
import { type Bench, inTurn, type PlainScenario } from "../Scenario.ts"

/** Events a second that come in from another tenant. */
export const LOAD_RATE = 10_000
/** Requests of a run: about as many as `--seconds` has room for. */
const samplesOf = ({ quick, seconds }: Options): number =>
  quick ? 20 : Math.max(200, Math.round(seconds * 33))
/** Samples from which on one of a thousand says something. */
const RARE_MIN = 1_000
const WARM_UP_SAMPLES = { quick: 10, full: 100 }
/** Milliseconds that the load runs before anything is measured under it. */
const LOAD_WARM_UP_MS = 2_000

const single = (api: Api) => async (n: number) => {
  const { status, text } = await api.call(pathOf({ batch: 1, sync: true }), { body: eventText(n) })
  if (status !== 201) throw new Error(`single event: ${status} ${text}`)
}

const runOnce = async (bench: Bench, subject: Subject, run: number): Promise<void> => {
  const { options, recorder, say } = bench
  const of = subject.name
  const size = options.quick ? "quick" : "full"
  const samples = samplesOf(options)
  const program = await Program.start(subject, { tenants: ["single", "load"] })
  try {
    const api = program.api("single")
    await timesOf(WARM_UP_SAMPLES[size], single(api))
    say(`run ${run + 1} of ${options.runs}: alone`)
    const empty = await timesOf(samples, async () => {
      await api.text("/healthz")
    })
    recordTimes(recorder, "an empty request", empty, { p50: undefined }, of)
    const alone = await timesOf(samples, single(api))
    const rare = samples < RARE_MIN ? {} : { "p99.9": undefined }
    const shares = { p50: 15, p99: 60, ...rare }
    recordTimes(recorder, "one event, alone", alone, shares, of)
    say(`run ${run + 1} of ${options.runs}: while others come in`)
    const load = sendPaced(program.api("load"), LOAD_RATE)
    await sleep(LOAD_WARM_UP_MS)
    const under = await timesOf(samples, single(api)).finally(async () => {
      const { rate } = await load.stop()
      recorder.add("what came in meanwhile", "events/s", rate, { of })
    })
    const sharesUnder = { p50: undefined, p99: 150, ...rare }
    recordTimes(recorder, "one event, under load", under, sharesUnder, of)
  } finally {
    await program.stop()
  }
}

export const latency: PlainScenario = {
  name: "latency",
  title: "One synchronous event",
  about: (options) =>
    `From the request until the answer, when the event is chained and in every list. Requests one `
    + `after another, ${samplesOf(options)} in each run; under load, another tenant `
    + `sends ${LOAD_RATE.toLocaleString("en-US")} events a second in batches of 500.`,
  run: (bench) => inTurn(bench, (subject, run) => runOnce(bench, subject, run))
}
