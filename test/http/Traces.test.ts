/**
 * Executions, spans and trace events over HTTP: statuses, defaults, what is always present, and that
 * a repeated request changes nothing. What is refused as a whole stands in TraceRefusals.test.ts.
 */
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { DIFF_VALUES_MAX } from "../../src/http/traces/TraceContract.ts"
import { OTHER_KEY, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { type Call, TestApi } from "./support/TestApi.ts"

const EXECUTIONS = "/api/v1/executions"
const BATCH = "/api/v1/traces/batch"
const STARTED = "2026-11-21T10:00:00.123456Z"
const sync = { "x-service-sync": "true" }

describe("traces", () => {
  let api: TestApi
  beforeEach(async () => {
    api = await TestApi.start()
  })
  afterEach(() => api.stop())
  const post = (path: string, json?: unknown, call: Call = {}) =>
    api.call(path, {
      key: WRITE_KEY,
      method: "POST",
      ...(json === undefined ? {} : { json }),
      ...call
    })
  const put = (path: string, json?: unknown, call: Call = {}) =>
    api.call(path, {
      key: WRITE_KEY,
      method: "PUT",
      ...(json === undefined ? {} : { json }),
      ...call
    })
  const get = (path: string) => api.call(path, { key: READ_KEY })
  const lines = (path: string) =>
    api.call(path, { key: READ_KEY, headers: { accept: "application/x-ndjson" } })
  const parsedLines = (text: string) =>
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line))
  /** The target of the `next` link. */
  const nextOf = (headers: Readonly<Record<string, unknown>>): string | undefined =>
    /<([^>]+)>; rel="next"/.exec(String(headers["link"]))?.[1]
  /** Everything that is found by following the links of a list. */
  const pages = async (path: string, member: "events" | "spans", size: number) => {
    const found: Array<any> = []
    let next: string | undefined = `${path}?page_size=${size}`
    while (next !== undefined) {
      const { body, headers } = await get(next)
      assert.isAtMost(body[member].length, size)
      found.push(...body[member])
      next = nextOf(headers)
      assert.strictEqual(body.next_cursor !== undefined, next !== undefined)
    }
    return found
  }
  const start = async (json: object = {}) => {
    const answer = await post(EXECUTIONS, { agent_id: "agent", ...json })
    assert.include([200, 201], answer.status, answer.text)
    return answer.body
  }
  const span = async (execution: string, json: object = {}) => {
    const answer = await post(`${EXECUTIONS}/${execution}/spans`, {
      span_type: "TOOL_CALL",
      name: "search",
      ...json
    })
    assert.include([200, 201], answer.status, answer.text)
    return answer.body
  }

  describe("starting an execution", () => {
    it("answers 201 with what is always there, and the execution can be read at once", async () => {
      const before = new Date().toISOString()
      const answer = await post(EXECUTIONS, { agent_id: "agent" })
      assert.strictEqual(answer.status, 201, answer.text)
      const { created_at, id, root_span_id, started_at, ...rest } = answer.body
      assert.deepStrictEqual(rest, {
        agent_id: "agent",
        agent_name: "agent",
        status: "RUNNING",
        metadata: {},
        summary: { spans: 1, errors: 0, calls: 0 }
      })
      assert.match(id, /^[0-9a-f-]{14}7/)
      assert.match(root_span_id, /^[0-9a-f-]{14}8/)
      for (const time of [started_at, created_at]) {
        assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
        assert.isAtLeast(Date.parse(time), Date.parse(before) - 2)
      }
      const read = await get(`${EXECUTIONS}/${id}`)
      assert.strictEqual(read.status, 200)
      assert.strictEqual(read.text, answer.text)
      const root = await get(`/api/v1/spans/${root_span_id}`)
      assert.deepStrictEqual(root.body, {
        span: {
          id: root_span_id,
          execution_id: id,
          caused_by_span_ids: [],
          span_type: "AGENT",
          name: "agent",
          status: "RUNNING",
          started_at,
          metadata: {}
        },
        events: [],
        events_total: 0
      })
    })

    it("keeps everything that was sent, the start to the microsecond", async () => {
      const sent = {
        agent_name: "An agent",
        trigger: "ticket.created",
        metadata: { b: [1, { x: null }], a: "é", __proto__: 1 },
        started_at: "2026-11-21T12:00:00.1234569+02:00"
      }
      const execution = await start(sent)
      assert.strictEqual(execution.started_at, STARTED)
      assert.strictEqual(execution.agent_name, "An agent")
      assert.strictEqual(execution.trigger, "ticket.created")
      assert.deepStrictEqual(execution.metadata, sent.metadata)
      const { body } = await get(`${EXECUTIONS}/${execution.id}/spans`)
      assert.strictEqual(body.spans[0].name, "An agent")
      assert.strictEqual(body.spans[0].started_at, STARTED)
    })

    it("takes null for what is not there", async () => {
      const { agent_name, metadata, trigger } = await start({
        agent_name: null,
        trigger: null,
        metadata: null,
        idempotency_key: null,
        started_at: null,
        id: null
      })
      assert.deepStrictEqual(
        { agent_name, metadata, trigger },
        {
          agent_name: "agent",
          metadata: {},
          trigger: undefined
        }
      )
    })

    it("gives the stored execution to a retry with the same agent and key, and to no other", async () => {
      const first = await post(EXECUTIONS, {
        agent_id: "agent",
        idempotency_key: "run 1",
        trigger: "first",
        started_at: STARTED
      })
      assert.strictEqual(first.status, 201)
      const again = await post(EXECUTIONS, {
        agent_id: "agent",
        idempotency_key: "run 1",
        trigger: "second",
        metadata: { ignored: true }
      })
      assert.strictEqual(again.status, 200)
      assert.strictEqual(again.text, first.text)
      const same = await post(EXECUTIONS, {
        agent_id: "agent",
        idempotency_key: "run 1",
        started_at: "2026-11-21T10:00:00.1234564Z"
      })
      assert.strictEqual(same.text, first.text)
      const conflict = await post(EXECUTIONS, {
        agent_id: "agent",
        idempotency_key: "run 1",
        started_at: "2026-11-21T10:00:00.123457Z"
      })
      assert.strictEqual(conflict.status, 409)
      assert.strictEqual(conflict.body.code, "idempotency_conflict")
      assert.strictEqual(conflict.body.field, "started_at")
      assert.isString(conflict.body.error)
      const others = [
        await start({ agent_id: "agent 2", idempotency_key: "run 1" }),
        await start({ idempotency_key: "run 2" }),
        (
          await post(
            EXECUTIONS,
            { agent_id: "agent", idempotency_key: "run 1" },
            { key: OTHER_KEY }
          )
        ).body
      ]
      assert.strictEqual(new Set([first.body.id, ...others.map(({ id }) => id)]).size, 4)
    })

    it("takes an id of the client's own", async () => {
      const first = await post(EXECUTIONS, { agent_id: "agent", id: "run/1 ü" })
      assert.strictEqual(first.status, 201)
      assert.strictEqual(first.body.id, "run/1 ü")
      const read = await get(`${EXECUTIONS}/${encodeURIComponent("run/1 ü")}`)
      assert.strictEqual(read.text, first.text)
      assert.strictEqual((await post(EXECUTIONS, { agent_id: "agent", id: "run/1 ü" })).status, 200)
    })
  })

  describe("ending an execution", () => {
    it("completes it without a body, and its running spans with it", async () => {
      const { id, root_span_id, started_at } = await start()
      const open = await span(id)
      const done = await span(id)
      const early = await put(`/api/v1/spans/${done.id}/end`, { status: "FAILED" })
      const answer = await put(`${EXECUTIONS}/${id}/end`)
      assert.strictEqual(answer.status, 200, answer.text)
      assert.strictEqual(answer.body.status, "COMPLETED")
      assert.isAtLeast(answer.body.ended_at.localeCompare(started_at), 0)
      const { body } = await get(`${EXECUTIONS}/${id}/spans`)
      assert.deepStrictEqual(
        body.spans.map(({ ended_at, id, status }: any) => [id, status, ended_at]),
        [
          [root_span_id, "COMPLETED", answer.body.ended_at],
          [open.id, "COMPLETED", answer.body.ended_at],
          [done.id, "FAILED", early.body.ended_at]
        ]
      )
    })

    it("keeps the first end, whatever comes after", async () => {
      const { id } = await start({ started_at: STARTED, metadata: { a: 1, b: 1 } })
      const end = {
        status: "CANCELLED",
        ended_at: "2026-11-21T10:00:09Z",
        metadata: { b: 2, c: 3 }
      }
      const first = await put(`${EXECUTIONS}/${id}/end`, end)
      assert.strictEqual(first.body.ended_at, "2026-11-21T10:00:09.000000Z")
      assert.deepStrictEqual(first.body.metadata, { a: 1, b: 2, c: 3 })
      const again = await put(`${EXECUTIONS}/${id}/end`, {
        ...end,
        ended_at: "2026-11-22T10:00:09Z"
      })
      assert.strictEqual(again.status, 200)
      assert.strictEqual(again.text, first.text)
      for (const status of ["COMPLETED", "FAILED"]) {
        const other = await put(`${EXECUTIONS}/${id}/end`, { status })
        assert.strictEqual(other.status, 409)
        assert.strictEqual(other.body.code, "already_ended")
      }
      assert.strictEqual((await get(`${EXECUTIONS}/${id}`)).text, first.text)
      const late = await post(`${EXECUTIONS}/${id}/spans`, { span_type: "A", name: "late" })
      assert.strictEqual(late.body.code, "already_ended")
    })

    it("lets one of 20 ends with different statuses win", async () => {
      const { id } = await start()
      const statuses = Array.from(
        { length: 20 },
        (_, n) => ["COMPLETED", "FAILED", "CANCELLED"][n % 3]!
      )
      const answers = await Promise.all(
        statuses.map((status) => put(`${EXECUTIONS}/${id}/end`, { status }))
      )
      const { body } = await get(`${EXECUTIONS}/${id}`)
      answers.forEach((answer, at) => {
        assert.strictEqual(answer.status, statuses[at] === body.status ? 200 : 409)
        if (answer.status === 200) assert.deepStrictEqual(answer.body, body)
      })
    })

    it("refuses an end before a start that the client gave, not before one that it did not", async () => {
      const given = await start({ started_at: STARTED })
      const before = { ended_at: "2026-11-21T10:00:00.123455Z" }
      const refused = await put(`${EXECUTIONS}/${given.id}/end`, before)
      assert.strictEqual(refused.status, 400, refused.text)
      assert.strictEqual(refused.body.code, "invalid_request")
      assert.strictEqual(refused.body.field, "ended_at")
      const made = await start()
      const kept = await put(`${EXECUTIONS}/${made.id}/end`, before)
      assert.strictEqual(kept.status, 200)
      assert.strictEqual(kept.body.ended_at, before.ended_at)
    })
  })

  describe("listing executions", () => {
    it("pages by start, newest first, with exact totals and links", async () => {
      const ids: Array<string> = []
      for (let n = 0; n < 7; n++) {
        const started_at = `2026-11-21T10:00:0${n}Z`
        const agent_id = n % 2 === 0 ? "even" : "odd"
        const { id } = await start({ agent_id, started_at })
        ids.unshift(id)
        if (n < 3) await put(`${EXECUTIONS}/${id}/end`, { status: "FAILED" })
      }
      const first = await get(`${EXECUTIONS}?page_size=3`)
      assert.strictEqual(first.status, 200)
      assert.deepStrictEqual(
        { ...first.body, executions: first.body.executions.map(({ id }: any) => id) },
        { executions: ids.slice(0, 3), total: 7, page: 1, page_size: 3 }
      )
      assert.include(first.headers["link"], 'page=2>; rel="next"')
      assert.include(first.headers["link"], 'page=3>; rel="last"')
      const last = await get(`${EXECUTIONS}?page_size=3&page=3`)
      assert.deepStrictEqual(
        last.body.executions.map(({ id }: any) => id),
        ids.slice(6)
      )
      const past = await get(`${EXECUTIONS}?page_size=3&page=4`)
      assert.deepStrictEqual([past.status, past.body.executions, past.body.total], [200, [], 7])
      const totals = async (query: string) => (await get(`${EXECUTIONS}?${query}`)).body.total
      assert.strictEqual(await totals("status=FAILED"), 3)
      assert.strictEqual(await totals("status=RUNNING&agent_id=odd"), 2)
      assert.strictEqual(await totals("agent_id=Odd"), 0)
      const bounds = "from=2026-11-21T10:00:02Z&to=2026-11-21T10:00:04Z"
      assert.strictEqual(await totals(bounds), 3)
      const relative = await get(`${EXECUTIONS}?from=-2500w&to=2100-01-01&page_size=3`)
      assert.strictEqual(relative.body.total, 7)
      assert.match(
        String(relative.headers["link"]),
        /\?from=\d{4}-\d\d-\d\dT[^&]+Z&to=2100-01-01&page_size=3&page=2>; rel="next"/
      )
    })

    it("filters by errors and duration, and sorts by either, with totals and links", async () => {
      const names = new Map<string, string>()
      const made = async (name: string, seconds: number | undefined, failed: number) => {
        const started_at = "2026-11-21T10:00:00Z"
        const { id } = await start({ agent_id: name, started_at })
        names.set(id, name)
        for (let n = 0; n < failed; n++) {
          const span = await post(`${EXECUTIONS}/${id}/spans`, {
            span_type: "TOOL_CALL",
            name: "s"
          })
          await put(`/api/v1/spans/${span.body.id}/end`, { status: "FAILED" })
        }
        if (seconds === undefined) return
        const ended_at = `2026-11-21T10:00:0${seconds}.500Z`
        await put(`${EXECUTIONS}/${id}/end`, { status: "COMPLETED", ended_at })
      }
      await made("slow", 5, 0)
      await made("quick", 1, 2)
      await made("running", undefined, 1)
      const listed = async (query: string) => {
        const { body, status, text } = await get(`${EXECUTIONS}?${query}`)
        assert.strictEqual(status, 200, text)
        assert.strictEqual(body.total, body.executions.length)
        return body.executions.map(({ id }: any) => names.get(id))
      }
      assert.sameMembers(await listed("has_error=true"), ["quick", "running"])
      assert.deepStrictEqual(await listed("has_error=false"), ["slow"])
      assert.deepStrictEqual(await listed("sort=duration"), ["slow", "quick", "running"])
      assert.deepStrictEqual(await listed("sort=duration&order=asc"), ["quick", "slow", "running"])
      assert.deepStrictEqual(await listed("sort=errors"), ["quick", "running", "slow"])
      assert.deepStrictEqual(await listed("min_duration_ms=5500"), ["slow"])
      assert.deepStrictEqual(await listed("min_duration_ms=5501"), [])
      assert.sameMembers(await listed("min_duration_ms=0"), ["slow", "quick"])
      const page = await get(`${EXECUTIONS}?sort=errors&has_error=true&page_size=1`)
      assert.strictEqual(page.body.total, 2)
      assert.match(String(page.headers["link"]), /sort=errors&has_error=true&page_size=1&page=2>/)
    })

    it("adds up what its spans say, and filters and sorts by it", async () => {
      const run = async (id: string, name: string, said: object, ...calls: Array<object>) => {
        const attributes = { "session.id": `chat-${id}`, "user.id": "u_1", ...said }
        await start({ id, agent_id: "agent", agent_name: name, metadata: { attributes } })
        for (const metadata of calls) {
          await post(`${EXECUTIONS}/${id}/spans`, { span_type: "LLM_CALL", name: "ask", metadata })
        }
        // An agent repeats what its calls have said; of one that tells of no calls it counts.
        const metadata = { "gen_ai.usage.input_tokens": 1_000_000 }
        await post(`${EXECUTIONS}/${id}/spans`, { span_type: "AGENT", name: "agent", metadata })
      }
      const call = (model: string, input: number, output: number, cost?: number) => ({
        "gen_ai.response.model": model,
        attributes: {
          "gen_ai.usage.input_tokens": input,
          "gen_ai.usage.output_tokens": output,
          ...(cost === undefined ? {} : { "gen_ai.usage.cost": cost })
        }
      })
      await run("small", "Helper", {}, call("gpt-4.1-mini", 10, 2, 0.5))
      await run("large", "Helper, the second", {}, call("gpt-4.1", 600, 30), call("claude", 70, 0))
      await run("none", "Other", { "user.id": "u_2" })
      assert.deepStrictEqual((await get(`${EXECUTIONS}/large`)).body.summary, {
        spans: 4,
        errors: 0,
        calls: 2,
        input_tokens: 670,
        output_tokens: 30,
        models: ["claude", "gpt-4.1"],
        session_id: "chat-large",
        user_id: "u_1"
      })
      assert.deepStrictEqual((await get(`${EXECUTIONS}/none`)).body.summary, {
        spans: 2,
        errors: 0,
        calls: 0,
        input_tokens: 1_000_000,
        session_id: "chat-none",
        user_id: "u_2"
      })
      const listed = async (query: string) => {
        const { body, status, text } = await get(`${EXECUTIONS}?${query}`)
        assert.strictEqual(status, 200, text)
        return body.executions.map(({ id }: any) => id)
      }
      assert.sameMembers(await listed("model=gpt-4*"), ["small", "large"])
      assert.sameMembers(await listed("model=gpt-4.1,claude"), ["large"])
      assert.sameMembers(await listed("model=*"), ["small", "large"])
      assert.sameMembers(await listed("session_id=chat-small&session_id=chat-none"), [
        "small",
        "none"
      ])
      assert.sameMembers(await listed("user_id=u_2"), ["none"])
      assert.sameMembers(await listed("name=Helper"), ["small"])
      assert.sameMembers(await listed("name=Helper\\,*"), ["large"])
      assert.sameMembers(await listed("name=help*"), [])
      assert.sameMembers(await listed("min_tokens=12"), ["small", "large", "none"])
      assert.sameMembers(await listed("min_tokens=13"), ["large", "none"])
      assert.deepStrictEqual(await listed("sort=tokens"), ["none", "large", "small"])
      assert.deepStrictEqual(await listed("sort=cost&order=asc"), ["small", "large", "none"])
      assert.sameMembers(await listed("status=RUNNING,FAILED&from=-1h&to=now"), [
        "small",
        "large",
        "none"
      ])
      assert.sameMembers(await listed("status=FAILED&status=COMPLETED"), [])
    })

    it("refuses what a filter or an order can't be, and says what it can", async () => {
      const refusals: ReadonlyArray<readonly [string, string]> = [
        ["has_error=1", 'has_error: must be true or false, not "1"'],
        ["min_duration_ms=-1", "min_duration_ms: must be an integer from 0 to"],
        ["min_duration_ms=1.5s", "min_duration_ms: must be an integer from 0 to"],
        ["sort=size", "sort: must be one of started_at, duration, errors, tokens, cost, not"],
        [
          "status=FAILED,DONE",
          'RUNNING, COMPLETED, FAILED, CANCELLED, with commas between; not "DONE"'
        ],
        ["status=FAILED,", 'with commas between; not ""'],
        ["agent_id=a,,b", "agent_id: has an empty value"],
        ["model=g*4", "model: may have * only at the end of a value"],
        ["min_tokens=1k", "min_tokens: must be an integer from 0"],
        ["from=yesterday", "from: must be an RFC 3339 date-time"],
        ["order=down", 'order: must be one of asc, desc, not "down"'],
        ["has_eror=true", "did you mean has_error"]
      ]
      for (const [query, expected] of refusals) {
        const { body, status } = await get(`${EXECUTIONS}?${query}`)
        assert.strictEqual(status, 400)
        assert.include(body.error, expected)
      }
    })

    it("gives a large page in pieces, the same as in one", async () => {
      for (let n = 0; n < 5; n++) await start({ metadata: { n } })
      const small = await get(EXECUTIONS)
      api.world.traces.pageIsLarge = true
      const large = await get(EXECUTIONS)
      assert.strictEqual(large.text, small.text)
      assert.strictEqual(large.headers["content-type"], small.headers["content-type"])
      assert.strictEqual(large.headers["link"], small.headers["link"])
      assert.strictEqual((await get(`${EXECUTIONS}?page=9`)).body.executions.length, 0)
    })
  })

  describe("summaries of spans", () => {
    const attributes = {
      "gen_ai.response.model": "gpt-5",
      "gen_ai.usage.input_tokens": 12,
      "gen_ai.conversation.id": "conv",
      "user.id": "alice"
    }
    const summary = { model: "gpt-5", input_tokens: 12, session_id: "conv", user_id: "alice" }

    it("are in every answer with spans, and gone with what they were taken from", async () => {
      const { id } = await start()
      const made = await span(id, { span_type: "LLM_CALL", name: "ask", metadata: { attributes } })
      assert.deepStrictEqual(made.summary, summary)
      const plain = await span(id)
      assert.notProperty(plain, "summary")
      const all = `${EXECUTIONS}/${id}/spans`
      const shown = async () => {
        const list = (await get(all)).body.spans
        const streamed = (await lines(all)).text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
        const one = await get(`/api/v1/spans/${made.id}`)
        const ofAsking = (spans: ReadonlyArray<any>) => spans.find((one) => one.id === made.id)
        return [ofAsking(list), ofAsking(streamed), one.body.span].map((found) => found.summary)
      }
      assert.deepStrictEqual(await shown(), [summary, summary, summary])
      const ended = await put(`/api/v1/spans/${made.id}/end`, {
        metadata: { "gen_ai.usage.output_tokens": 3 }
      })
      assert.deepStrictEqual(ended.body.summary, { ...summary, output_tokens: 3 })
      await post(`${EXECUTIONS}/${id}/erase`, { reason: "asked for" })
      assert.deepStrictEqual(await shown(), [undefined, undefined, undefined])
    })

    it("leave the graph and its digest as they are", async () => {
      const started_at = "2026-11-21T10:00:00Z"
      const graphOf = async (metadata: object) => {
        const { id } = await start({ started_at })
        await span(id, { id: `s-${id}`, name: "ask", started_at, metadata })
        const { body } = await get(`${EXECUTIONS}/${id}/dag`)
        return Object.keys(body.nodes[1])
      }
      assert.deepStrictEqual(await graphOf({ attributes }), await graphOf({}))
    })
  })

  describe("spans", () => {
    it("are below the root unless said otherwise, and always say the same fields", async () => {
      const { id, root_span_id } = await start()
      const child = await post(`${EXECUTIONS}/${id}/spans`, { span_type: "LLM_CALL", name: "ask" })
      assert.strictEqual(child.status, 201, child.text)
      const { started_at, ...rest } = child.body
      assert.match(started_at, /Z$/)
      assert.deepStrictEqual(rest, {
        id: child.body.id,
        execution_id: id,
        parent_span_id: root_span_id,
        caused_by_span_ids: [],
        span_type: "LLM_CALL",
        name: "ask",
        status: "RUNNING",
        metadata: {}
      })
      const second = await span(id, {
        id: "mine",
        parent_span_id: child.body.id,
        caused_by_span_ids: [child.body.id, root_span_id],
        span_type: "MY_OWN_TYPE2",
        metadata: { k: 1 }
      })
      assert.strictEqual(second.parent_span_id, child.body.id)
      assert.deepStrictEqual(second.caused_by_span_ids, [child.body.id, root_span_id])
      assert.strictEqual(second.span_type, "MY_OWN_TYPE2")
    })

    it("are told apart by id or key: the same again is 200, another under the id 409", async () => {
      const { id } = await start()
      const spans = `${EXECUTIONS}/${id}/spans`
      for (const name of ["id", "idempotency_key"]) {
        const json = { [name]: `own ${name}`, span_type: "A", name: "n", started_at: STARTED }
        const first = await post(spans, json)
        const again = await post(spans, json)
        assert.deepStrictEqual([first.status, again.status], [201, 200], again.text)
        assert.strictEqual(again.text, first.text)
        const other = await post(spans, { ...json, name: "another" })
        assert.strictEqual(other.status, 409)
        assert.strictEqual(other.body.code, "id_conflict")
        assert.strictEqual(other.body.field, "id")
      }
      const elsewhere = await start()
      const taken = await post(`${EXECUTIONS}/${elsewhere.id}/spans`, {
        id: "own id",
        span_type: "A",
        name: "n",
        started_at: STARTED
      })
      assert.strictEqual(taken.body.code, "id_conflict")
    })

    it("end once, with an error and more metadata", async () => {
      const { id } = await start()
      const { id: spanId } = await span(id, { started_at: STARTED, metadata: { a: 1 } })
      const path = `/api/v1/spans/${spanId}/end`
      const end = {
        status: "FAILED",
        ended_at: "2026-11-21T10:00:01Z",
        error: { type: "timeout", after_ms: 30 },
        metadata: { b: 2 }
      }
      const first = await put(path, end)
      assert.strictEqual(first.status, 200, first.text)
      assert.deepInclude(first.body, {
        status: "FAILED",
        ended_at: "2026-11-21T10:00:01.000000Z",
        error: end.error,
        metadata: { a: 1, b: 2 }
      })
      assert.strictEqual((await put(path, { status: "FAILED" })).text, first.text)
      assert.strictEqual((await put(path)).status, 409)
      const text = await span(id)
      const failed = await put(`/api/v1/spans/${text.id}/end`, { status: "FAILED", error: "boom" })
      assert.strictEqual(failed.body.error, "boom")
    })

    it("are listed by start, the root first among equals", async () => {
      const { id, root_span_id } = await start({ started_at: STARTED })
      const late = await span(id, { started_at: "2026-11-21T10:00:02Z" })
      const early = await span(id, { started_at: "2026-11-21T10:00:01Z" })
      const equal = await span(id, { id: "0", started_at: STARTED })
      const { body } = await get(`${EXECUTIONS}/${id}/spans`)
      assert.deepStrictEqual(
        body.spans.map(({ id }: any) => id),
        [root_span_id, equal.id, early.id, late.id]
      )
    })

    it("come in pages by cursor, whole and in order, and as lines", async () => {
      const { id, root_span_id } = await start({ started_at: STARTED })
      const ids = [root_span_id]
      for (let n = 0; n < 6; n++) {
        const started_at = n % 2 === 0 ? STARTED : "2026-11-21T10:00:01Z"
        ids.push((await span(id, { id: `s${n}`, started_at })).id)
      }
      const whole = await get(`${EXECUTIONS}/${id}/spans`)
      const expected = [root_span_id, "s0", "s2", "s4", "s1", "s3", "s5"]
      assert.deepStrictEqual(
        whole.body.spans.map(({ id }: any) => id),
        expected
      )
      assert.isUndefined(whole.body.next_cursor)
      assert.isUndefined(nextOf(whole.headers))
      for (const size of [1, 3, 7]) {
        const found = await pages(`${EXECUTIONS}/${id}/spans`, "spans", size)
        assert.deepStrictEqual(found, whole.body.spans)
      }
      const all = await lines(`${EXECUTIONS}/${id}/spans`)
      assert.strictEqual(all.headers["content-type"], "application/x-ndjson")
      assert.deepStrictEqual(parsedLines(all.text), whole.body.spans)
      const { body } = await get(`${EXECUTIONS}/${id}/spans?page_size=2`)
      const rest = await lines(`${EXECUTIONS}/${id}/spans?cursor=${body.next_cursor}`)
      assert.deepStrictEqual(parsedLines(rest.text), whole.body.spans.slice(2))
      assert.strictEqual((await lines(`${EXECUTIONS}/none/spans`)).status, 404)
    })

    it("refuse cursors that are none of theirs, and sizes out of bounds", async () => {
      const { id, root_span_id } = await start()
      for (let n = 0; n < 2; n++) {
        await post(`/api/v1/spans/${root_span_id}/events`, { event_type: "a" })
      }
      const events = `/api/v1/spans/${root_span_id}/events`
      const { body } = await get(`${events}?page_size=1`)
      assert.isString(body.next_cursor)
      for (const [path, field] of [
        [`${EXECUTIONS}/${id}/spans?cursor=${body.next_cursor}`, "cursor"],
        [`${events}?cursor=bm9uZQ`, "cursor"],
        [`${events}?cursor=`, "cursor"],
        [`${events}?page_size=0`, "page_size"],
        [`${events}?page_size=10001`, "page_size"],
        [`${EXECUTIONS}/${id}/spans?page_size=x`, "page_size"]
      ] as const) {
        const answer = await get(path)
        assert.deepStrictEqual([answer.status, answer.body.field], [400, field], path)
        assert.strictEqual((await lines(path)).status, 400)
      }
    })

    it("are too many for one graph beyond a limit, and the refusal says how to go on", async () => {
      const { id } = await start()
      await span(id)
      api.world.traces.spansClaimed = 10_001
      const refused = await get(`${EXECUTIONS}/${id}/dag`)
      assert.strictEqual(refused.status, 413)
      assert.strictEqual(refused.body.code, "payload_too_large")
      assert.match(refused.body.error, /10001 spans.*executions\/\{id\}\/spans/)
      api.world.traces.spansClaimed = 10_000
      assert.strictEqual((await get(`${EXECUTIONS}/${id}/dag`)).status, 200)
    })

    it("form a graph with parents, causes and counts", async () => {
      const { id, root_span_id } = await start({ started_at: STARTED })
      const first = await span(id, { id: "first" })
      await span(id, { id: "second", caused_by_span_ids: ["first"] })
      await post("/api/v1/spans/second/events", { event_type: "tool.request" })
      const { body, status } = await get(`${EXECUTIONS}/${id}/dag`)
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(
        body.nodes.map(({ depth, event_count, id }: any) => [id, depth, event_count]),
        [
          [root_span_id, 0, 0],
          ["first", 1, 0],
          ["second", 1, 1]
        ]
      )
      assert.sameDeepMembers(
        body.edges.map(({ source, target, type }: any) => [source, target, type]),
        [
          [root_span_id, first.id, "parent"],
          [root_span_id, "second", "parent"],
          ["first", "second", "caused_by"]
        ]
      )
      assert.match(body.digest, /^[0-9a-f]{64}$/)
      assert.deepStrictEqual(body.latest_end_path, [root_span_id, "first", "second"])
      const { from, span_id, to } = body.critical_path[0]
      assert.deepStrictEqual([from, to >= from], [STARTED, true])
      assert.include([root_span_id, "first", "second"], span_id)
    })

    it("are compared with those of another execution", async () => {
      const usage = (tokens: number) => ({ "gen_ai.usage.input_tokens": tokens })
      const run = async (id: string, tokens: number, names: ReadonlyArray<string>) => {
        await start({ id, started_at: "2026-11-21T10:00:00.000000Z" })
        for (const [n, name] of names.entries()) {
          const metadata = usage(tokens + n)
          await span(id, { id: `${id}-${n}`, span_type: "LLM_CALL", name, metadata })
        }
        await put(`${EXECUTIONS}/${id}/end`, { ended_at: "2026-11-21T10:00:05.000000Z" })
      }
      await run("before", 5, ["plan", "draft", "check"])
      await run("after", 5, ["plan", "draft"])
      await run("dearer", 6, ["plan", "draft"])
      const changes = ({ spans }: any) =>
        spans.map(({ a, b, change }: any) => [change, a?.span_id, b?.span_id])
      const shorter = await get(`${EXECUTIONS}/before/diff/after`)
      assert.deepStrictEqual(shorter.body.counts, { same: 3, changed: 0, added: 0, removed: 1 })
      assert.deepStrictEqual(changes(shorter.body), [["removed", "before-2", undefined]])
      assert.deepStrictEqual(
        [shorter.body.a.input_tokens, shorter.body.b.input_tokens, shorter.body.b.calls],
        [18, 11, 2]
      )
      assert.strictEqual(shorter.body.a.duration_us, 5_000_000)
      const all = await get(`${EXECUTIONS}/before/diff/after?all=true`)
      assert.strictEqual(all.body.spans.length, 4)
      const dearer = await get(`${EXECUTIONS}/after/diff/dearer?limit=1`)
      assert.deepStrictEqual(changes(dearer.body), [["changed", "after-0", "dearer-0"]])
      assert.deepStrictEqual(dearer.body.spans[0].differences, [
        { field: "metadata.gen_ai.usage.input_tokens", a: "5", b: "6" }
      ])
      assert.strictEqual(dearer.body.spans_omitted, 1)
    })

    it("are compared without metadata where that holds too many values", async () => {
      const { id } = await start()
      const metadata = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`k${n}`, n]))
      const diff = async () => (await get(`${EXECUTIONS}/${id}/diff/${id}`)).body
      for (let n = 0; n < DIFF_VALUES_MAX / 2_000; n++) await span(id, { metadata })
      assert.notProperty(await diff(), "metadata_incomplete")
      await span(id, { metadata })
      assert.isTrue((await diff()).metadata_incomplete)
    })

    it("are compared with those of an execution that there is, and not with too many", async () => {
      const { id } = await start()
      assert.strictEqual((await get(`${EXECUTIONS}/${id}/diff/none`)).status, 404)
      assert.strictEqual((await get(`${EXECUTIONS}/none/diff/${id}`)).status, 404)
      const refused = await get(`${EXECUTIONS}/${id}/diff/${id}?limit=0`)
      assert.deepStrictEqual([refused.status, refused.body.field], [400, "limit"])
      await span(id)
      api.world.traces.spansClaimed = 10_001
      const large = await get(`${EXECUTIONS}/${id}/diff/${id}`)
      assert.deepStrictEqual([large.status, large.body.code], [413, "payload_too_large"])
      assert.include(large.body.error, id)
    })

    describe("of which a model has asked for one", () => {
      const second = (n: number) => `2026-11-21T10:00:0${n}.000000Z`
      const run = async () => {
        const execution = await start({ id: "run", started_at: second(0) })
        for (const [id, span_type, n, metadata] of [
          ["ask", "LLM_CALL", 1, { tool_calls: [{ id: "c" }], "gen_ai.usage.input_tokens": 5 }],
          ["call", "TOOL_CALL", 3, { tool_call_id: "c" }],
          ["again", "LLM_CALL", 5, { tool_results: ["c"], "gen_ai.usage.input_tokens": 7 }],
          ["tell", "CUSTOM", 7, {}]
        ] as const) {
          await span("run", { id, span_type, name: span_type, started_at: second(n), metadata })
          const status = id === "call" ? "FAILED" : "COMPLETED"
          await put(`/api/v1/spans/${id}/end`, { ended_at: second(n + 1), status })
        }
        await put(`${EXECUTIONS}/run/end`, { ended_at: second(9) })
        return execution.root_span_id as string
      }

      it("are joined by inferred edges, outside of the digest, unless only the recorded are asked for", async () => {
        await run()
        const given = await get(`${EXECUTIONS}/run/dag`)
        assert.deepStrictEqual(given.body.inferred_edges, [
          {
            id: "inferred:ask:call",
            source: "ask",
            target: "call",
            type: "inferred",
            rule: "tool_call"
          },
          {
            id: "inferred:call:again",
            source: "call",
            target: "again",
            type: "inferred",
            rule: "tool_result"
          },
          {
            id: "inferred:again:tell",
            source: "again",
            target: "tell",
            type: "inferred",
            rule: "timing"
          }
        ])
        const both = await get(`${EXECUTIONS}/run/dag?edges=inferred`)
        assert.strictEqual(both.text, given.text)
        const recorded = await get(`${EXECUTIONS}/run/dag?edges=recorded`)
        const { inferred_edges: _inferred, ...rest } = given.body
        assert.deepStrictEqual(recorded.body, rest)
        for (const path of ["dag", "dag/aggregated"]) {
          const refused = await get(`${EXECUTIONS}/run/${path}?edges=all`)
          assert.deepStrictEqual([refused.status, refused.body.field], [400, "edges"])
          assert.match(refused.body.error, /^edges: must be one of recorded, inferred, not "all"$/)
          const misspelt = await get(`${EXECUTIONS}/run/${path}?edge=recorded`)
          assert.match(misspelt.body.error, /edges/)
        }
      })

      it("are on the critical path, without gaps from the start of the root to its end", async () => {
        const root = await run()
        const { body } = await get(`${EXECUTIONS}/run/dag`)
        const sections = body.critical_path.map(({ from, span_id, to }: any) => [span_id, from, to])
        const spans = [root, "ask", root, "call", root, "again", root, "tell", root]
        assert.deepStrictEqual(
          sections,
          spans.map((id, n) => [id, second(n), second(n + 1)])
        )
      })

      it("are folded by name and type, with counts, errors, durations and tokens", async () => {
        const root = await run()
        const { body, status } = await get(`${EXECUTIONS}/run/dag/aggregated`)
        assert.strictEqual(status, 200)
        assert.strictEqual(body.span_count, 5)
        assert.strictEqual(body.nodes.length, 4)
        assert.deepStrictEqual(body.nodes[1], {
          id: "ask",
          parent_id: root,
          name: "LLM_CALL",
          type: "LLM_CALL",
          depth: 1,
          count: 2,
          errors: 0,
          running: 0,
          event_count: 0,
          total_duration_us: 2_000_000,
          mean_duration_us: 1_000_000,
          max_duration_us: 1_000_000,
          input_tokens: 12
        })
        assert.strictEqual(body.nodes[2].errors, 1)
        const edges = body.edges.map(({ count, rule, source, target, type }: any) =>
          [source, target, rule ?? type, count].join(" ")
        )
        assert.sameMembers(edges, [
          `${root} ask parent 2`,
          `${root} call parent 1`,
          `${root} tell parent 1`,
          "ask call tool_call 1",
          "call ask tool_result 1",
          "ask tell timing 1"
        ])
        const recorded = await get(`${EXECUTIONS}/run/dag/aggregated?edges=recorded`)
        assert.deepStrictEqual(recorded.body.nodes, body.nodes)
        assert.lengthOf(recorded.body.edges, 3)
        assert.strictEqual((await get(`${EXECUTIONS}/nothing/dag/aggregated`)).status, 404)
        api.world.traces.spansClaimed = 10_001
        assert.strictEqual((await get(`${EXECUTIONS}/run/dag/aggregated`)).status, 413)
      })

      it("lose what metadata told of when they are erased, and keep their times", async () => {
        await run()
        await post(`${EXECUTIONS}/run/erase`, { reason: "asked for" })
        const { body } = await get(`${EXECUTIONS}/run/dag`)
        const rules = body.inferred_edges.map(({ rule }: any) => rule)
        assert.deepStrictEqual(rules, ["timing", "timing", "timing"])
        const folded = await get(`${EXECUTIONS}/run/dag/aggregated`)
        assert.isTrue(folded.body.nodes.every((node: any) => node.input_tokens === undefined))
      })
    })

    it("make no graph of ids that are too long together", async () => {
      const { id } = await start()
      const idOf = (n: number) => `${n}`.padEnd(256, "\u6f22")
      const operations = Array.from({ length: 800 }, (_, n) => ({
        op: "span.start",
        execution_id: id,
        id: idOf(n),
        span_type: "TOOL_CALL",
        name: "t",
        caused_by_span_ids: [0, 1, 2, 3].filter((cause) => cause < n).map(idOf)
      }))
      for (let n = 0; n < operations.length; n += 200) {
        const some = operations.slice(n, n + 200)
        const answer = await post(BATCH, some, { headers: sync })
        assert.strictEqual(answer.body.accepted, some.length, answer.text)
      }
      for (const path of ["dag", "dag/aggregated"]) {
        const { body, status } = await get(`${EXECUTIONS}/${id}/${path}`)
        assert.strictEqual(status, 413)
        assert.include(body.error, "names, errors and ids")
      }
    })

    it("tell of more than a graph looks at, which the answer says", async () => {
      const { id } = await start()
      const metadata = { tool_calls: ["x".repeat(30_000)] }
      const operations = Array.from({ length: 290 }, (_, n) => ({
        op: "span.start",
        execution_id: id,
        id: `s${n}`,
        span_type: "LLM_CALL",
        name: "ask",
        metadata
      }))
      for (let n = 0; n < operations.length; n += 29) {
        const some = operations.slice(n, n + 29)
        const answer = await post(BATCH, { operations: some }, { headers: sync })
        assert.strictEqual(answer.body.accepted, 29, answer.text)
      }
      for (const path of ["dag", "dag/aggregated"]) {
        const { body, status } = await get(`${EXECUTIONS}/${id}/${path}`)
        assert.deepStrictEqual([status, body.inferred_incomplete], [200, true])
      }
      const recorded = await get(`${EXECUTIONS}/${id}/dag?edges=recorded`)
      assert.deepStrictEqual([recorded.status, recorded.body.inferred_incomplete], [200, undefined])
    })
  })

  describe("trace events", () => {
    it("are numbered per execution in the order of arrival", async () => {
      const { id } = await start()
      const one = await span(id)
      const two = await span(id)
      const numbers: Array<number> = []
      for (const { id: spanId } of [one, two, one]) {
        const answer = await post(`/api/v1/spans/${spanId}/events`, {
          event_type: "tool.request",
          payload: { n: numbers.length }
        })
        assert.strictEqual(answer.status, 201, answer.text)
        assert.deepInclude(answer.body, {
          execution_id: id,
          span_id: spanId,
          event_type: "tool.request",
          payload: { n: numbers.length }
        })
        numbers.push(answer.body.sequence_number)
      }
      assert.deepStrictEqual(numbers, [1, 2, 3])
      const events = await get(`/api/v1/spans/${one.id}/events`)
      assert.deepStrictEqual(
        events.body.events.map(({ sequence_number }: any) => sequence_number),
        [1, 3]
      )
      const whole = await get(`/api/v1/spans/${one.id}`)
      assert.deepStrictEqual(whole.body.events, events.body.events)
      assert.strictEqual(whole.body.events_total, 2)
    })

    it("come in pages by cursor, whole and in order, and as lines", async () => {
      const { root_span_id } = await start()
      const path = `/api/v1/spans/${root_span_id}/events`
      const events = Array.from({ length: 7 }, (_, n) => ({ event_type: "a", payload: { n } }))
      assert.strictEqual((await post(path, { events: events.slice(0, 4) })).status, 200)
      assert.strictEqual((await post(path, events.slice(4))).status, 200)
      const whole = await get(path)
      assert.deepStrictEqual(
        whole.body.events.map(({ payload }: any) => payload.n),
        [0, 1, 2, 3, 4, 5, 6]
      )
      assert.deepStrictEqual(Object.keys(whole.body), ["events"])
      for (const size of [1, 3, 7]) {
        assert.deepStrictEqual(await pages(path, "events", size), whole.body.events)
      }
      const all = await lines(path)
      assert.strictEqual(all.headers["content-type"], "application/x-ndjson")
      assert.deepStrictEqual(parsedLines(all.text), whole.body.events)
      const { body } = await get(`${path}?page_size=5`)
      const rest = await lines(`${path}?cursor=${body.next_cursor}`)
      assert.deepStrictEqual(parsedLines(rest.text), whole.body.events.slice(5))
      assert.strictEqual((await lines("/api/v1/spans/none/events")).status, 404)
    })

    /** 90 events of 60 KB: more than one page. */
    const fill = async (path: string) => {
      const payload = { text: "x".repeat(60_000) }
      const events = Array.from({ length: 10 }, () => ({ event_type: "a", payload }))
      for (let n = 0; n < 9; n++) {
        assert.strictEqual((await post(path, { events })).status, 200)
      }
    }

    it("that are too large for one answer are never cut silently", async () => {
      const { root_span_id } = await start()
      const path = `/api/v1/spans/${root_span_id}/events`
      await fill(path)
      const { body, headers } = await get(`/api/v1/spans/${root_span_id}`)
      assert.strictEqual(body.events_total, 90)
      assert.isBelow(body.events.length, 90)
      assert.isAbove(body.events.length, 50)
      const next = await get(nextOf(headers)!)
      assert.strictEqual(body.events.length + next.body.events.length, 90)
      assert.strictEqual(next.body.events[0].sequence_number, body.events.length + 1)
      const byCursor = await get(`${path}?cursor=${body.next_cursor}`)
      assert.strictEqual(byCursor.text, next.text)
      assert.strictEqual(parsedLines((await lines(path)).text).length, 90)
    })

    it("break off visibly when the store fails on the way, with a line in the log", async () => {
      const { root_span_id } = await start()
      const path = `/api/v1/spans/${root_span_id}/events`
      await fill(path)
      api.world.traces.eventsBreak = true
      const isBroken = await lines(path).then(
        () => false,
        () => true
      )
      assert.isTrue(isBroken)
      const { annotations } = api.logs.findLast(
        ({ message }) => message === "an answer was broken off"
      )!
      assert.include(annotations, { operation: "listTraceEvents", tenantId: "acme" })
      assert.isAbove(annotations["bytes"] as number, 3_000_000)
    })

    it("with an id of the client's are stored once", async () => {
      const { id } = await start()
      const { id: spanId } = await span(id)
      const path = `/api/v1/spans/${spanId}/events`
      const event = { id: "e", event_type: "Any Name", timestamp: STARTED, payload: {} }
      const bare = { id: "bare", event_type: "a", timestamp: STARTED }
      assert.strictEqual((await post(path, bare)).status, 201)
      assert.strictEqual((await post(path, { ...bare, payload: null })).status, 200)
      const first = await post(path, event)
      const again = await post(path, event)
      assert.deepStrictEqual([first.status, again.status], [201, 200])
      assert.strictEqual(again.text, first.text)
      assert.deepStrictEqual(first.body.payload, {})
      const other = await post(path, { ...event, payload: { x: 1 } })
      assert.strictEqual(other.body.code, "id_conflict")
      assert.strictEqual((await get(path)).body.events.length, 2)
    })

    it("come in batches with a result for each", async () => {
      const { id } = await start()
      const { id: spanId } = await span(id)
      const path = `/api/v1/spans/${spanId}/events`
      const event = { event_type: "log.line" }
      const events = [
        event,
        { payload: 1 },
        { ...event, id: "e" },
        { ...event, id: "e", payload: {} },
        { ...event, payloads: {} }
      ]
      const answer = await post(path, { events })
      assert.strictEqual(answer.status, 200, answer.text)
      const { accepted, errors, ids, rejected, results, status } = answer.body
      assert.deepStrictEqual([accepted, rejected, status], [2, 3, "committed"])
      assert.deepStrictEqual(
        errors.map(({ code, index }: any) => [index, code]),
        [
          [1, "missing_field"],
          [3, "id_conflict"],
          [4, "invalid_value"]
        ]
      )
      assert.match(errors[2].message, /^payloads: .*did you mean payload\?$/)
      assert.strictEqual(ids[1], "e")
      assert.deepStrictEqual(
        results.map(({ event_id, index, op, outcome, sequence_number }: any) => ({
          event_id,
          index,
          op,
          outcome,
          sequence_number
        })),
        [
          { event_id: ids[0], index: 0, op: "span.event", outcome: "created", sequence_number: 1 },
          { event_id: "e", index: 2, op: "span.event", outcome: "created", sequence_number: 2 }
        ]
      )
    })
  })

  describe("a batch of operations", () => {
    const run = "run-1"
    const operations = [
      { op: "execution.start", id: run, agent_id: "agent", started_at: STARTED },
      {
        op: "span.start",
        execution_id: run,
        id: "a",
        span_type: "LLM_CALL",
        name: "a",
        started_at: "2026-11-21T10:00:01Z"
      },
      {
        op: "span.start",
        execution_id: run,
        id: "b",
        span_type: "TOOL_CALL",
        name: "b",
        parent_span_id: "a",
        caused_by_span_ids: ["a"],
        started_at: "2026-11-21T10:00:02Z"
      },
      {
        op: "span.event",
        span_id: "b",
        id: "e",
        event_type: "tool.request",
        timestamp: STARTED,
        payload: { q: 1 }
      },
      { op: "span.end", span_id: "b", ended_at: "2026-11-21T10:00:03Z" },
      { op: "execution.end", execution_id: run, ended_at: "2026-11-21T10:00:04Z" }
    ]
    const seen = async () => {
      const without = ({ created_at: _at, ...rest }: any) => rest
      const spans = (await get(`${EXECUTIONS}/${run}/spans`)).body.spans
      const events = (await get("/api/v1/spans/b/events")).body.events
      return { execution: without((await get(`${EXECUTIONS}/${run}`)).body), spans, events }
    }

    it("gives the same trace in any order, and one by one", async () => {
      const answer = await post(BATCH, { operations }, { headers: sync })
      assert.strictEqual(answer.status, 200, answer.text)
      assert.deepStrictEqual([answer.body.accepted, answer.body.rejected], [6, 0], answer.text)
      assert.deepStrictEqual(answer.body.ids, [run, "a", "b", "e", "b", run])
      assert.deepStrictEqual(
        answer.body.results.map(({ op }: any) => op),
        operations.map(({ op }) => op)
      )
      const straight = await seen()
      assert.strictEqual(straight.spans.length, 3)
      await api.stop()
      api = await TestApi.start()
      const turned = await post(BATCH, { operations: operations.toReversed() }, { headers: sync })
      assert.strictEqual(turned.body.accepted, 6, turned.text)
      assert.deepStrictEqual(await seen(), straight)
      await api.stop()
      api = await TestApi.start()
      // The path names the operation and what it is about; only a start names its own id.
      const [first, a, b, e, endB, end] = operations.map(
        ({ execution_id: _execution, op: _op, span_id: _span, ...rest }: Record<string, unknown>) =>
          rest
      )
      await start(first)
      await span(run, a)
      await span(run, b)
      assert.strictEqual((await post("/api/v1/spans/b/events", e)).status, 201)
      assert.strictEqual((await put("/api/v1/spans/b/end", endB)).status, 200)
      assert.strictEqual((await put(`${EXECUTIONS}/${run}/end`, end)).status, 200)
      assert.deepStrictEqual(await seen(), straight)
    })

    it("finds what was sent one by one before, and the other way round", async () => {
      const { op: _op, execution_id: _id, ...a } = operations[1]!
      await start({ id: run, started_at: STARTED })
      await span(run, a)
      const answer = await post(BATCH, { operations }, { headers: sync })
      assert.deepStrictEqual(
        answer.body.results.map(({ outcome }: any) => outcome),
        ["existing", "existing", "created", "created", "created", "created"]
      )
      const again = await post(BATCH, { operations }, { headers: sync })
      assert.deepStrictEqual(
        [
          again.body.accepted,
          again.body.results.every(({ outcome }: any) => outcome === "existing")
        ],
        [6, true]
      )
    })

    it("is answered 202 by default, with the ids and a receipt that becomes committed", async () => {
      const answer = await post(BATCH, { operations: [...operations, { op: "nothing" }, 5] })
      assert.strictEqual(answer.status, 202, answer.text)
      const { accepted, errors, ids, receipt_id, rejected, results, status } = answer.body
      assert.deepStrictEqual([accepted, rejected, status], [6, 2, "pending"])
      assert.deepStrictEqual(ids, [run, "a", "b", "e", "b", run])
      assert.deepStrictEqual(results[3], {
        index: 3,
        op: "span.event",
        span_id: "b",
        event_id: "e"
      })
      assert.deepStrictEqual(
        errors.map(({ code, index }: any) => [index, code]),
        [
          [6, "invalid_value"],
          [7, "invalid_value"]
        ]
      )
      assert.strictEqual(answer.headers["location"], `/v1/receipts/${receipt_id}`)
      assert.strictEqual(answer.headers["retry-after"], "1")
      const receipt = await get(answer.headers["location"]!)
      assert.strictEqual(receipt.body.status, "committed")
      assert.deepStrictEqual(receipt.body.ids, ids)
      assert.strictEqual(receipt.body.results.length, 6)
      assert.notProperty(receipt.body, "traces_next")
    })

    it("gives the first answer again to a key that is used in the other mode", async () => {
      for (const [mode, other] of [
        [{}, sync],
        [sync, {}]
      ] as const) {
        const key = { "idempotency-key": "x-service-sync" in mode ? "now" : "later" }
        const first = await post(BATCH, { operations }, { headers: { ...key, ...mode } })
        const again = await post(BATCH, { operations }, { headers: { ...key, ...other } })
        assert.deepStrictEqual([again.status, again.text], [first.status, first.text])
        assert.strictEqual(first.status, "x-service-sync" in mode ? 200 : 202)
      }
    })

    it("reports what the sequencer refuses, item by item", async () => {
      const answer = await post(
        BATCH,
        {
          operations: [
            ...operations.slice(0, 2),
            { op: "span.end", span_id: "nobody" },
            {
              op: "span.start",
              execution_id: run,
              id: "x",
              span_type: "A",
              name: "x",
              parent_span_id: "y"
            },
            {
              op: "span.start",
              execution_id: run,
              id: "y",
              span_type: "A",
              name: "y",
              parent_span_id: "x"
            },
            { op: "span.start", execution_id: "no", span_type: "A", name: "n" }
          ]
        },
        { headers: sync }
      )
      assert.deepStrictEqual(
        answer.body.errors.map(({ code, index }: any) => [index, code]),
        [
          [2, "not_found"],
          [3, "cycle_detected"],
          [4, "cycle_detected"],
          [5, "not_found"]
        ],
        answer.text
      )
      assert.include(answer.body.errors[0].message, '"nobody"')
    })
  })

  describe("an Idempotency-Key", () => {
    it("writes once and gives the same ids again", async () => {
      const headers = { "idempotency-key": "k" }
      const execution = await post(EXECUTIONS, { agent_id: "agent" }, { headers })
      const { id } = execution.body
      const spans = `${EXECUTIONS}/${id}/spans`
      const child = await post(spans, { span_type: "A", name: "n" }, { headers })
      const events = `/api/v1/spans/${child.body.id}/events`
      const event = await post(events, { event_type: "a" }, { headers })
      const several = await post(
        BATCH,
        { operations: [{ op: "span.event", span_id: child.body.id, event_type: "b" }] },
        { headers: { ...headers, ...sync } }
      )
      const end = await put(`${EXECUTIONS}/${id}/end`, {}, { headers })
      const facts = api.world.traces.facts.length
      const repeated = [
        [execution, await post(EXECUTIONS, { agent_id: "agent" }, { headers })],
        [child, await post(spans, { span_type: "A", name: "n" }, { headers })],
        [event, await post(events, { event_type: "a" }, { headers })],
        [
          several,
          await post(
            BATCH,
            { operations: [{ op: "span.event", span_id: child.body.id, event_type: "b" }] },
            { headers: { ...headers, ...sync } }
          )
        ],
        [end, await put(`${EXECUTIONS}/${id}/end`, {}, { headers })]
      ] as const
      for (const [first, again] of repeated) {
        assert.strictEqual(again.status, first.status, again.text)
        assert.strictEqual(again.body.id, first.body.id)
        assert.deepStrictEqual(again.body.ids, first.body.ids)
      }
      assert.strictEqual(api.world.traces.facts.length, facts)
    })

    it("with another body is 422, and a refusal is not remembered under it", async () => {
      const headers = { "idempotency-key": "k" }
      const { id } = await start()
      const first = await post(EXECUTIONS, { agent_id: "a" }, { headers })
      assert.strictEqual(first.status, 201)
      const other = await post(EXECUTIONS, { agent_id: "b" }, { headers })
      assert.strictEqual(other.status, 422)
      assert.strictEqual(other.body.code, "idempotency_mismatch")
      assert.isString(other.body.error)
      const spans = `${EXECUTIONS}/${id}/spans`
      const absent = { span_type: "A", name: "n", parent_span_id: "p" }
      assert.strictEqual((await post(spans, absent, { headers })).status, 404)
      await span(id, { id: "p" })
      assert.strictEqual((await post(spans, absent, { headers })).status, 201)
    })

    it("belongs to the path with its id", async () => {
      const headers = { "idempotency-key": "k" }
      for (const { id } of [await start(), await start()]) {
        const end = await put(`${EXECUTIONS}/${id}/end`, { status: "FAILED" }, { headers })
        assert.strictEqual(end.status, 200)
        assert.strictEqual(end.body.id, id)
      }
    })
  })

  describe("erasing", () => {
    it("takes the details out of every answer", async () => {
      const { id } = await start({
        agent_name: "secret",
        trigger: "secret",
        metadata: { secret: 1 }
      })
      const { id: spanId } = await span(id, { name: "secret", metadata: { secret: 1 } })
      await post(`/api/v1/spans/${spanId}/events`, { event_type: "a", payload: { secret: 1 } })
      await put(`/api/v1/spans/${spanId}/end`, { status: "FAILED", error: "secret" })
      const path = `${EXECUTIONS}/${id}/erase`
      const answer = await post(path, { reason: "asked for" })
      assert.strictEqual(answer.status, 200, answer.text)
      assert.deepInclude(answer.body, { id, agent_name: "agent", metadata: {} })
      assert.isNull(answer.body.topic_copy_until)
      assert.match(answer.body.erased_at, /Z$/)
      for (const shown of [
        answer,
        await get(`${EXECUTIONS}/${id}`),
        await get(`${EXECUTIONS}/${id}/spans`),
        await get(`${EXECUTIONS}/${id}/dag`),
        await get(`/api/v1/spans/${spanId}`),
        await get(EXECUTIONS)
      ]) {
        assert.strictEqual(shown.status, 200)
        assert.notInclude(shown.text, "secret")
      }
      const again = await post(path, { reason: "asked for" })
      assert.strictEqual(again.text, answer.text)
      const fact = api.world.traces.facts.find(({ type }) => type === "execution.erased")
      assert.deepInclude(fact, { reason: "asked for", erased_by: "key_write" })
    })

    it("says until when the topic has a copy", async () => {
      await api.stop()
      api = await TestApi.start({ topicRetentionMs: 30 * 86_400_000 })
      const { id } = await start()
      const { body } = await post(`${EXECUTIONS}/${id}/erase`, { reason: "r" })
      const kept = Date.parse(body.topic_copy_until) - Date.parse(body.erased_at)
      assert.strictEqual(kept, 30 * 86_400_000)
    })
  })

  it("reads one large value, and four spans of a tenant, at once, however many are asked for", async () => {
    const text = "x".repeat(200_000)
    const { id } = await start()
    const { id: spanId, metadata } = await span(id, { metadata: { text } })
    for (const [path, most] of [
      [`/api/v1/payloads/${metadata.text.$ref}`, 1],
      [`/api/v1/spans/${spanId}`, 4]
    ] as const) {
      const reads = { now: 0, most: 0 }
      api.world.traces.reads = reads
      const answers = await Promise.all(Array.from({ length: 20 }, () => get(path)))
      for (const answer of answers) assert.strictEqual(answer.status, 200, answer.text)
      assert.strictEqual(reads.most, most, path)
    }
  })

  it("verifies an execution", async () => {
    const { id } = await start()
    const { body, status } = await get(`${EXECUTIONS}/${id}/verify`)
    assert.strictEqual(status, 200)
    assert.deepInclude(body, {
      valid: true,
      scheme: "alk-trace-v1",
      execution_id: id,
      facts_checked: 2
    })
  })
})
