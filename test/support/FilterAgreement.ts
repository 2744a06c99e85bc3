/**
 * Asks a running program every way in which events are filtered and compares with the independent
 * evaluator: list, pages, keysets, NDJSON, CSV, statistics, facets, SQL, evidence packs, share links,
 * streams from the start, and live streams. What else is filtered joins in `compareReads`.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import { PackEditor } from "../exports/support/PackEditor.ts"
import type { Client, Json } from "./Client.ts"
import { eventuallyAsync } from "./Eventually.ts"
import { Cases } from "./FilterCases.ts"
import { type Expression, isRefused, matching } from "./FilterEvaluator.ts"
import { statementOf } from "./FilterStatement.ts"

/**
 * Milliseconds in which what is delivered beyond what is expected would have arrived. Nothing that a
 * stream says follows it; a machine that is slower than that misses a fault, and makes up none.
 */
const AFTERMATH_MS = 300
const PATIENCE_MS = 240_000
const AGAIN_MS = 200
/** How the server refuses a connection on which no request arrived within its timeout. */
const LATE = "the request did not arrive in time"
const ATTEMPTS_MAX = 3
const PROBLEMS_SHOWN = 20
/** A pack and a link cost more than all other reads: one for so many expressions. */
const PACK_EVERY = 20

const queryOf = (expression: Expression, more = ""): string =>
  expression
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join("&") + more

interface OpenStream {
  readonly expression: Expression
  readonly expected: ReadonlyArray<number>
  readonly seen: Array<number>
  /** What its reader met on the way: shown when it did not get everything. */
  readonly problems: ReadonlyArray<string>
  readonly close: () => void
}

/** Ask for a stream, after a place in the chain if there is one. */
const connect = (
  api: Client,
  expression: Expression,
  after: number | undefined,
  signal: AbortSignal
): Promise<Response> => {
  const more = after === undefined ? "" : `&after_sequence=${after}`
  const headers = { authorization: `Bearer ${api.key}` }
  const url = `${api.url}/v1/events/stream?${queryOf(expression, more)}`
  return fetch(url, { headers, signal })
}

/** Follow a stream in the background; undefined if it is refused. */
const follow = async (
  api: Client,
  expression: Expression,
  after: number | undefined,
  expected: ReadonlyArray<number>,
  attempt = 1
): Promise<OpenStream | undefined> => {
  const controller = new AbortController()
  const response = await connect(api, expression, after, controller.signal)
  if (response.status !== 200) {
    const text = await response.text()
    // Said of a connection, not of the expression: on a machine that is short of time, try again.
    if (text.includes(LATE) && attempt < ATTEMPTS_MAX) {
      console.log(`a stream was not opened in time, attempt ${attempt}`)
      return follow(api, expression, after, expected, attempt + 1)
    }
    const refused = [response.status === 400, isRefused(expression)]
    assert.deepStrictEqual(refused, [true, true], `${JSON.stringify(expression)}: ${text}`)
    return undefined
  }
  const seen: Array<number> = []
  const read = async (body: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    let rest = ""
    for await (const chunk of body) {
      rest += decoder.decode(chunk as Uint8Array, { stream: true })
      const blocks = rest.split("\n\n")
      rest = blocks.pop()!
      for (const block of blocks) {
        const id = /^event: audit\.event\nid: (\d+)\ndata: /m.exec(block)?.[1]
        if (id !== undefined) seen.push(Number(id))
      }
    }
  }
  const problems: Array<string> = []
  const note = (failure: unknown) => {
    problems.push(String(failure))
  }
  const readOnce = async (next: Response) => {
    if (next.status === 200) await read(next.body!)
    else problems.push(`${next.status}: ${await next.text()}`)
  }
  // A resumed stream that the store can't serve in time ends; the reader asks for the rest of it.
  const readOn = async () => {
    await readOnce(response).catch(note)
    while (after !== undefined && !controller.signal.aborted) {
      problems.push(`ended after ${seen.length} events`)
      await sleep(AGAIN_MS)
      const last = seen.at(-1) ?? after
      await connect(api, expression, last, controller.signal).then(readOnce).catch(note)
    }
  }
  void readOn()
  return { expression, expected, seen, problems, close: () => controller.abort() }
}

/** Wait until every stream has delivered what is expected, then a little for what is not. */
const compareStreams = async (streams: ReadonlyArray<OpenStream>, kind: string) => {
  await eventuallyAsync(
    `every ${kind} stream has delivered what is expected`,
    () =>
      streams
        .filter(({ expected, seen }) => seen.length < expected.length)
        .map(({ expected, expression, problems, seen }) => ({
          expression: JSON.stringify(expression),
          problems: problems.slice(0, PROBLEMS_SHOWN),
          seen: `${seen.length} of ${expected.length}`
        })),
    ({ length }) => length === 0,
    PATIENCE_MS
  )
  await sleep(AFTERMATH_MS)
  for (const { close } of streams) close()
  for (const { expected, expression, problems, seen } of streams) {
    const met = problems.slice(0, PROBLEMS_SHOWN).join("; ")
    const what = `${kind} stream of ${JSON.stringify(expression)} (${met})`
    assert.deepStrictEqual(seen, expected, what)
  }
}

const csvSequences = (text: string): Array<number> => {
  const rows: Array<string> = []
  let row = ""
  let quoted = false
  for (const letter of text) {
    if (letter === '"') quoted = !quoted
    if (letter === "\n" && !quoted) {
      rows.push(row)
      row = ""
    } else {
      row += letter
    }
  }
  return rows.slice(1).map((line) => Number(line.slice(0, line.indexOf(","))))
}

const numbersOf = (events: ReadonlyArray<Json>): Array<number> =>
  events.map(({ sequence_number }) => sequence_number as number)

const countedBy = (events: ReadonlyArray<Json>, dimension: string): Map<string, number> => {
  const [part = "", name] = dimension.split("_")
  const counts = new Map<string, number>()
  for (const event of events) {
    const key = String(name === undefined ? event[part] : event[part][name])
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/** Follow `rel="next"` from the first keyset page to the last one. */
const keysetWalk = async (api: Client, query: string, order: string, size: number) => {
  const cursor = order === "asc" ? "after_sequence=0" : "before_sequence=1000000"
  const found: Array<number> = []
  let path: string | undefined = `/v1/events?${query}&order=${order}&page_size=${size}&${cursor}`
  while (path !== undefined) {
    const { body, headers } = await api.call(path)
    found.push(...numbersOf(body.events))
    path = /<([^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1]
  }
  return found
}

/** The sequence numbers of the events in a pack. */
const packedSequences = async (api: Client, query: string): Promise<Array<number>> => {
  const response = await fetch(`${api.url}/v1/export/evidence-pack?pdf=false&${query}`, {
    headers: { authorization: `Bearer ${api.key}` }
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  assert.strictEqual(response.status, 200, bytes.toString())
  const lines = new PackEditor(bytes).lines("events.ndjson")
  return numbersOf(lines.map((line) => JSON.parse(line) as Json))
}

/** Statements are asked one after the other: a tenant has two at once. */
let turn: Promise<unknown> = Promise.resolve()

/** The sequence numbers that a statement selects. */
const bySql = async (api: Client, query: string) => {
  const answer = turn.then(() => api.call("/v1/sql", { body: { query } }))
  turn = answer
  const { body, status, text } = await answer
  assert.strictEqual(status, 200, `${query}: ${text}`)
  return { sequences: numbersOf(body.data) }
}

/** The expression as a share link takes it; undefined if a value is in the name of a parameter. */
const linkInputOf = (expression: Expression): Json | undefined => {
  if (expression.some(([, value]) => value === "")) return undefined
  const bounds: Json = {}
  const filters = new Map<string, Array<string>>()
  for (const [name, value] of expression) {
    if (name === "from" || name === "to") bounds[name] = value
    else {
      const whole = /[!<>]$/.test(name) ? `${name}=` : name
      filters.set(whole, [...(filters.get(whole) ?? []), value])
    }
  }
  const all = [...filters].map(([name, values]) => [name, values.length > 1 ? values : values[0]])
  return { ...bounds, filters: Object.fromEntries(all) }
}

/** What the list has of the filters that a share link of the expression says it covers. */
const byLink = async (api: Client, expression: Expression) => {
  const input = linkInputOf(expression)
  if (input === undefined) return undefined
  const { body, status, text } = await api.call("/v1/share/links", { body: input })
  assert.strictEqual(status, 201, `${JSON.stringify(input)}: ${text}`)
  const removed = await api.call(`/v1/share/links/${body.id}`, { method: "DELETE" })
  assert.isBelow(removed.status, 300, removed.text)
  const { filters, from, to } = body
  const given = Object.entries({ from, to, ...filters }).filter(([, value]) => value != null)
  // The `=` of a sign ends the name in a query.
  const shown = given.map(([name, value]): Expression[number] => [
    name.replace(/(?<=[!<>])=$/, ""),
    String(value)
  ])
  const page = await api.call(`/v1/events?order=asc&page_size=1000&${queryOf(shown)}`)
  assert.strictEqual(page.status, 200, page.text)
  return { shown: JSON.stringify(body), sequences: numbersOf(page.body.events) }
}

/** Everything that is asked of one expression over stored events. */
const compareReads = async (
  api: Client,
  events: ReadonlyArray<Json>,
  expression: Expression,
  cases: Cases,
  isPacked: boolean
): Promise<void> => {
  const query = queryOf(expression)
  const where = JSON.stringify(expression)
  const order = cases.order()
  const { page, size } = cases.page()
  const dimension = cases.dimension()
  const ask = (more: string, accept = "application/json") =>
    api.call(`/v1/events?${query}${more}`, { headers: { accept } })
  if (isRefused(expression)) {
    for (const accept of ["application/json", "application/x-ndjson", "text/csv"]) {
      assert.strictEqual((await ask("", accept)).status, 400, where)
    }
    const isLimited = expression.some(([name]) => name === "limit")
    // The statistics have a parameter of that name.
    if (!isLimited) {
      assert.strictEqual((await api.call(`/v1/events/stats?${query}`)).status, 400, where)
    }
    return
  }
  const ascending = matching(events, expression)
  const expected = order === "asc" ? ascending : ascending.toReversed()
  const found = await ask(`&order=${order}&page=${page}&page_size=${size}`)
  assert.strictEqual(found.status, 200, `${where}: ${found.text}`)
  assert.strictEqual(found.body.total, expected.length, `total of ${where}`)
  assert.deepStrictEqual(
    numbersOf(found.body.events),
    expected.slice((page - 1) * size, page * size),
    `page ${page} of ${size} of ${where}`
  )
  const lines = (await ask(`&order=${order}`, "application/x-ndjson")).text
  const listed = lines
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Json)
  assert.deepStrictEqual(numbersOf(listed), expected, `lines of ${where}`)
  const table = (await ask(`&order=${order}`, "text/csv")).text
  assert.deepStrictEqual(csvSequences(table), expected, `table of ${where}`)
  const walked = await keysetWalk(api, query, order, Math.max(size, 10))
  assert.deepStrictEqual(walked, expected, `keysets of ${where}`)
  const { body: stats } = await api.call(
    `/v1/events/stats?${query}&group_by=${dimension}&limit=1000`
  )
  const facet = dimension.endsWith("_type") ? dimension : "action"
  const chosen = ascending.map((sequence) => events[sequence - 1]!)
  assert.strictEqual(stats.total, expected.length, `statistics of ${where}`)
  assert.deepStrictEqual(
    new Map(stats.groups.map(({ count, key }: Json) => [key, count])),
    countedBy(chosen, dimension),
    `${dimension} of ${where}`
  )
  if (!expression.some(([name]) => name === "limit")) {
    const { body } = await api.call(`/v1/events/facets?${query}&fields=outcome,${facet}&limit=100`)
    assert.strictEqual(body.total, expected.length, `facets of ${where}`)
    for (const { field, groups } of body.facets) {
      assert.deepStrictEqual(
        new Map(groups.map(({ count, key }: Json) => [key, count])),
        countedBy(chosen, field),
        `facet ${field} of ${where}`
      )
    }
  }
  const statement = statementOf(expression)
  if (statement !== undefined) {
    const { sequences } = await bySql(api, statement)
    assert.deepStrictEqual(sequences, ascending, `SQL of ${where}: ${statement}`)
  }
  if (isPacked) {
    assert.deepStrictEqual(await packedSequences(api, query), ascending, `pack of ${where}`)
    const link = await byLink(api, expression)
    if (link !== undefined) {
      assert.deepStrictEqual(link.sequences, ascending, `link of ${where}: ${link.shown}`)
    }
  }
}

export interface Round {
  readonly seed: number
  readonly events: number
  readonly expressions: number
  /** Expressions that are asked at once. */
  readonly concurrency: number
}

export interface Figures {
  readonly expressions: number
  readonly refused: number
  readonly matches: number
  readonly empty: number
  /** Expressions that were asked by SQL too. */
  readonly statements: number
}

/** One round on a tenant without events; throws where the program and the evaluator disagree. */
export const agree = async (api: Client, round: Round): Promise<Figures> => {
  const cases = new Cases(round.seed)
  const events = Array.from({ length: round.events }, (_, index) => cases.event(index))
  const expressions = Array.from({ length: round.expressions }, () => cases.expression(events))
  const expectedOf = (expression: Expression) =>
    isRefused(expression) ? [] : matching(events, expression)
  const open = async (after?: number): Promise<Array<OpenStream>> => {
    const streams: Array<OpenStream> = []
    for (const expression of expressions) {
      const stream = await follow(api, expression, after, expectedOf(expression))
      assert.strictEqual(stream === undefined, isRefused(expression), JSON.stringify(expression))
      if (stream !== undefined) streams.push(stream)
    }
    return streams
  }
  const live = await open()
  const sync = { headers: { "x-service-sync": "true" } }
  for (let sent = 0; sent < events.length; sent += 50) {
    const { body, text } = await api.batch(events.slice(sent, sent + 50), sync)
    assert.strictEqual(body.rejected, 0, text)
  }
  await compareStreams(live, "live")
  await compareStreams(await open(0), "resumed")
  const packed = new Set(
    expressions
      .filter((expression) => !isRefused(expression))
      .filter((_, at) => at % PACK_EVERY === 0)
  )
  const waiting = [...expressions]
  await Promise.all(
    Array.from({ length: round.concurrency }, async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        await compareReads(api, events, next, cases, packed.has(next))
      }
    })
  )
  const accepted = expressions.filter((expression) => !isRefused(expression))
  const counts = accepted.map((expression) => expectedOf(expression).length)
  return {
    expressions: expressions.length,
    refused: expressions.length - accepted.length,
    matches: counts.reduce((sum, count) => sum + count, 0),
    empty: counts.filter((count) => count === 0).length,
    statements: accepted.filter((expression) => statementOf(expression) !== undefined).length
  }
}
