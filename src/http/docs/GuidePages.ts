/**
 * The pages of the guide: their names in addresses, their files in `docs` and what they are about.
 * What is not listed here, or beside the list of decisions, is not served. Reads no file.
 */

/** A page and the file that it is made of. */
export interface GuidePage {
  /** Its address below `/docs/guide`; holds no `.md`. */
  readonly name: string
  /** Path from `docs` on. */
  readonly file: string
  readonly title: string
  /** One line, without a full stop. */
  readonly summary: string
}

const page = (name: string, title: string, summary: string): GuidePage => ({
  name,
  file: `${name}.md`,
  title,
  summary
})

/** In the order in which they are read. */
export const guidePages: ReadonlyArray<GuidePage> = [
  page("start", "Start", "start the service, send the first event and verify it"),
  page("send", "Send events", "from a program or over HTTP, without losing or doubling one"),
  page("agents", "Record agents", "what agents do step by step, with OpenTelemetry or without"),
  page("query", "Query", "filters, expressions, search, statistics and SQL"),
  page("subscribe", "Stream and subscribe", "live over HTTP, or as Kafka topics"),
  page("evidence", "Evidence", "reports, evidence packs, exports and share links"),
  page("verify", "Verify", "recompute chains and check proofs without trusting the operator"),
  page("operate", "Operate", "run the service: settings, health, keys, backups, failures"),
  page("security", "Security", "who may do what, what is protected, and what is not"),
  page("architecture", "Architecture", "the way of an event, the parts, and the rules that hold"),
  page("records", "Records", "what is on the topics, record by record"),
  page("glossary", "Glossary", "the terms of the guide")
]

/** What is looked up rather than read. */
export const referencePages: ReadonlyArray<GuidePage> = [
  page("cli", "Command line", "every command of alk, its options and exit codes"),
  page("console", "Console", "the pages for browsers"),
  page("mapping", "Other systems", "how their audit records become events, for 13 of them"),
  page("traces", "OpenTelemetry spans", "what becomes of what exporters send, what is repaired"),
  page(
    "backup",
    "Backup and restore",
    "copy the log while it runs, restore it, say what is missing"
  ),
  page("partitions", "Partitions", "add some while the service runs, and where a tenant is"),
  page("retention", "Retention", "remove what is old, hold it, delete a tenant"),
  page("forgetting", "Topics that forget", "how erased details leave the topics of Kafka, too"),
  page("alerts", "Alerts", "what each alert means, and what to do"),
  page("settings", "Settings", "every environment variable, what it takes and its default"),
  page("metrics", "Metrics", "every metric of /metrics, its type, unit and labels"),
  page("tampering", "Tamper matrix", "which change is found, by what, and what can't be found"),
  page("speed", "Speed", "what was measured, on what, and how to measure again"),
  {
    name: "decisions",
    file: "decisions/README.md",
    title: "Decisions",
    summary: "why things are as they are, one page for each choice"
  }
]

/** The folder of `docs` whose pages are those that its own list names. */
export const DECISIONS_FOLDER = "decisions"
/** The folder of `docs` that holds the pictures of pages. */
export const PICTURES_FOLDER = "speed"
