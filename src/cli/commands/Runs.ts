/** `alk runs` and `alk show`: executions of agents, and one with its spans as a waterfall. */
import type { Client } from "../../client/Client.ts"
import type { Execution, Span } from "../../client/gen/Api.d.ts"
import { duration } from "../../domain/Duration.ts"
import { microsOf, nowMicros } from "../../domain/Timestamp.ts"
import type { Choice } from "../Contexts.ts"
import { connect } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { type Column, details } from "../terminal/Table.ts"
import { type WaterfallSpan, waterfall } from "../terminal/Waterfall.ts"
import { limited } from "./Pages.ts"

interface RunsOptions extends OutputOptions, Choice {
  readonly status?: string
  readonly agent?: string
  readonly from?: string
  readonly to?: string
  readonly limit: number
}

/** Spans of one page: the largest that the service gives. */
const PAGE = 1_000

const durationOf = ({ ended_at, started_at }: Pick<Span, "ended_at" | "started_at">): string =>
  ended_at === undefined ? "" : duration(microsOf(ended_at) - microsOf(started_at))

const RUN_COLUMNS: ReadonlyArray<Column<Execution>> = [
  {
    title: "STARTED",
    text: ({ started_at }) => started_at.slice(0, 19).replace("T", " "),
    isWhole: true
  },
  { title: "AGENT", text: ({ agent_name }) => agent_name },
  { title: "STATUS", text: ({ status }) => status },
  { title: "DURATION", text: durationOf, isNumber: true },
  { title: "ID", text: ({ id }) => id }
]

/** `alk runs`. */
export const listRuns = async (options: RunsOptions): Promise<void> => {
  const { agent, from, limit, status, to } = options
  const client = await connect(options)
  const query = {
    ...(status === undefined ? {} : { status }),
    ...(agent === undefined ? {} : { agent_id: agent }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to })
  }
  await withOutput(options, (output) =>
    output.rows(RUN_COLUMNS, limited(client.executions(query), limit))
  )
}

async function* spansOf(client: Client, id: string): AsyncGenerator<Span, void> {
  let cursor: string | undefined
  do {
    const page = await client.request("GET /api/v1/executions/{id}/spans", {
      path: { id },
      query: { page_size: PAGE, ...(cursor === undefined ? {} : { cursor }) }
    })
    yield* page.spans
    cursor = page.next_cursor
  } while (cursor !== undefined)
}

const toWaterfall = (span: Span): WaterfallSpan => ({
  id: span.id,
  parentId: span.parent_span_id,
  type: span.span_type,
  name: span.name === span.span_type ? span.name : `${span.name} (${span.span_type})`,
  status: span.status,
  start: microsOf(span.started_at),
  end: span.ended_at === undefined ? undefined : microsOf(span.ended_at)
})

/** `alk show`: for a program the execution on the first line, and a span on each further one. */
export const showRun = async (id: string, options: OutputOptions & Choice): Promise<void> => {
  const client = await connect(options)
  await withOutput(options, async (output) => {
    const run = await client.request("GET /api/v1/executions/{id}", { path: { id } })
    if (!output.isHuman) {
      await output.document(run)
      for await (const span of spansOf(client, id)) await output.document(span)
      return
    }
    const spans: Array<WaterfallSpan> = []
    for await (const span of spansOf(client, id)) spans.push(toWaterfall(span))
    await output.write(
      details([
        ["execution", run.id],
        ["agent", `${run.agent_name} (${run.agent_id})`],
        ["status", run.status],
        ["started", run.started_at],
        ["duration", durationOf(run)]
      ])
    )
    await output.write(`\n${waterfall(spans, output.width, nowMicros())}`)
  })
}
