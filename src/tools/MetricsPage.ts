/** docs/metrics.md, made of the table of metrics. Writes nothing itself. */
import { type MetricEntry, metricTable } from "../domain/metrics/MetricTable.ts"

export const METRICS_PAGE_FILE = "docs/metrics.md"

const INTRODUCTION = `# Metrics

What \`GET /metrics\` serves: each metric with its type, unit and labels. Made of the program's own table by
\`npm run generate\`.

The text format is that of Prometheus (0.0.4). With \`ALK_WORKERS\` each sample has the label \`worker\` too; 0
is the first process. A histogram is served as \`_bucket\`, \`_sum\` and \`_count\`. No label holds a tenant, an id
or anything else that a client chose. What to do about them, [operate](operate.md#what-to-watch) says.
\`docker/grafana/alk.json\` is a dashboard for Grafana, \`docker/prometheus/alerts.yaml\` has the rules of the
[alerts](alerts.md). Neither has been loaded into Grafana or Prometheus: none was at hand where alk was built.
`

const labelsOf = ({ labels = {} }: MetricEntry): string =>
  Object.entries(labels)
    .map(([name, about]) => `\`${name}\`: ${about}`)
    .join("; ")

const row = ([name, entry]: readonly [string, MetricEntry]): string => {
  const { help, shown, type, unit } = entry
  const about = shown === undefined ? help : `${help} Shown ${shown}.`
  return `| \`${name}\` | ${type} | ${unit} | ${about} | ${labelsOf(entry)} |\n`
}

/** What the name of a metric is sorted under: its first words. */
const groupOf = (name: string): string => /^(?:alk_)?[a-z]+/.exec(name)![0]

/** Titles of the groups; those of other names share the last. */
const titles: Readonly<Record<string, string>> = {
  alk_http: "Requests",
  alk_ingest: "Ingest",
  alk_otlp: "Ingest",
  alk_live: "Streams",
  alk_export: "Exports",
  alk_exports: "Exports",
  alk_events: "Sequencer",
  alk_trace: "Sequencer",
  alk_commands: "Sequencer",
  alk_commit: "Sequencer",
  alk_quarantine: "Sequencer",
  alk_sequencer: "Sequencer",
  alk_checkpoint: "Sequencer",
  alk_projection: "Projection",
  alk_records: "Projection",
  alk_rows: "Projection",
  alk_self: "Self-verification"
}

const OTHERS = "Process and machine"

/** The page: a table for each group. */
export const metricsPage = (): string => {
  const groups = new Map<string, string>([[OTHERS, ""]])
  for (const entry of Object.entries(metricTable)) {
    const title = titles[groupOf(entry[0])] ?? OTHERS
    groups.set(title, (groups.get(title) ?? "") + row(entry))
  }
  const head = "| metric | type | unit | what it is | labels |\n|---|---|---|---|---|\n"
  return [
    INTRODUCTION,
    ...[...groups].map(([title, rows]) => `\n## ${title}\n\n${head}${rows}`)
  ].join("")
}
