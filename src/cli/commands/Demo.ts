/** `alk demo`: events as a small company has them, and one run of an agent, to look at. */
import type { Client } from "../../client/Client.ts"
import type { EventInput } from "../../client/events/EventInput.ts"
import type { Choice } from "../Contexts.ts"
import { connect } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { count } from "../terminal/Progress.ts"

interface DemoOptions extends OutputOptions, Choice {
  readonly events: number
}

/** Milliseconds over which the events are spread, up to now. */
const SPREAD_MS = 24 * 60 * 60_000

const ACTORS = [
  { id: "alice", type: "human", email: "alice@example.com" },
  { id: "bob", type: "human", email: "bob@example.com" },
  { id: "carol", type: "human", email: "carol@example.com" },
  { id: "support-agent", type: "agent" },
  { id: "backup", type: "system" }
] as const

interface Template {
  readonly action: string
  readonly resource: string
  readonly outcomes: ReadonlyArray<"success" | "failure" | "error">
  readonly metadata: (number: number) => Readonly<Record<string, unknown>>
}

const TEMPLATES: ReadonlyArray<Template> = [
  {
    action: "user.login",
    resource: "session",
    outcomes: ["success", "success", "success", "failure"],
    metadata: (number) => ({ ip: `192.0.2.${number % 250}`, mfa: number % 3 !== 0 })
  },
  {
    action: "document.read",
    resource: "document",
    outcomes: ["success"],
    metadata: (number) => ({ pages: 1 + (number % 30) })
  },
  {
    action: "document.shared",
    resource: "document",
    outcomes: ["success", "success", "failure"],
    metadata: (number) => ({ with: [`partner-${number % 5}`] })
  },
  {
    action: "invoice.approved",
    resource: "invoice",
    outcomes: ["success"],
    metadata: (number) => ({ amount_cents: 1_000 + ((number * 7_919) % 90_000), currency: "EUR" })
  },
  {
    action: "backup.finished",
    resource: "database",
    outcomes: ["success", "success", "error"],
    metadata: (number) => ({ seconds: 30 + (number % 90) })
  }
]

/** A hash of a number, so that the events are the same each time and follow no pattern. */
const scattered = (number: number): number => Math.imul(number + 1, 0x9e3779b1) >>> 8

/** The event of a number from 0 on, of `total` up to now. */
export const demoEvent = (number: number, total: number, now: number): EventInput => {
  const random = scattered(number)
  const { action, metadata, outcomes, resource } = TEMPLATES[random % TEMPLATES.length]!
  const actor = ACTORS[(random >>> 5) % ACTORS.length]!
  return {
    actor,
    action,
    resource: { id: `${resource}-${(random >>> 8) % 50}`, type: resource },
    outcome: outcomes[(random >>> 3) % outcomes.length]!,
    timestamp: new Date(now - SPREAD_MS * (1 - (number + 1) / total)),
    metadata: metadata(random)
  }
}

/** Milliseconds that a step of the run takes. */
const STEP_MS = 40

const step = () => new Promise<void>((resolve) => setTimeout(resolve, STEP_MS))

/** An agent that answers a question with two tools, of which one fails at first. */
const demoRun = (client: Client): Promise<void> =>
  client.run("support-agent", { trigger: "alk demo" }, async () => {
    await client.span("plan", step)
    await client.tool("search_orders", { input: { customer: "partner-3" } }, step)
    await client
      .tool("issue_refund", { input: { order: "order-17" } }, async () => {
        await step()
        throw new Error("the payment service did not answer")
      })
      .catch(() => client.tool("issue_refund", { input: { order: "order-17" } }, step))
    await client.span("answer", step)
  })

/** `alk demo`. */
export const demo = async (options: DemoOptions): Promise<void> => {
  const client = await connect(options)
  // A wrong key or address is found before anything waits in a queue.
  await client.request("GET /v1/me")
  await withOutput(options, async (output) => {
    const now = Date.now()
    for (let number = 0; number < options.events; number++) {
      client.log(demoEvent(number, options.events, now))
    }
    await demoRun(client)
    await client.close()
    if (!output.isHuman) return output.document({ events: options.events, runs: 1 })
    await output.write(`${count(options.events)} events and one run are recorded\n`)
    output.note("next: alk events; alk runs; or the console")
  })
}
