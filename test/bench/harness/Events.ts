/**
 * The events of the load: 20,000 actors, 5,000 resources, as texts, since what makes them shares the
 * machine with what is measured. A number makes the same event every time.
 */

export const ACTORS = 20_000
export const RESOURCES = 5_000
export const ACTIONS = ["document.read", "document.share", "login.succeeded"]
/** One event in so many is of this actor. */
const HOT_ACTOR_EVERY = 30
export const HOT_ACTOR = "user-hot"
/** One event in so many has this word in its metadata. */
export const RARE_WORD_EVERY = 100_000
export const RARE_WORD = "quetzalcoatl"

const USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0"

/** About 400 bytes as sent, or about 4 KB. */
export type Size = "400 bytes" | "4 KB"

const FILLER = {
  "400 bytes": "",
  "4 KB": `,"note":"${"The answer of the model, in a sentence or two. ".repeat(76)}"`
}

/** Of an event: consecutive events have actors that are far apart. */
export const actorOf = (n: number): string =>
  n % HOT_ACTOR_EVERY === 0 ? HOT_ACTOR : `user-${(n * 7_919) % ACTORS}`

const MICROS = 1_000_000

/** An event as JSON; `more` are members to put before the others, such as `"id":"x",`. */
export const eventText = (n: number, size: Size = "400 bytes", more = ""): string => {
  const actor = actorOf(n)
  const rare = n % RARE_WORD_EVERY === 0 ? `,"word":"${RARE_WORD}"` : ""
  return (
    `{${more}"timestamp":"2026-11-21T10:${String(Math.floor(n / MICROS) % 60).padStart(2, "0")}:00.`
    + `${String(n % MICROS).padStart(6, "0")}Z",`
    + `"actor":{"id":"${actor}","type":"human","email":"${actor}@example.com"},`
    + `"action":"${ACTIONS[n % 3]}",`
    + `"resource":{"id":"doc-${n % RESOURCES}","type":"document","name":"Document ${n}"},`
    + `"outcome":"${n % 5 === 0 ? "failure" : "success"}",`
    + `"metadata":{"ip":"10.0.${n % 200}.${n % 251}","agent":"${USER_AGENT}","tags":["a","b"],`
    + `"request":{"n":${n},"ms":${(n % 100_000) * 1.5}}${rare}${FILLER[size]}}}`
  )
}

/** The body of a batch of so many events from one number on. */
export const batchBody = (first: number, count: number, size: Size = "400 bytes"): Buffer => {
  const texts = Array.from({ length: count }, (_, n) => eventText(first + n, size))
  return Buffer.from(`{"events":[${texts.join(",")}]}`)
}
