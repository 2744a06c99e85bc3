/** Commands that write to the log: their names, options and examples. */
import { type Command, Option } from "commander"
import { collect, wholeNumber } from "../Arguments.ts"
import { declare, GROUPS, ofService, withResult } from "./Declare.ts"

/**
 * Requests that are on their way at once. Each is answered when its events are in every list: with few
 * the service waits for the command, and 4 took twice the time of 16.
 */
const IN_FLIGHT = 16
const IN_FLIGHT_MAX = 32
/** Events of one request: as many as the service takes. */
const BATCH = 1_000
const BATCH_MAX = 1_000

const declareSend = (program: Command): void => {
  const send = declare(program, {
    usage: "send [event]",
    description: "Record one event, and wait until it is in the chain",
    group: GROUPS.write,
    examples: [
      "alk send --actor alice --action document.read --resource doc-1 --resource-type document",
      "alk send --actor bot-7 --actor-type agent --action mail.sent --resource m-1 \\",
      `      --resource-type mail --metadata '{"to":"carol"}'`,
      "alk send - < event.json"
    ],
    notes: "The argument is the event as JSON, or - to read it from standard input."
  })
    .option("--actor <id>", "who")
    .option("--actor-type <type>", "human, agent or system", "human")
    .option("--action <name>", "what: two or more names with dots between them")
    .option("--resource <id>", "to what")
    .option("--resource-type <type>", "what kind of thing that is")
    .option("--outcome <outcome>", "success, failure or error", "success")
    .option("--metadata <json>", "anything else, as a JSON object")
    .option("--id <id>", "an id of your own: sent again, it is stored once")
  withResult(ofService(send)).action(async (event, options) =>
    (await import("../commands/Send.ts")).sendEvent(event, options)
  )
}

const declareIngest = (program: Command): void => {
  const ingest = declare(program, {
    usage: "ingest <file>",
    description: "Send the events of a file; resumes where it was ended",
    group: GROUPS.write,
    examples: [
      "alk ingest events.ndjson",
      "alk ingest accesses.csv --map actor_id=user --map action=verb --set resource_type=page",
      "alk ingest records.ndjson --actions any --numbers text",
      "gunzip -c events.ndjson.gz | alk ingest -"
    ],
    notes: [
      "Beside the file it keeps FILE.alk-ingest.json: how far the service has acknowledged it. Call it",
      "again after a crash, or after lines were appended, and it goes on from there. Events without an",
      "id get one of the content of the file and their place, so that each is stored once however",
      "often it is sent. What is refused is in FILE.alk-rejects.ndjson, with line and reason (exit",
      "code 1). With several requests at once the chain may have batches in another order than the",
      "file; --in-flight 1 keeps the order. From standard input it can't resume."
    ].join("\n")
  })
    .option("--format <format>", "ndjson, json (an array) or csv; by default the file's ending")
    .option("--map <field=column>", "CSV: the column of a field; may be repeated", collect)
    .option("--set <field=value>", "CSV: the same value in each event; may be repeated", collect)
    .addOption(new Option("--actions <names>", "any: take actions of any form").choices(["any"]))
    .addOption(
      new Option(
        "--numbers <form>",
        "text: keep numbers that a double can't hold as texts"
      ).choices(["text"])
    )
    .option("--rejects <file>", "where to write what is refused")
    .option("--batch <number>", "events of a request", wholeNumber("--batch", 1, BATCH_MAX), BATCH)
    .option(
      "--in-flight <number>",
      "requests at once",
      wholeNumber("--in-flight", 1, IN_FLIGHT_MAX),
      IN_FLIGHT
    )
    .option("--restart", "forget how far it was, and read the file from its beginning")
  ofService(ingest)
    .option("--json", "the outcome as JSON")
    .option("-q, --quiet", "nothing on standard error but errors")
    .action(async (file, options) => (await import("../commands/Ingest.ts")).ingest(file, options))
}

/** Events of `alk demo`. */
const DEMO_EVENTS = 200
const DEMO_EVENTS_MAX = 50_000

const declareDemo = (program: Command): void => {
  const demo = declare(program, {
    usage: "demo",
    description: "Record events as a small company has them, and one run of an agent",
    group: GROUPS.write,
    examples: ["alk demo", "alk demo --events 5000"]
  }).option(
    "--events <number>",
    "events, spread over the last day",
    wholeNumber("--events", 1, DEMO_EVENTS_MAX),
    DEMO_EVENTS
  )
  withResult(ofService(demo)).action(async (options) =>
    (await import("../commands/Demo.ts")).demo(options)
  )
}

export const declareSending = (program: Command): void => {
  declareSend(program)
  declareIngest(program)
  declareDemo(program)
}
