/**
 * Every metric of `/metrics`, once: name, type, unit, meaning and labels. The program makes its
 * metrics of this table, and docs/metrics.md is generated from it. Labels say routes, codes, topics
 * and numbers; never tenants, ids or anything else that a client chose.
 */

import { topicKinds } from "../records/Topics.ts"

export interface MetricEntry {
  readonly type: "counter" | "gauge" | "histogram"
  /** What one is; the names of seconds and bytes end with it. */
  readonly unit: string
  readonly help: string
  /** What each label says. */
  readonly labels?: Readonly<Record<string, string>>
  /** Values of the only label that are shown as 0 from the start; others may follow. */
  readonly from?: ReadonlyArray<string>
  /** Upper bounds of a histogram, in its unit. */
  readonly boundaries?: ReadonlyArray<number>
  /** Where it is missing, or since when it is there; without this it is there from the start. */
  readonly shown?: string
}

/** Upper bounds in seconds: from an answer out of memory to the longest wait for a commit. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Upper bounds in seconds of a transaction. */
const COMMIT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Upper bounds in seconds of an insert. */
const INSERT_SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
const INSERT_ROWS = [1, 10, 100, 1_000, 5_000, 10_000, 25_000, 50_000]

const PARTITION = { partition: "number of the partition" }
const API = "in processes with the role api"
const SEQUENCER = "in processes with the role sequencer"
const PROJECTION = "in processes with the role projection"
const FOLDER = "in the process that has the data folder, measured every minute"
const LINUX = "on Linux"
const LATER = "once there was one"

const entries = {
  alk_build_info: {
    type: "gauge",
    unit: "1",
    help: "1, with the versions of alk and of the Node that runs it.",
    labels: { version: "version of alk", node: "version of Node" }
  },
  alk_component_info: {
    type: "gauge",
    unit: "1",
    help: "1, with the name and the version of a program that this process works with.",
    labels: { component: "`kafka` (the embedded one) or `clickhouse`", version: "its version" },
    shown: "in processes that know it"
  },
  process_cpu_seconds_total: {
    type: "counter",
    unit: "seconds",
    help: "Processor time of the process, of all its threads."
  },
  process_open_fds: {
    type: "gauge",
    unit: "files",
    help: "Files and sockets that the process has open.",
    shown: LINUX
  },
  process_max_fds: {
    type: "gauge",
    unit: "files",
    help: "Files and sockets that the process may have open.",
    shown: LINUX
  },
  process_resident_memory_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "Memory of the process that is in RAM."
  },
  process_start_time_seconds: {
    type: "gauge",
    unit: "seconds",
    help: "When the process started, seconds since 1970."
  },
  alk_memory_limit_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "Memory that the process may take: that of its control group, or of the machine."
  },
  nodejs_heap_size_used_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "Memory of the heap that is in use."
  },
  nodejs_heap_size_total_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "Memory of the heap."
  },
  nodejs_heap_size_limit_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "What the heap may grow to; at that size the process ends."
  },
  nodejs_external_memory_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "Memory of buffers outside of the heap."
  },
  nodejs_gc_duration_seconds: {
    type: "histogram",
    unit: "seconds",
    help: "Time of one garbage collection.",
    labels: { kind: "`minor`, `major`, `incremental` or `weak_callbacks`" },
    boundaries: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1],
    shown: LATER
  },
  nodejs_eventloop_lag_mean_seconds: {
    type: "gauge",
    unit: "seconds",
    help: "How late the event loop was on average in the last 15 seconds."
  },
  nodejs_eventloop_lag_p99_seconds: {
    type: "gauge",
    unit: "seconds",
    help: "How late the event loop was at most in 99 of 100 looks of the last 15 seconds."
  },
  nodejs_eventloop_lag_max_seconds: {
    type: "gauge",
    unit: "seconds",
    help: "How late the event loop was at most in the last 15 seconds."
  },
  alk_broker_reachable: {
    type: "gauge",
    unit: "1",
    help: "1 if Kafka has answered within 5 seconds, else 0; asked every 5 seconds.",
    shown: "in processes with a role other than store"
  },
  alk_store_reachable: {
    type: "gauge",
    unit: "1",
    help: "1 if ClickHouse has answered within 5 seconds, else 0; asked every 5 seconds.",
    shown: "in processes that use the store"
  },
  alk_partitions: {
    type: "gauge",
    unit: "partitions",
    help: "Partitions of each topic.",
    shown: "in processes with a role other than store"
  },
  alk_http_requests_total: {
    type: "counter",
    unit: "requests",
    help: "Requests answered.",
    labels: {
      method: "method",
      route: "template of the route, or `unknown`",
      status: "status; 499 if the client had gone"
    },
    shown: LATER
  },
  alk_http_request_duration_seconds: {
    type: "histogram",
    unit: "seconds",
    help: "Seconds from the request's head to the end of its answer, streams included.",
    labels: { method: "method", route: "template of the route, or `unknown`" },
    boundaries: REQUEST_SECONDS,
    shown: LATER
  },
  alk_http_refusals_total: {
    type: "counter",
    unit: "requests",
    help: "Requests answered with an error.",
    labels: { route: "template of the route, or `unknown`", code: "error code" },
    shown: LATER
  },
  alk_http_body_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "Bytes that the bodies of requests in flight take of ALK_BODY_BUDGET_BYTES.",
    shown: API
  },
  alk_http_failed_credentials_total: {
    type: "counter",
    unit: "keys",
    help: "Wrong keys and tokens, by the status that they were answered with.",
    labels: { answer: "401, or 429 where one address has sent too many" },
    from: ["401", "429"]
  },
  alk_ingest_accepted_items_total: {
    type: "counter",
    unit: "items",
    help: "Items that passed validation and were written to the log."
  },
  alk_ingest_prepared_items_total: {
    type: "counter",
    unit: "items",
    help: "Items read and checked, by path.",
    labels: { path: "`fast` is WebAssembly, `slow` is TypeScript" },
    from: ["fast", "slow"]
  },
  alk_ingest_rejected_items_total: {
    type: "counter",
    unit: "items",
    help: "Items of written requests that were rejected: by validation, or by the sequencer.",
    labels: { code: "error code" },
    from: [
      "already_ended",
      "cycle_detected",
      "event_too_large",
      "id_conflict",
      "invalid_action",
      "invalid_json",
      "invalid_request",
      "invalid_timestamp",
      "invalid_value",
      "metadata_too_large",
      "missing_field",
      "not_found",
      "payload_too_large",
      "unavailable",
      "unreadable_command",
      "unstorable_value"
    ]
  },
  alk_ingest_duration_seconds: {
    type: "histogram",
    unit: "seconds",
    help: "Seconds from a prepared request to what was waited for.",
    labels: { until: "`written`, or `visible` with sync=true" },
    boundaries: REQUEST_SECONDS,
    shown: LATER
  },
  alk_otlp_values_cut_total: {
    type: "counter",
    unit: "values",
    help: "Values of OpenTelemetry spans that were too large, of which the beginning is kept."
  },
  alk_repairs_total: {
    type: "counter",
    unit: "repairs",
    help: "Parts of OpenTelemetry spans that were repaired so that they could be stored.",
    labels: { code: "[code](traces.md#repairs)" },
    shown: LATER
  },
  alk_otlp_values_apart_total: {
    type: "counter",
    unit: "values",
    help: "Values of OpenTelemetry spans that are stored apart from their span, whole."
  },
  alk_live_subscribers: {
    type: "gauge",
    unit: "streams",
    help: "Open live streams of this process.",
    shown: API
  },
  alk_live_readers_closed_total: {
    type: "counter",
    unit: "streams",
    help: "Live streams closed because their reader did not keep up.",
    labels: { reason: "`behind`, `late`, `memory` or `stalled`" },
    from: ["behind", "late", "memory", "stalled"]
  },
  alk_exports_total: {
    type: "counter",
    unit: "exports",
    help: "Exports in the background that have ended in this process.",
    labels: { status: "`done`, `failed` or `cancelled`" },
    from: ["done", "failed", "cancelled"]
  },
  alk_exports_under_way: {
    type: "gauge",
    unit: "exports",
    help: "Exports in the background that wait or run in this process.",
    shown: API
  },
  alk_events_committed_total: {
    type: "counter",
    unit: "events",
    help: "Events committed to the log by the sequencers of this process."
  },
  alk_events_deduplicated_total: {
    type: "counter",
    unit: "events",
    help: "Events that were there already, by id and content."
  },
  alk_trace_facts_committed_total: {
    type: "counter",
    unit: "facts",
    help: "Trace facts committed to the log by the sequencers of this process."
  },
  alk_commands_quarantined_total: {
    type: "counter",
    unit: "commands",
    help: "Commands that could not be applied and were set aside."
  },
  alk_quarantine_open_commands: {
    type: "gauge",
    unit: "commands",
    help: "Commands in quarantine that were neither replayed nor dropped; of the newest 10,000.",
    shown: API
  },
  alk_retention_kept_chains: {
    type: "gauge",
    unit: "chains",
    help: "Chains whose beginning is kept beyond its retention because it does not verify.",
    shown: API
  },
  alk_commit_duration_seconds: {
    type: "histogram",
    unit: "seconds",
    help: "Time of one sequencer transaction, from the chunk to the commit.",
    boundaries: COMMIT_SECONDS
  },
  alk_sequencer_partitions: {
    type: "gauge",
    unit: "partitions",
    help: "Partitions that this process sequences.",
    shown: SEQUENCER
  },
  alk_sequencer_restarts_total: {
    type: "counter",
    unit: "restarts",
    help: "Sequencers of a partition that have failed and started over."
  },
  alk_sequencer_lag_commands: {
    type: "gauge",
    unit: "commands",
    help: "Commands written but not applied yet.",
    labels: PARTITION,
    shown: SEQUENCER
  },
  alk_sequencer_trace_entries: {
    type: "gauge",
    unit: "entries",
    help: "Executions and spans that the sequencer has in memory.",
    labels: PARTITION,
    shown: SEQUENCER
  },
  alk_checkpoint_newest_timestamp_seconds: {
    type: "gauge",
    unit: "seconds",
    help: "When this process signed a checkpoint last, seconds since 1970.",
    shown: LATER
  },
  alk_projection_partitions: {
    type: "gauge",
    unit: "partitions",
    help: "Partitions that this process projects.",
    shown: PROJECTION
  },
  alk_projection_restarts_total: {
    type: "counter",
    unit: "restarts",
    help: "Projections that have failed and started over."
  },
  alk_follower_following: {
    type: "gauge",
    unit: "1",
    help: "1 if this process follows the log, 0 while it can't.",
    shown: API
  },
  alk_projection_lag_records: {
    type: "gauge",
    unit: "records",
    help: "Records of alk.events that are committed but not queryable yet.",
    labels: PARTITION,
    shown: PROJECTION
  },
  alk_projection_flush_rows: {
    type: "histogram",
    unit: "rows",
    help: "Rows in one insert of the projection.",
    boundaries: INSERT_ROWS
  },
  alk_projection_flush_duration_seconds: {
    type: "histogram",
    unit: "seconds",
    help: "Time of one insert of the projection.",
    boundaries: INSERT_SECONDS
  },
  alk_records_malformed_total: {
    type: "counter",
    unit: "records",
    help: "Records that can't be read, or that no process of alk has written: passed over.",
    labels: { topic: "topic" },
    from: [...topicKinds]
  },
  alk_rows_set_aside_total: {
    type: "counter",
    unit: "rows",
    help: "Rows of the store that the topics deny.",
    labels: { table: "where they were" },
    from: ["events", "conflicts", "facts", "fact_conflicts", "checkpoints", "receipts"]
  },
  alk_self_verification_events_total: {
    type: "counter",
    unit: "events",
    help: "Events that self-verification has recomputed."
  },
  alk_self_verification_breaks_total: {
    type: "counter",
    unit: "breaks",
    help: "Breaks that self-verification has found, each time it did."
  },
  alk_self_verification_broken_tenants: {
    type: "gauge",
    unit: "chains",
    help: "Chains with a break that no clean pass has followed.",
    shown: "in processes with the role api, once a chain was looked at"
  },
  alk_self_verification_oldest_pass_timestamp_seconds: {
    type: "gauge",
    unit: "seconds",
    help: "When the chain that waits longest was last gone through as a whole; 0 while one never was.",
    shown: "in processes with the role api, once a chain was looked at"
  },
  alk_data_free_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "What the disk of the data folder has left for this user.",
    shown: FOLDER
  },
  alk_data_disk_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "Size of the disk of the data folder.",
    shown: FOLDER
  },
  alk_data_folder_bytes: {
    type: "gauge",
    unit: "bytes",
    help: "What the files of the data folder take: log, store and keys.",
    shown: FOLDER
  },
  alk_worker_restarts_total: {
    type: "counter",
    unit: "processes",
    help: "Workers that ended or hung and were started again."
  },
  alk_workers_listening: {
    type: "gauge",
    unit: "processes",
    help: "Workers that listen, beside the first process.",
    shown: "with ALK_WORKERS"
  }
} as const satisfies Readonly<Record<string, MetricEntry>>

type Entries = typeof entries
export type MetricName = keyof Entries
export type NameOf<Type extends MetricEntry["type"]> = {
  [Name in MetricName]: Entries[Name]["type"] extends Type ? Name : never
}[MetricName]

/** All of them by name, in the order of docs/metrics.md. */
export const metricTable: Readonly<Record<MetricName, MetricEntry>> = entries
