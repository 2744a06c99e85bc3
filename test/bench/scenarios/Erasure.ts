/** Erasing the details of one event among many: how long it takes, and that no answer has them. */
import { randomUUID } from "node:crypto"
import type { Api } from "../harness/Api.ts"
import type { LargeStore } from "../harness/LargeStore.ts"
import { recordTimes, sizeText, timesOf } from "../harness/Samples.ts"
import type { Bench, LargeScenario } from "../Scenario.ts"

const ERASURES = { quick: 3, full: 20 }

interface Personal {
  readonly id: string
  /** In its details and nowhere else. */
  readonly word: string
  readonly actor: string
}

const send = async (api: Api): Promise<Personal> => {
  const id = randomUUID()
  const word = `secret${id.replaceAll("-", "")}`
  const actor = `person-${id}`
  await api.json("/v1/events?sync=true", {
    body: JSON.stringify({
      id,
      actor: { id: actor, type: "human", email: `${word}@example.com` },
      action: "document.read",
      resource: { id: "doc-1", type: "document", name: word },
      outcome: "success",
      metadata: { word }
    })
  })
  return { id, word, actor }
}

/** What could still have the details. */
const answersOf = ({ actor, id, word }: Personal): ReadonlyArray<readonly [string, string]> => [
  [`/v1/events/${id}`, "application/json"],
  [`/v1/events?actor_id=${actor}`, "application/json"],
  [`/v1/events?q=${word}`, "application/json"],
  [`/v1/events?metadata.word=${word}`, "application/json"],
  [`/v1/events?actor_id=${actor}`, "application/x-ndjson"],
  [`/v1/events?actor_id=${actor}`, "text/csv"]
]

/** Throws if an answer has details; a query by them must not find the event either. */
const assertErased = async (api: Api, personal: Personal): Promise<void> => {
  for (const [path, accept] of answersOf(personal)) {
    const { status, text } = await api.call(path, { headers: { accept } })
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
    if (text.replaceAll(path, "").includes(personal.word)) {
      throw new Error(`${path} (${accept}) still has what was erased: ${text.slice(0, 300)}`)
    }
  }
  for (const query of [`q=${personal.word}`, `metadata.word=${personal.word}`]) {
    const found = await api.total(`&${query}`)
    if (found !== 0) throw new Error(`${found} events are found by details that were erased`)
  }
}

/** Milliseconds, with as many events. */
const GOAL_MS = 300
const GOAL_SIZE = 10e6

const runAt = async (bench: Bench, store: LargeStore, size: number): Promise<void> => {
  const { options, recorder, say } = bench
  const api = await store.api()
  const count = ERASURES[options.quick ? "quick" : "full"]
  for (let run = 0; run < options.runs; run++) {
    say(`run ${run + 1} of ${options.runs}`)
    const all: Array<Personal> = []
    for (let n = 0; n < count; n++) all.push(await send(api))
    for (const { word } of all) {
      if ((await api.total(`&q=${word}`)) !== 1)
        throw new Error("the details were not found before")
    }
    const body = JSON.stringify({ reason: "a measurement" })
    const times: Array<number> = []
    for (const personal of all) {
      const [time] = await timesOf(1, () => api.json(`/v1/events/${personal.id}/erase`, { body }))
      times.push(time!)
      await assertErased(api, personal)
    }
    const shares = { p50: undefined, p95: size <= GOAL_SIZE ? GOAL_MS : undefined }
    recordTimes(recorder, `${sizeText(size)}: erased, answered`, times, shares)
  }
}

export const erasure: LargeScenario = {
  name: "erasure",
  title: "Erasure of one event",
  about: ({ quick }) =>
    `POST /v1/events/{id}/erase, ${ERASURES[quick ? "quick" : "full"]} in each run, until it is `
    + `answered. After each answer the event, lists, searches, NDJSON and CSV are asked, and the `
    + `scenario fails if one of them still has a detail.`,
  runAt
}
