/**
 * The judge of the fault tests. Compares the book of the load with the topic as a reader sees it
 * that shares no code with alk, the chain with what the independent implementation makes of it, and
 * every way of reading with the topic.
 */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { readTopic } from "../support/BlackBox.ts"
import type { Json } from "../support/Client.ts"
import { freshFolder } from "../support/Program.ts"
import type { Load, Request } from "./Load.ts"
import { clientOf, type Target } from "./Parts.ts"
import type { Subscriber } from "./Subscriber.ts"

interface Stored {
  readonly body: string
  readonly event: Json
}

/** The chain as the second implementation sees it, down to the bytes. */
const recompute = (bodies: ReadonlyArray<string>): void => {
  const file = join(freshFolder("oracle"), "events.ndjson")
  writeFileSync(file, bodies.map((body) => `${body}\n`).join(""))
  const { status, stderr, stdout } = spawnSync(
    "python3",
    ["test/independent/alk_chain.py", "check", "--exact", file],
    { encoding: "utf8" }
  )
  assert.strictEqual(status, 0, `${stdout}${stderr}`)
}

const storedOf = async (target: Target, tenant: string): Promise<ReadonlyArray<Stored>> => {
  const topic = `${target.topicPrefix}.events`
  const records = await readTopic(target.bootstrap(), topic, tenant)
  assert.strictEqual(new Set(records.map(({ partition }) => partition)).size, 1)
  return records.map(({ value }) => ({ body: value, event: JSON.parse(value) as Json }))
}

/** Exactly what was sent, each once, under the id that was acknowledged, whole and in order. */
const checkAgainstBook = (
  stored: ReadonlyArray<Stored>,
  requests: ReadonlyArray<Request>
): void => {
  const byRef = new Map<string, Json>()
  for (const [index, { event }] of stored.entries()) {
    const ref = event["metadata"]?.ref as string
    assert.isUndefined(byRef.get(ref), `${ref} stands in the topic twice`)
    assert.strictEqual(event["sequence_number"], index + 1)
    byRef.set(ref, event)
  }
  const floors = new Map<string, number>()
  for (const { events, ids, inOrder, sender } of requests) {
    const sequences = events.map((sent, item) => {
      const ref = sent["metadata"].ref as string
      const found = byRef.get(ref)
      assert.isDefined(found, `${ref} was acknowledged and is lost`)
      byRef.delete(ref)
      assert.strictEqual(found!["id"], ids?.[item])
      for (const member of ["actor", "action", "resource", "outcome", "metadata"]) {
        assert.deepStrictEqual(found![member], sent[member])
      }
      return found!["sequence_number"] as number
    })
    sequences.forEach((sequence, item) => assert.strictEqual(sequence, sequences[0]! + item))
    assert.isAbove(sequences[0]!, floors.get(sender) ?? 0, `${sender}: out of order`)
    if (inOrder) floors.set(sender, sequences.at(-1)!)
  }
  assert.deepStrictEqual([...byRef.keys()], [], "never sent")
}

const checkReaders = async (
  target: Target,
  tenant: string,
  bodies: ReadonlyArray<string>
): Promise<void> => {
  for (const which of target.urls().keys()) {
    const api = clientOf(target, tenant, which)
    const { text } = await api.call("/v1/events?order=asc", {
      headers: { accept: "application/x-ndjson" }
    })
    assert.deepStrictEqual(
      text.split("\n").filter((line) => line !== ""),
      bodies
    )
    const { body: page } = await api.call("/v1/events?page_size=1")
    assert.strictEqual(page.total, bodies.length)
    const { body: report } = await api.call("/v1/verify")
    assert.isTrue(report.valid, JSON.stringify(report))
    assert.strictEqual(report.events_checked, bodies.length)
  }
}

/** Repeat what was not answered, wait until all is settled, then judge everything. */
export const judge = async (
  target: Target,
  load: Load,
  subscribers: ReadonlyArray<Subscriber> = []
): Promise<void> => {
  await load.repeatUnanswered()
  await load.settle()
  assert.deepStrictEqual(load.strange, [])
  const tenants = new Set(load.requests.map(({ tenant }) => tenant))
  for (const tenant of tenants) {
    const stored = await storedOf(target, tenant)
    const bodies = stored.map(({ body }) => body)
    recompute(bodies)
    checkAgainstBook(
      stored,
      load.requests.filter((request) => request.tenant === tenant)
    )
    await checkReaders(target, tenant, bodies)
    for (const subscriber of subscribers.filter((one) => one.tenant === tenant)) {
      await subscriber.finish(bodies.length)
      assert.deepStrictEqual(subscriber.received, bodies)
      assert.deepStrictEqual(subscriber.strange, [])
    }
  }
}
