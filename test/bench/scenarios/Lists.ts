/** How long pages, totals, searches and statistics take, idle and while events come in. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Api } from "../harness/Api.ts"
import { ACTORS, actorOf, HOT_ACTOR, RARE_WORD, RESOURCES } from "../harness/Events.ts"
import { type LargeStore, SIDE_TENANT } from "../harness/LargeStore.ts"
import { sendPaced } from "../harness/Load.ts"
import { recordTimes, sizeText, timesOf } from "../harness/Samples.ts"
import type { Bench, LargeScenario } from "../Scenario.ts"
import { LOAD_RATE } from "./Latency.ts"

interface Question {
  readonly name: string
  /** Path of the n-th request. */
  readonly path: (n: number, size: number) => string
  /** Milliseconds of the p95, idle and at 10 million events. */
  readonly goal?: number
}

const list = (query: string): string => `/v1/events?${query}`
/** Pages of a question that is asked again and again: early ones, the same in each run. */
const PAGES = 40
const page = (n: number): string => `page=${1 + (n % PAGES)}`
/** Other questions for other numbers that find the same. */
const STATS_LIMITS = 1_000
/** Steps that lead through all values before one comes again. */
const STEP = 7_919

const actor = (n: number): string => `user-${(n * STEP) % ACTORS}`

const questions: ReadonlyArray<Question> = [
  {
    name: "actor and outcome, with total",
    path: (n) => list(`actor_id=${actor(n)}&outcome=success`),
    goal: 50
  },
  {
    name: "an actor of one event in thirty, and outcome",
    path: (n) => list(`actor_id=${HOT_ACTOR}&outcome=success&${page(n)}`),
    goal: 50
  },
  { name: "actor_id", path: (n) => list(`actor_id=${actor(n)}`), goal: 150 },
  {
    name: "resource_id",
    path: (n) => list(`resource_id=doc-${(n * STEP) % RESOURCES}`),
    goal: 150
  },
  { name: "action", path: (n) => list(`action=document.share&${page(n)}`), goal: 150 },
  { name: "outcome", path: (n) => list(`outcome=failure&${page(n)}`), goal: 150 },
  { name: "actor_type", path: (n) => list(`actor_type=human&${page(n)}`), goal: 150 },
  {
    name: "from, to",
    path: (n) =>
      list(
        `from=2026-11-21T10:00:00.${String((n * 97) % 800_000).padStart(6, "0")}Z`
          + "&to=2026-11-21T10:00:00.900000Z"
      ),
    goal: 150
  },
  {
    name: "q, a word of each event",
    path: (n) => list(`q=document&${page(n)}`),
    goal: 500
  },
  { name: "q, a rare word", path: () => list(`q=${RARE_WORD}`), goal: 500 },
  { name: "q, a word of no event", path: (n) => list(`q=xylophone${n}`), goal: 500 },
  { name: "q, an address", path: (n) => list(`q=${actor(n)}@example.com`), goal: 500 },
  {
    name: "metadata.ip",
    path: (n) => list(`metadata.ip=10.0.${n % 200}.${n % 251}`),
    goal: 500
  },
  {
    name: "metadata.request.n",
    path: (n, size) => list(`metadata.request.n=${(n * 104_729) % size}`),
    goal: 500
  },
  {
    name: "a deep page, by sequence",
    path: (n, size) => list(`before_sequence=${Math.max(100, (n * 104_729) % size)}`),
    goal: 150
  },
  {
    name: "stats by actor",
    path: (n) => `/v1/events/stats?group_by=actor_id&limit=${1 + (n % STATS_LIMITS)}`
  },
  {
    name: "stats by action and hour",
    path: (n) => `/v1/events/stats?group_by=action&interval=hour&limit=${1 + (n % STATS_LIMITS)}`
  }
]

/** Requests of each question in each run. */
const SAMPLES = { quick: 3, full: 40 }
/** Requests of each question that are not measured. */
const WARM_UPS = 1
/** How much longer answers may take while events come in. */
const LOADED_FACTOR = 3
const LOAD_WARM_UP_MS = 2_000

interface Round {
  readonly label: string
  /** Goals are those of 10 million events. */
  readonly goalFactor: number | undefined
}

/** Asks every question; throws unless all are answered. */
const askAll = async (
  { options, recorder }: Bench,
  api: Api,
  size: number,
  { goalFactor, label }: Round,
  seed: number
): Promise<void> => {
  const count = SAMPLES[options.quick ? "quick" : "full"]
  for (const { goal, name, path } of questions) {
    const ask = (n: number) => api.json(path(seed + n, size))
    for (let n = 0; n < WARM_UPS; n++) await ask(count + n)
    const times = await timesOf(count, ask)
    const p95 = goal === undefined || goalFactor === undefined ? undefined : goal * goalFactor
    const shares = label.endsWith("idle") ? { p50: undefined, p95 } : { p95 }
    recordTimes(recorder, `${label}: ${name}`, times, shares)
  }
}

/** The answers themselves, once: a fast answer that is wrong is none. */
const checkAnswers = async (api: Api, size: number): Promise<void> => {
  const total = await api.total()
  if (total < size) throw new Error(`${total} events are listed, not ${size}`)
  for (const outcome of ["success", "failure"]) {
    const { events, total: found } = await api.json(list(`outcome=${outcome}`))
    const wrong = events.find((event: any) => event.outcome !== outcome)
    const share = found / total
    const wanted = outcome === "failure" ? 0.2 : 0.8
    if (wrong !== undefined || Math.abs(share - wanted) > 0.01) {
      throw new Error(`outcome=${outcome}: ${found} of ${total}, ${JSON.stringify(wrong)}`)
    }
  }
  const one = actorOf(1)
  const { events } = await api.json(list(`actor_id=${one}`))
  if (events.length === 0 || events.some((event: any) => event.actor.id !== one)) {
    throw new Error(`actor_id=${one}: ${JSON.stringify(events[0])}`)
  }
}

const GOAL_SIZE = 10e6

const runAt = async (bench: Bench, store: LargeStore, size: number): Promise<void> => {
  const { options, recorder, say } = bench
  const api = await store.api()
  await checkAnswers(api, size)
  const at = sizeText(size)
  const isGoal = size === GOAL_SIZE
  for (let run = 0; run < options.runs; run++) {
    const seed = run * 1_000
    say(`run ${run + 1} of ${options.runs}: idle`)
    const idle = { label: `${at}, idle`, goalFactor: isGoal ? 1 : undefined }
    await askAll(bench, api, size, idle, seed)
    say(`run ${run + 1} of ${options.runs}: under load`)
    const load = sendPaced((await store.program()).api(SIDE_TENANT), LOAD_RATE)
    try {
      await sleep(LOAD_WARM_UP_MS)
      const loaded = {
        label: `${at}, under load`,
        goalFactor: isGoal ? LOADED_FACTOR : undefined
      }
      await askAll(bench, api, size, loaded, seed + 500)
    } finally {
      const { rate } = await load.stop()
      recorder.add(`${at}, under load: what came in`, "events/s", rate)
    }
  }
}

export const lists: LargeScenario = {
  name: "lists",
  title: "Lists, searches and statistics",
  about: ({ quick }) =>
    `One tenant with ${ACTORS.toLocaleString("en-US")} actors and ${RESOURCES.toLocaleString("en-US")} `
    + `resources. Each page has 50 events and the exact total. Requests one after another, `
    + `${SAMPLES[quick ? "quick" : "full"]} of each in a run: of other actors, resources, values and `
    + `places, or of the first ${PAGES} pages; under load, another tenant sends ${LOAD_RATE.toLocaleString("en-US")} events a second, which `
    + `stay in the store.`,
  runAt
}
