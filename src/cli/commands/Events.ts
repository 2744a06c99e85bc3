/** `alk events` and `alk get`: stored events, and what was recomputed of one. */
import type { EventQuery } from "../../client/events/EventPages.ts"
import type { AuditEvent } from "../../client/gen/Api.d.ts"
import { verifyEvent } from "../../client/verify/VerifyEvent.ts"
import type { Choice } from "../Contexts.ts"
import { CommandFailure, EXIT } from "../Failure.ts"
import { type FilterOptions, queryOf } from "../Filters.ts"
import { connect } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { count } from "../terminal/Progress.ts"
import { type Column, details } from "../terminal/Table.ts"
import { limited } from "./Pages.ts"

interface EventsOptions extends FilterOptions, OutputOptions, Choice {
  readonly oldestFirst?: boolean
  readonly limit: number
}

/** Events of one request at most. */
const PAGE_MAX = 1_000

/** How events are shown to a person. */
export const EVENT_COLUMNS: ReadonlyArray<Column<AuditEvent>> = [
  { title: "SEQ", text: (event) => String(event.sequence_number), isNumber: true },
  {
    title: "TIME",
    text: ({ timestamp }) => timestamp.slice(0, 19).replace("T", " "),
    isWhole: true
  },
  { title: "ACTOR", text: ({ actor }) => `${actor.type}:${actor.id}` },
  { title: "ACTION", text: ({ action }) => action },
  { title: "RESOURCE", text: ({ resource }) => `${resource.type}:${resource.id}` },
  { title: "OUTCOME", text: ({ outcome }) => outcome },
  { title: "ID", text: ({ id }) => id }
]

/** The first events that match, and how many there are. */
const firstEvents = async (options: EventsOptions) => {
  const client = await connect(options)
  const order: EventQuery["order"] = options.oldestFirst === true ? "asc" : "desc"
  const query = { ...queryOf(options), order }
  const page = await client.request("GET /v1/events", {
    query: { ...query, page_size: options.limit }
  })
  // A page has less of large events.
  if (page.page_size === options.limit) return page
  const events: Array<AuditEvent> = []
  for await (const event of limited(client.events(query), options.limit)) events.push(event)
  return { events, total: page.total }
}

/** As they come, page after page. */
const writeMany = async (options: EventsOptions): Promise<void> => {
  const client = await connect(options)
  const order = options.oldestFirst === true ? "asc" : "desc"
  await withOutput(options, (output) =>
    output.rows(
      EVENT_COLUMNS,
      limited(client.events({ ...queryOf(options), order }), options.limit)
    )
  )
}

/** `alk events`. */
export const listEvents = async (options: EventsOptions): Promise<void> => {
  if (options.limit === 0 || options.limit > PAGE_MAX) return writeMany(options)
  await withOutput(options, async (output) => {
    const { events, total } = await firstEvents(options)
    await output.list(EVENT_COLUMNS, events)
    if (output.isHuman && total > events.length) {
      output.note(`${count(events.length)} of ${count(total)} events; --limit 0 lists all`)
    }
  })
}

const eventText = (event: AuditEvent): string => {
  const { action, actor, created_at, hash, id, metadata, outcome, prev_hash } = event
  const { resource, sequence_number, tenant_id, timestamp } = event
  const email = actor.email === undefined ? "" : ` <${actor.email}>`
  const name = resource.name === undefined ? "" : ` (${resource.name})`
  return details([
    ["id", id],
    ["tenant", tenant_id],
    ["sequence", String(sequence_number)],
    ["time", timestamp],
    ["stored", created_at],
    ["actor", `${actor.type}:${actor.id}${email}`],
    ["action", action],
    ["resource", `${resource.type}:${resource.id}${name}`],
    ["outcome", outcome],
    ["metadata", metadata === undefined ? "" : JSON.stringify(metadata)],
    ["hash", hash],
    ["previous", prev_hash]
  ])
}

/** `alk get`. The event is written whatever its hashes say; a wrong one ends with exit code 1. */
export const getEvent = async (id: string, options: OutputOptions & Choice): Promise<void> => {
  const client = await connect(options)
  const verification = await withOutput(options, async (output) => {
    const event = await client.request("GET /v1/events/{id}", { path: { id } })
    await (output.isHuman ? output.write(eventText(event)) : output.document(event))
    const found = await verifyEvent(event)
    if (found.valid) {
      output.note(`its hashes hold${found.isErased ? "; its details were erased" : ""}`)
    }
    return found
  })
  if (verification.valid) return
  const { actual, expected, reason } = verification
  throw new CommandFailure(
    EXIT.failed,
    `${id}: ${reason}: expected ${expected}, is ${actual}`,
    "alk verify --service checks the whole chain; keep what you have"
  )
}
