/**
 * Many clients that want the same thing of one execution at once while parts of the service die:
 * whoever is refused or not answered asks again in the same words, until there is an answer that
 * stands. What they are told and what the topic says must be one story.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import { readTopic } from "../support/BlackBox.ts"
import type { Answer, Json, Options } from "../support/Client.ts"
import { checkFacts } from "../support/IndependentTrace.ts"
import { clientOf, type Target } from "./Parts.ts"

const EXECUTIONS = "/api/v1/executions"
/** Clients that ask at once. */
const CONCURRENT = 50
/** Milliseconds within which all of them have begun. */
const SPREAD_MS = 600
const AGAIN_MS = 200
/** Milliseconds that a client goes on asking. */
const PATIENCE_MS = 240_000
/** Milliseconds after which a client takes its request for lost. */
const LOST_MS = 20_000

/** Ask until the answer is neither 503 nor silence. */
const insist = async (
  target: Target,
  tenant: string,
  who: number,
  path: string,
  options: Options
): Promise<Answer> => {
  const giveUpAt = Date.now() + PATIENCE_MS
  for (let attempt = who; ; attempt++) {
    const answer = await Promise.race([
      clientOf(target, tenant, attempt)
        .call(path, options)
        .catch(() => undefined),
      sleep(LOST_MS, undefined, { ref: false })
    ])
    if (answer !== undefined && answer.status !== 503) return answer
    if (Date.now() > giveUpAt) assert.fail(`${path}: ${answer?.text ?? "no answer"}`)
    await sleep(AGAIN_MS)
  }
}

const allAtOnce = (ask: (who: number) => Promise<Answer>): Promise<ReadonlyArray<Answer>> =>
  Promise.all(
    Array.from({ length: CONCURRENT }, async (_, who) => {
      await sleep(Math.random() * SPREAD_MS)
      return ask(who)
    })
  )

/** All start an execution under one key; whatever `meanwhile` does, there is one of it. */
export const raceStarts = async (
  target: Target,
  tenant: string,
  key: string,
  meanwhile: () => Promise<void>
): Promise<Json> => {
  const [answers] = await Promise.all([
    allAtOnce((who) =>
      insist(target, tenant, who, EXECUTIONS, {
        body: { agent_id: key, idempotency_key: key, trigger: `client ${who}` }
      })
    ),
    meanwhile()
  ])
  for (const { status, text } of answers) assert.include([200, 201], status, text)
  // Whoever made it may have died before it could say so.
  assert.isAtMost(answers.filter(({ status }) => status === 201).length, 1)
  assert.strictEqual(new Set(answers.map(({ text }) => text)).size, 1)
  for (const which of target.urls().keys()) {
    const { body } = await clientOf(target, tenant, which).call(`${EXECUTIONS}?agent_id=${key}`)
    assert.deepStrictEqual([body.total, body.executions], [1, [answers[0]!.body]])
  }
  return answers[0]!.body
}

const STATUSES = ["COMPLETED", "FAILED", "CANCELLED"] as const

/** All end one execution, each in its own way; the first end that was written is the one. */
export const raceEnds = async (
  target: Target,
  tenant: string,
  { id, started_at }: Json,
  meanwhile: () => Promise<void>
): Promise<Json> => {
  const at = (who: number): string =>
    new Date(Date.parse(started_at) + 1_000 * (who + 1)).toISOString().replace("Z", "000Z")
  const wanted = (who: number) => ({ status: STATUSES[who % STATUSES.length]!, ended_at: at(who) })
  const [answers] = await Promise.all([
    allAtOnce((who) =>
      insist(target, tenant, who, `${EXECUTIONS}/${id}/end`, { method: "PUT", body: wanted(who) })
    ),
    meanwhile()
  ])
  const { body: stored } = await clientOf(target, tenant).call(`${EXECUTIONS}/${id}`)
  const winners = [...answers.keys()].filter((who) => wanted(who).ended_at === stored.ended_at)
  assert.strictEqual(winners.length, 1, JSON.stringify(stored))
  assert.strictEqual(stored.status, wanted(winners[0]!).status)
  answers.forEach(({ body, status, text }, who) => {
    if (wanted(who).status === stored.status) {
      assert.strictEqual(status, 200, text)
      assert.deepStrictEqual(body, stored)
    } else {
      assert.strictEqual(status, 409, text)
      assert.strictEqual(body.code, "already_ended")
    }
  })
  return stored
}

/** The tenant's records of `alk.traces`, as a reader sees them that shares no code with alk. */
export const tracesOf = async (target: Target, tenant: string): Promise<ReadonlyArray<string>> => {
  const records = await readTopic(target.bootstrap(), `${target.topicPrefix}.traces`, tenant)
  return records.map(({ value }) => value)
}

/** Of each execution, one start, one root and one end stand in the topic, and all verify. */
export const judgeTraces = async (
  target: Target,
  tenant: string,
  executions: ReadonlyArray<Json>
): Promise<void> => {
  const bodies = await tracesOf(target, tenant)
  checkFacts(bodies)
  const facts = bodies.map((body) => JSON.parse(body) as Json)
  for (const { ended_at, id, root_span_id, started_at } of executions) {
    const own = facts.filter(({ execution_id }) => execution_id === id)
    assert.deepStrictEqual(
      own.map((fact) => [fact["type"], fact["started_at"] ?? fact["ended_at"]]),
      [
        ["execution.started", started_at],
        ["span.started", started_at],
        ["execution.ended", ended_at]
      ]
    )
    assert.strictEqual(own[1]!["span_id"], root_span_id)
    for (const which of target.urls().keys()) {
      const { body, text } = await clientOf(target, tenant, which).call(
        `${EXECUTIONS}/${encodeURIComponent(id)}/verify`
      )
      assert.deepInclude(body, { valid: true, facts_checked: 3 }, text)
    }
  }
}
