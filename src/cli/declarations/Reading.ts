/** Commands that read the log: their names, options and examples. */
import type { Command } from "commander"
import { wholeNumber } from "../Arguments.ts"
import { declare, GROUPS, ofService, withFilters, withLimit, withResult } from "./Declare.ts"

const declareEvents = (program: Command): void => {
  const events = declare(program, {
    usage: "events",
    description: "List events, newest first",
    group: GROUPS.read,
    examples: [
      "alk events --action 'document.*' --from -24h",
      "alk events --outcome failure --limit 0 | jq .actor.id",
      "alk events --filter 'metadata.pages>=10' --where 'actor_type=agent OR outcome=error'"
    ]
  })
  withFilters(events).option("--oldest-first", "the other order")
  withLimit(events, "events", 50)
  withResult(ofService(events)).action(async (options) =>
    (await import("../commands/Events.ts")).listEvents(options)
  )
  const get = declare(program, {
    usage: "get <id>",
    description: "One event, with its hashes recomputed here",
    group: GROUPS.read,
    examples: ["alk get 0190a6b8-7c1e-7000-8000-000000000001", "alk get EVENT_ID -o kept.json"]
  })
  withResult(ofService(get)).action(async (id, options) =>
    (await import("../commands/Events.ts")).getEvent(id, options)
  )
  const tail = declare(program, {
    usage: "tail",
    description: "Follow events as they are committed, until Ctrl-C",
    group: GROUPS.read,
    examples: [
      "alk tail --action 'user.*'",
      "alk tail --after 0 | jq -r .action",
      "alk tail --after 1234 --limit 10"
    ]
  })
  withFilters(tail).option(
    "--after <sequence>",
    "begin after this sequence number, with what is stored already",
    wholeNumber("--after", 0)
  )
  withLimit(tail, "events", 0)
  withResult(ofService(tail)).action(async (options) =>
    (await import("../commands/Tail.ts")).tailEvents(options)
  )
}

const declareRuns = (program: Command): void => {
  const runs = declare(program, {
    usage: "runs",
    description: "List executions of agents, newest first",
    group: GROUPS.read,
    examples: ["alk runs --status FAILED --from -24h", "alk runs --agent researcher --json"]
  })
    .option("--status <status>", "RUNNING, COMPLETED, FAILED or CANCELLED")
    .option("--agent <id>", "id of the agent")
    .option("--from <time>", "RFC 3339, or from now: -24h")
    .option("--to <time>", "RFC 3339, or from now: -1h")
  withLimit(runs, "executions", 50)
  withResult(ofService(runs)).action(async (options) =>
    (await import("../commands/Runs.ts")).listRuns(options)
  )
  const show = declare(program, {
    usage: "show <id>",
    description: "One execution with its spans, as a waterfall",
    group: GROUPS.read,
    examples: ["alk show run-1", "alk show run-1 --json | jq .name"]
  })
  withResult(ofService(show)).action(async (id, options) =>
    (await import("../commands/Runs.ts")).showRun(id, options)
  )
}

const declareSql = (program: Command): void => {
  const sql = declare(program, {
    usage: "sql [query]",
    description: "One SELECT over events, executions, spans and trace_events",
    group: GROUPS.read,
    examples: [
      `alk sql 'SELECT action, count() AS n FROM events GROUP BY action ORDER BY n DESC'`,
      "alk sql --format parquet -o actors.parquet 'SELECT DISTINCT actor_id FROM events'",
      "alk sql < query.sql"
    ]
  }).option("--format <format>", "csv, parquet or ndjson, as the service writes it")
  withResult(ofService(sql)).action(async (query, options) =>
    (await import("../commands/Sql.ts")).runSql(query, options)
  )
}

const declareReceipts = (program: Command): void => {
  const receipts = declare(program, {
    usage: "receipts <id>",
    description: "What became of a request that was answered before it was committed",
    group: GROUPS.read,
    examples: ["alk receipts RECEIPT_ID", "alk receipts RECEIPT_ID --wait"],
    notes: "Exit code 1 if something of the request was refused."
  }).option("--wait", "until it is committed or has failed, 30 s at most")
  withResult(ofService(receipts)).action(async (id, options) =>
    (await import("../commands/Receipts.ts")).showReceipt(id, options)
  )
}

export const declareReading = (program: Command): void => {
  declareEvents(program)
  declareRuns(program)
  declareSql(program)
  declareReceipts(program)
}
