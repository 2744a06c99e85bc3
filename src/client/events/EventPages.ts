/** Lists of the service as sequences: page after page, as far as they are read. */
import type { AuditEvent, Execution } from "../gen/Api.d.ts"
import type { Routes } from "../gen/Routes.d.ts"
import type { Requests } from "../Request.ts"

/** Entries of a page: the largest that the service gives. */
const PAGE_SIZE = 1_000

export interface ListOptions {
  /** Ends the sequence: it throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined
}

/** Filters of the list of events, and their order. */
export type EventQuery = Omit<
  Routes["GET /v1/events"]["query"],
  "after_sequence" | "before_sequence" | "fields" | "format" | "page" | "page_size" | "sort"
>

/** Filters of the list of executions, and their order. */
export type ExecutionQuery = Omit<Routes["GET /api/v1/executions"]["query"], "page" | "page_size">

/**
 * The events that match, newest first unless the order says otherwise. Pages are cut by sequence
 * number, so that events which arrive meanwhile shift nothing.
 */
export async function* events(
  requests: Requests,
  query: EventQuery,
  { signal }: ListOptions
): AsyncGenerator<AuditEvent, void> {
  const cursor = query.order === "asc" ? "after_sequence" : "before_sequence"
  let place = {}
  for (;;) {
    const page = await requests.request("GET /v1/events", {
      query: { ...query, ...place, page_size: PAGE_SIZE },
      signal
    })
    yield* page.events
    const last = page.events.at(-1)
    if (last === undefined || page.events.length < page.page_size) return
    place = { [cursor]: last.sequence_number }
  }
}

/** The executions that match, newest first unless the order says otherwise. */
export async function* executions(
  requests: Requests,
  query: ExecutionQuery,
  { signal }: ListOptions
): AsyncGenerator<Execution, void> {
  const seen = new Set<string>()
  for (let page = 1; ; page++) {
    const list = await requests.request("GET /api/v1/executions", {
      query: { ...query, page, page_size: PAGE_SIZE },
      signal
    })
    // Executions that start meanwhile move others to the next page.
    for (const one of list.executions) if (!seen.has(one.id)) yield one
    if (list.executions.length < PAGE_SIZE) return
    seen.clear()
    for (const { id } of list.executions) seen.add(id)
  }
}
