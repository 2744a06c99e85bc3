/**
 * Makes the fixture of the upgrade tests: starts the program of a commit of this repository, uses
 * everything that leaves a trace in its data, and keeps program, data and answers.
 * `npm run test:upgrade:fixture -- COMMIT`, with the commit before the change that is to be tested.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { event } from "../support/BlackBox.ts"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { ADMIN_TOKEN, freshFolder, start } from "../support/Program.ts"
import { type Expected, FOLDER, KEY, OTHER_KEY, pack, programIn, TENANT } from "./Fixture.ts"

const [commit] = process.argv.slice(2)
if (commit === undefined) throw new Error("npm run test:upgrade:fixture -- COMMIT")
const hash = execFileSync("git", ["rev-parse", "--short", commit], { encoding: "utf8" }).trim()

const PROGRAM = ["src", "schemas", "docs", "package.json"]
const EVENTS = 60
const RUN = "run-1"
const SYNC = { "x-service-sync": "true" }

const program = freshFolder("upgrade-program")
const data = freshFolder("upgrade-data")
const archive = execFileSync("git", ["archive", hash, ...PROGRAM], { maxBuffer: 512 * 1_048_576 })
execFileSync("tar", ["-C", program, "-xf", "-"], { input: archive })

const ok = async (client: Client, path: string, options = {}) => {
  const answer = await client.call(path, options)
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`)
  return answer
}

const useEverything = async (url: string): Promise<Omit<Expected, "commit" | "environment">> => {
  const client = new Client(url, KEY, false)
  const other = new Client(url, OTHER_KEY, false)
  const admin = new Client(url, ADMIN_TOKEN, false)
  for (let from = 1; from <= EVENTS; from += 20) {
    const events = Array.from({ length: 20 }, (_, index) => ({
      ...event(from + index),
      id: `own-${from + index}`
    }))
    await ok(client, "/v1/events/batch", { body: { events }, headers: SYNC })
  }
  await ok(other, "/v1/events/batch", { body: { events: [event(1), event(2)] }, headers: SYNC })
  await ok(client, "/v1/events/own-7/erase", { body: { reason: "asked for" } })
  const request = { ...event(777), id: "with-a-key" }
  const named = { body: request, headers: { ...SYNC, "idempotency-key": "of-the-fixture" } }
  const receipt = (await ok(client, "/v1/events", named)).body
  const run = { id: RUN, agent_id: "planner", agent_name: "Planner" }
  await ok(client, "/api/v1/executions", { body: run, headers: SYNC })
  const span = { id: "chat", span_type: "LLM_CALL", name: "chat", metadata: { tokens: 12 } }
  await ok(client, `/api/v1/executions/${RUN}/spans`, { body: span, headers: SYNC })
  const ended = { method: "PUT", body: { status: "COMPLETED" }, headers: SYNC }
  await ok(client, "/api/v1/spans/chat/end", ended)
  await ok(client, `/api/v1/executions/${RUN}/end`, ended)
  const made = await ok(admin, `/v1/admin/tenants/${TENANT}/keys`, {
    body: { scopes: ["read"], label: "made before the upgrade" }
  })
  const link = await ok(client, "/v1/share/links", { body: { filters: { action: "document.*" } } })
  const checkpoint = await checkpointOf(client, EVENTS + 2)
  return {
    events: await client.all(),
    others: await other.all(),
    executionId: RUN,
    execution: (await ok(client, `/api/v1/executions/${RUN}`)).body,
    request,
    receipt,
    chain: (await ok(client, "/v1/chain")).body,
    checkpoint,
    madeKey: made.body.key,
    shareToken: link.body.token
  }
}

/** The signed checkpoint, once it is of so many events. */
const checkpointOf = async (client: Client, size: number): Promise<string> => {
  const { text } = await eventuallyAsync(
    `there is a checkpoint of ${size} events`,
    () => client.call(`/v1/tlog/events/checkpoint`),
    (answer) => answer.status === 200 && Number(answer.text.split("\n")[1]) >= size
  )
  return text
}

const environment = {
  ALK_PARTITIONS: "2",
  ALK_ADMIN_TOKEN: ADMIN_TOKEN,
  ALK_BOOTSTRAP_KEYS: `${KEY}=${TENANT}:read+write,${OTHER_KEY}=globex:read+write`
}
const checkout = programIn(program)
const running = await start({ ...environment, ALK_DATA_DIR: data }, checkout.command, checkout)
try {
  const found = await useEverything(running.url)
  await running.stop()
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const file = { commit: hash, environment, ...found } satisfies Expected
  writeFileSync(join(FOLDER, "expected.json"), `${JSON.stringify(file, null, 2)}\n`)
  pack(program, PROGRAM, join(FOLDER, "program.tar.zst"))
  pack(data, readdirSync(data), join(FOLDER, "data.tar.zst"))
} catch (error) {
  process.stderr.write(running.output())
  throw error
} finally {
  await running.kill().catch(() => undefined)
  rmSync(program, { recursive: true, force: true })
  rmSync(data, { recursive: true, force: true })
}
