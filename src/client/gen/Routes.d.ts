/** Made of the OpenAPI document by: npm run generate */
import type {
  AddedPartitions,
  AggregatedDag,
  ApiKey,
  ApiKeyInput,
  ApiKeyList,
  AuditEvent,
  AuditEventInput,
  BatchAccepted,
  BatchArray,
  BatchInput,
  BatchResult,
  Chain,
  CheckpointList,
  Checkpoint_1,
  ConsistencyProof,
  CreatedApiKey,
  CreatedAuditEvent,
  CreatedShareLink,
  Dag,
  DeletionConfirmation,
  ErasedEvent,
  ErasedExecution,
  ErasureInput,
  EventAccepted,
  EventFacets,
  EventListResponse,
  EventStats,
  EventVerifyReport,
  Execution,
  ExecutionDiff,
  ExecutionEnd,
  ExecutionInput,
  ExecutionList,
  ExportJob,
  ExportJobInput,
  ExportJobList,
  ExportLogsServiceRequest,
  ExportLogsServiceResponse,
  ExportMetricsServiceRequest,
  ExportMetricsServiceResponse,
  ExportTraceServiceRequest,
  ExportTraceServiceResponse,
  Health,
  HoldInput,
  InclusionProof,
  KeptInput,
  Landing,
  Me,
  PartitionCounts,
  PartitionsInput,
  PublicKeys,
  QuarantineList,
  QuarantineReason,
  QuarantineReplay,
  QuarantinedCommand,
  Readiness,
  Receipt,
  RetentionInput,
  RetentionReason,
  SessionInput,
  SessionState,
  ShareLink,
  ShareLinkInput,
  ShareLinkList,
  SharedScope,
  ShownCommand,
  Span,
  SpanEnd,
  SpanInput,
  SpanList,
  SpanWithEvents,
  SqlAnswer,
  SqlInput,
  SqlTables,
  Tenant,
  TenantInput,
  TenantList,
  TenantRetention,
  Tombstone,
  TraceBatchAccepted,
  TraceBatchInput,
  TraceBatchResult,
  TraceEraseInput,
  TraceEvent,
  TraceEventArray,
  TraceEventInput,
  TraceEventList,
  TraceEventsInput,
  TraceOperationArray,
  TraceVerifyReport,
  VerifyReport
} from "./Api.d.ts"

/** A value of a parameter; several values are asked for as alternatives. */
export type QueryValue = string | number | boolean | ReadonlyArray<string | number | boolean>

/** No members. */
export type Nothing = Readonly<Record<never, never>>

/** Every route by method and path. */
export interface Routes {
  /** Record one event. */
  "POST /v1/events": {
    path: Nothing
    query: {
      readonly sync?: "true"
      readonly actions?: "noun.verb" | "any"
      readonly numbers?: "exact" | "text"
    }
    body: AuditEventInput
    answer: CreatedAuditEvent | EventAccepted
  }
  /** List events. */
  "GET /v1/events": {
    path: Nothing
    query: {
      readonly sequence_number?: number | ReadonlyArray<number>
      readonly id?: string | ReadonlyArray<string>
      readonly timestamp?: string | ReadonlyArray<string>
      readonly created_at?: string | ReadonlyArray<string>
      readonly actor_id?: string | ReadonlyArray<string>
      readonly actor_type?: "human" | "agent" | "system" | ReadonlyArray<"human" | "agent" | "system">
      readonly actor_email?: string | ReadonlyArray<string>
      readonly action?: string | ReadonlyArray<string>
      readonly resource_id?: string | ReadonlyArray<string>
      readonly resource_type?: string | ReadonlyArray<string>
      readonly resource_name?: string | ReadonlyArray<string>
      readonly outcome?: "success" | "failure" | "error" | ReadonlyArray<"success" | "failure" | "error">
      readonly prev_hash?: string | ReadonlyArray<string>
      readonly hash?: string | ReadonlyArray<string>
      readonly content_hash?: string | ReadonlyArray<string>
      readonly from?: string
      readonly to?: string
      readonly from_sequence?: number
      readonly to_sequence?: number
      readonly q?: string
      readonly where?: string
      readonly order?: "asc" | "desc"
      readonly sort?: "sequence_number" | "timestamp"
      readonly fields?: string
      readonly format?: "json" | "ndjson" | "csv" | "parquet" | "ocsf"
      readonly bom?: boolean
      readonly page?: number
      readonly page_size?: number
      readonly after_sequence?: number
      readonly before_sequence?: number
      readonly [path: `metadata.${string}`]: QueryValue
      /** `!=`, `>=` or `<=` the value: the sign is the end of the name. */
      readonly [condition: `${string}${"!" | ">" | "<"}`]: QueryValue
    }
    body: undefined
    answer: EventListResponse
  }
  /** Record up to 1000 events. */
  "POST /v1/events/batch": {
    path: Nothing
    query: {
      readonly sync?: "true"
      readonly actions?: "noun.verb" | "any"
      readonly numbers?: "exact" | "text"
    }
    body: BatchInput | BatchArray
    answer: BatchResult | BatchAccepted
  }
  /** What became of an ingest request. */
  "GET /v1/receipts/{id}": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: Receipt
  }
  /** Erase the details of an event. */
  "POST /v1/events/{id}/erase": {
    path: {
      readonly id: string
    }
    query: {
      readonly sequence_number?: number
    }
    body: ErasureInput
    answer: ErasedEvent
  }
  /** Count events. */
  "GET /v1/events/stats": {
    path: Nothing
    query: {
      readonly sequence_number?: number | ReadonlyArray<number>
      readonly id?: string | ReadonlyArray<string>
      readonly timestamp?: string | ReadonlyArray<string>
      readonly created_at?: string | ReadonlyArray<string>
      readonly actor_id?: string | ReadonlyArray<string>
      readonly actor_type?: "human" | "agent" | "system" | ReadonlyArray<"human" | "agent" | "system">
      readonly actor_email?: string | ReadonlyArray<string>
      readonly action?: string | ReadonlyArray<string>
      readonly resource_id?: string | ReadonlyArray<string>
      readonly resource_type?: string | ReadonlyArray<string>
      readonly resource_name?: string | ReadonlyArray<string>
      readonly outcome?: "success" | "failure" | "error" | ReadonlyArray<"success" | "failure" | "error">
      readonly prev_hash?: string | ReadonlyArray<string>
      readonly hash?: string | ReadonlyArray<string>
      readonly content_hash?: string | ReadonlyArray<string>
      readonly from?: string
      readonly to?: string
      readonly from_sequence?: number
      readonly to_sequence?: number
      readonly q?: string
      readonly where?: string
      readonly group_by?: string
      readonly interval?: "minute" | "hour" | "day" | "week" | "month"
      readonly measure?: string
      readonly limit?: number
      readonly [path: `metadata.${string}`]: QueryValue
      /** `!=`, `>=` or `<=` the value: the sign is the end of the name. */
      readonly [condition: `${string}${"!" | ">" | "<"}`]: QueryValue
    }
    body: undefined
    answer: EventStats
  }
  /** Values of events. */
  "GET /v1/events/facets": {
    path: Nothing
    query: {
      readonly sequence_number?: number | ReadonlyArray<number>
      readonly id?: string | ReadonlyArray<string>
      readonly timestamp?: string | ReadonlyArray<string>
      readonly created_at?: string | ReadonlyArray<string>
      readonly actor_id?: string | ReadonlyArray<string>
      readonly actor_type?: "human" | "agent" | "system" | ReadonlyArray<"human" | "agent" | "system">
      readonly actor_email?: string | ReadonlyArray<string>
      readonly action?: string | ReadonlyArray<string>
      readonly resource_id?: string | ReadonlyArray<string>
      readonly resource_type?: string | ReadonlyArray<string>
      readonly resource_name?: string | ReadonlyArray<string>
      readonly outcome?: "success" | "failure" | "error" | ReadonlyArray<"success" | "failure" | "error">
      readonly prev_hash?: string | ReadonlyArray<string>
      readonly hash?: string | ReadonlyArray<string>
      readonly content_hash?: string | ReadonlyArray<string>
      readonly from?: string
      readonly to?: string
      readonly from_sequence?: number
      readonly to_sequence?: number
      readonly q?: string
      readonly where?: string
      readonly fields?: string
      readonly limit?: number
      readonly [path: `metadata.${string}`]: QueryValue
      /** `!=`, `>=` or `<=` the value: the sign is the end of the name. */
      readonly [condition: `${string}${"!" | ">" | "<"}`]: QueryValue
    }
    body: undefined
    answer: EventFacets
  }
  /** One event. */
  "GET /v1/events/{id}": {
    path: {
      readonly id: string
    }
    query: {
      readonly sequence_number?: number
    }
    body: undefined
    answer: AuditEvent
  }
  /** Ask by SQL. */
  "POST /v1/sql": {
    path: Nothing
    query: Nothing
    body: SqlInput
    answer: SqlAnswer
  }
  /** Tables and functions of SQL. */
  "GET /v1/sql/tables": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: SqlTables
  }
  /** Verify a range of the chain. */
  "GET /v1/verify": {
    path: Nothing
    query: {
      readonly chain?: "events" | "traces"
      readonly from?: string
      readonly to?: string
      readonly from_sequence?: number
      readonly to_sequence?: number
      readonly require_head?: boolean
      readonly time_limit?: number
    }
    body: undefined
    answer: VerifyReport
  }
  /** Verify what you kept. */
  "POST /v1/verify": {
    path: Nothing
    query: {
      readonly time_limit?: number
    }
    body: KeptInput
    answer: VerifyReport
  }
  /** Verify one event. */
  "GET /v1/verify/events/{id}": {
    path: {
      readonly id: string
    }
    query: {
      readonly sequence_number?: number
    }
    body: undefined
    answer: EventVerifyReport
  }
  /** The tenant's chain. */
  "GET /v1/chain": {
    path: Nothing
    query: {
      readonly chain?: "events" | "traces"
    }
    body: undefined
    answer: Chain
  }
  /** The links of the chain. */
  "GET /v1/chain/links": {
    path: Nothing
    query: {
      readonly chain?: "events" | "traces"
      readonly from_sequence?: number
      readonly limit?: number
    }
    body: undefined
    answer: string
  }
  /** The signed checkpoints of the chain. */
  "GET /v1/chain/checkpoints": {
    path: Nothing
    query: {
      readonly chain?: "events" | "traces"
      readonly before_size?: number
      readonly limit?: number
    }
    body: undefined
    answer: CheckpointList
  }
  /** A signed checkpoint of the whole chain. */
  "GET /v1/chain/checkpoints/latest": {
    path: Nothing
    query: {
      readonly chain?: "events" | "traces"
    }
    body: undefined
    answer: Checkpoint_1
  }
  /** Proof that an event is part of a checkpoint. */
  "GET /v1/chain/proofs/inclusion": {
    path: Nothing
    query: {
      readonly chain?: "events" | "traces"
      readonly sequence_number: number
      readonly tree_size?: number
    }
    body: undefined
    answer: InclusionProof
  }
  /** Proof that one checkpoint only adds to another. */
  "GET /v1/chain/proofs/consistency": {
    path: Nothing
    query: {
      readonly chain?: "events" | "traces"
      readonly first: number
      readonly second?: number
    }
    body: undefined
    answer: ConsistencyProof
  }
  /** The newest checkpoint of a tree, for clients of C2SP tlog-tiles. */
  "GET /v1/tlog/{chain}/checkpoint": {
    path: {
      readonly chain: string
    }
    query: Nothing
    body: undefined
    answer: string
  }
  /** An entry bundle of C2SP tlog-tiles. */
  "GET /v1/tlog/{chain}/tile/entries/{index}": {
    path: {
      readonly chain: string
      readonly index: string
    }
    query: Nothing
    body: undefined
    answer: never
  }
  /** A tile of C2SP tlog-tiles. */
  "GET /v1/tlog/{chain}/tile/{level}/{index}": {
    path: {
      readonly chain: string
      readonly level: string
      readonly index: string
    }
    query: Nothing
    body: undefined
    answer: never
  }
  /** Follow new events. */
  "GET /v1/events/stream": {
    path: Nothing
    query: {
      readonly sequence_number?: number | ReadonlyArray<number>
      readonly id?: string | ReadonlyArray<string>
      readonly timestamp?: string | ReadonlyArray<string>
      readonly created_at?: string | ReadonlyArray<string>
      readonly actor_id?: string | ReadonlyArray<string>
      readonly actor_type?: "human" | "agent" | "system" | ReadonlyArray<"human" | "agent" | "system">
      readonly actor_email?: string | ReadonlyArray<string>
      readonly action?: string | ReadonlyArray<string>
      readonly resource_id?: string | ReadonlyArray<string>
      readonly resource_type?: string | ReadonlyArray<string>
      readonly resource_name?: string | ReadonlyArray<string>
      readonly outcome?: "success" | "failure" | "error" | ReadonlyArray<"success" | "failure" | "error">
      readonly prev_hash?: string | ReadonlyArray<string>
      readonly hash?: string | ReadonlyArray<string>
      readonly content_hash?: string | ReadonlyArray<string>
      readonly from?: string
      readonly to?: string
      readonly from_sequence?: number
      readonly to_sequence?: number
      readonly q?: string
      readonly where?: string
      readonly after_sequence?: number
      readonly lastEventId?: number
      readonly "last-event-id"?: number
      readonly evs_last_event_id?: number
      readonly [path: `metadata.${string}`]: QueryValue
      /** `!=`, `>=` or `<=` the value: the sign is the end of the name. */
      readonly [condition: `${string}${"!" | ">" | "<"}`]: QueryValue
    }
    body: undefined
    answer: string
  }
  /** Evidence pack. */
  "GET /v1/export/evidence-pack": {
    path: Nothing
    query: {
      readonly sequence_number?: number | ReadonlyArray<number>
      readonly id?: string | ReadonlyArray<string>
      readonly timestamp?: string | ReadonlyArray<string>
      readonly created_at?: string | ReadonlyArray<string>
      readonly actor_id?: string | ReadonlyArray<string>
      readonly actor_type?: "human" | "agent" | "system" | ReadonlyArray<"human" | "agent" | "system">
      readonly actor_email?: string | ReadonlyArray<string>
      readonly action?: string | ReadonlyArray<string>
      readonly resource_id?: string | ReadonlyArray<string>
      readonly resource_type?: string | ReadonlyArray<string>
      readonly resource_name?: string | ReadonlyArray<string>
      readonly outcome?: "success" | "failure" | "error" | ReadonlyArray<"success" | "failure" | "error">
      readonly prev_hash?: string | ReadonlyArray<string>
      readonly hash?: string | ReadonlyArray<string>
      readonly content_hash?: string | ReadonlyArray<string>
      readonly from?: string
      readonly to?: string
      readonly from_sequence?: number
      readonly to_sequence?: number
      readonly q?: string
      readonly where?: string
      readonly pdf?: boolean
      readonly [path: `metadata.${string}`]: QueryValue
      /** `!=`, `>=` or `<=` the value: the sign is the end of the name. */
      readonly [condition: `${string}${"!" | ">" | "<"}`]: QueryValue
    }
    body: undefined
    answer: never
  }
  /** SOC 2 audit report. */
  "GET /v1/export/pdf": {
    path: Nothing
    query: {
      readonly sequence_number?: number | ReadonlyArray<number>
      readonly id?: string | ReadonlyArray<string>
      readonly timestamp?: string | ReadonlyArray<string>
      readonly created_at?: string | ReadonlyArray<string>
      readonly actor_id?: string | ReadonlyArray<string>
      readonly actor_type?: "human" | "agent" | "system" | ReadonlyArray<"human" | "agent" | "system">
      readonly actor_email?: string | ReadonlyArray<string>
      readonly action?: string | ReadonlyArray<string>
      readonly resource_id?: string | ReadonlyArray<string>
      readonly resource_type?: string | ReadonlyArray<string>
      readonly resource_name?: string | ReadonlyArray<string>
      readonly outcome?: "success" | "failure" | "error" | ReadonlyArray<"success" | "failure" | "error">
      readonly prev_hash?: string | ReadonlyArray<string>
      readonly hash?: string | ReadonlyArray<string>
      readonly content_hash?: string | ReadonlyArray<string>
      readonly from?: string
      readonly to?: string
      readonly from_sequence?: number
      readonly to_sequence?: number
      readonly q?: string
      readonly where?: string
      readonly [path: `metadata.${string}`]: QueryValue
      /** `!=`, `>=` or `<=` the value: the sign is the end of the name. */
      readonly [condition: `${string}${"!" | ">" | "<"}`]: QueryValue
    }
    body: undefined
    answer: never
  }
  /** Ask for an export. */
  "POST /v1/exports": {
    path: Nothing
    query: Nothing
    body: ExportJobInput
    answer: ExportJob
  }
  /** List the exports. */
  "GET /v1/exports": {
    path: Nothing
    query: {
      readonly page?: number
      readonly page_size?: number
    }
    body: undefined
    answer: ExportJobList
  }
  /** One export. */
  "GET /v1/exports/{id}": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: ExportJob
  }
  /** Cancel or remove an export. */
  "DELETE /v1/exports/{id}": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: undefined
  }
  /** The file of an export. */
  "GET /v1/exports/{id}/file": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: never
  }
  /** Make a share link. */
  "POST /v1/share/links": {
    path: Nothing
    query: Nothing
    body: ShareLinkInput
    answer: CreatedShareLink
  }
  /** List the share links. */
  "GET /v1/share/links": {
    path: Nothing
    query: {
      readonly page?: number
      readonly page_size?: number
    }
    body: undefined
    answer: ShareLinkList
  }
  /** One share link. */
  "GET /v1/share/links/{id}": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: ShareLink
  }
  /** Revoke a share link. */
  "DELETE /v1/share/links/{id}": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: undefined
  }
  /** What a share link covers. */
  "GET /v1/share": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: SharedScope
  }
  /** Verify what a share link covers. */
  "GET /v1/share/verify": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: VerifyReport
  }
  /** The document of a share link. */
  "GET /v1/share/export/pdf": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: never
  }
  /** The evidence pack of a share link. */
  "GET /v1/share/export/evidence-pack": {
    path: Nothing
    query: {
      readonly pdf?: boolean
    }
    body: undefined
    answer: never
  }
  /** The key of this request. */
  "GET /v1/me": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: Me
  }
  /** Sign a browser in. */
  "POST /v1/session": {
    path: Nothing
    query: Nothing
    body: SessionInput
    answer: SessionState
  }
  /** Who is signed in. */
  "GET /v1/session": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: SessionState
  }
  /** Sign out. */
  "DELETE /v1/session": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: undefined
  }
  /** Create a tenant. */
  "POST /v1/admin/tenants": {
    path: Nothing
    query: Nothing
    body: TenantInput
    answer: Tenant
  }
  /** List the tenants. */
  "GET /v1/admin/tenants": {
    path: Nothing
    query: {
      readonly page?: number
      readonly page_size?: number
    }
    body: undefined
    answer: TenantList
  }
  /** One tenant. */
  "GET /v1/admin/tenants/{tenant}": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: undefined
    answer: Tenant
  }
  /** Create an API key. */
  "POST /v1/admin/tenants/{tenant}/keys": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: ApiKeyInput
    answer: CreatedApiKey
  }
  /** List a tenant's API keys. */
  "GET /v1/admin/tenants/{tenant}/keys": {
    path: {
      readonly tenant: string
    }
    query: {
      readonly page?: number
      readonly page_size?: number
    }
    body: undefined
    answer: ApiKeyList
  }
  /** One API key. */
  "GET /v1/admin/tenants/{tenant}/keys/{key}": {
    path: {
      readonly tenant: string
      readonly key: string
    }
    query: Nothing
    body: undefined
    answer: ApiKey
  }
  /** Revoke an API key. */
  "DELETE /v1/admin/tenants/{tenant}/keys/{key}": {
    path: {
      readonly tenant: string
      readonly key: string
    }
    query: Nothing
    body: undefined
    answer: undefined
  }
  /** How many partitions there are. */
  "GET /v1/admin/partitions": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: PartitionCounts
  }
  /** Add partitions. */
  "POST /v1/admin/partitions": {
    path: Nothing
    query: Nothing
    body: PartitionsInput
    answer: AddedPartitions
  }
  /** Retention of a tenant. */
  "GET /v1/admin/tenants/{tenant}/retention": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: undefined
    answer: TenantRetention
  }
  /** Set the retention of a tenant. */
  "PUT /v1/admin/tenants/{tenant}/retention": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: RetentionInput
    answer: TenantRetention
  }
  /** Set a legal hold. */
  "POST /v1/admin/tenants/{tenant}/hold": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: HoldInput
    answer: TenantRetention
  }
  /** Release a legal hold. */
  "POST /v1/admin/tenants/{tenant}/release": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: RetentionReason | undefined
    answer: TenantRetention
  }
  /** Ask for a tenant to be deleted. */
  "POST /v1/admin/tenants/{tenant}/deletion": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: RetentionReason | undefined
    answer: TenantRetention
  }
  /** Take back that a tenant be deleted. */
  "DELETE /v1/admin/tenants/{tenant}/deletion": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: undefined
    answer: undefined
  }
  /** Delete a tenant. */
  "POST /v1/admin/tenants/{tenant}/deletion/confirm": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: DeletionConfirmation
    answer: Tombstone
  }
  /** What is left of a deleted tenant. */
  "GET /v1/admin/tenants/{tenant}/tombstone": {
    path: {
      readonly tenant: string
    }
    query: Nothing
    body: undefined
    answer: Tombstone
  }
  /** List commands in quarantine. */
  "GET /v1/admin/quarantine": {
    path: Nothing
    query: {
      readonly page?: number
      readonly page_size?: number
      readonly state?: "open" | "replayed" | "dropped" | "all"
    }
    body: undefined
    answer: QuarantineList
  }
  /** One command in quarantine. */
  "GET /v1/admin/quarantine/{id}": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: ShownCommand
  }
  /** Submit a command again. */
  "POST /v1/admin/quarantine/{id}/replay": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: QuarantineReason | undefined
    answer: QuarantineReplay
  }
  /** Drop a command. */
  "POST /v1/admin/quarantine/{id}/drop": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: QuarantineReason | undefined
    answer: QuarantinedCommand
  }
  /** Start an execution. */
  "POST /api/v1/executions": {
    path: Nothing
    query: Nothing
    body: ExecutionInput
    answer: Execution
  }
  /** List executions. */
  "GET /api/v1/executions": {
    path: Nothing
    query: {
      readonly status?: string
      readonly agent_id?: string
      readonly name?: string
      readonly model?: string
      readonly session_id?: string
      readonly user_id?: string
      readonly from?: string
      readonly to?: string
      readonly has_error?: boolean
      readonly min_duration_ms?: number
      readonly min_tokens?: number
      readonly sort?: "started_at" | "duration" | "errors" | "tokens" | "cost"
      readonly order?: "asc" | "desc"
      readonly page?: number
      readonly page_size?: number
    }
    body: undefined
    answer: ExecutionList
  }
  /** One execution. */
  "GET /api/v1/executions/{id}": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: Execution
  }
  /** End an execution. */
  "PUT /api/v1/executions/{id}/end": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: ExecutionEnd | undefined
    answer: Execution
  }
  /** Erase what an execution says. */
  "POST /api/v1/executions/{id}/erase": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: TraceEraseInput
    answer: ErasedExecution
  }
  /** Start a span. */
  "POST /api/v1/executions/{id}/spans": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: SpanInput
    answer: Span
  }
  /** The spans of an execution. */
  "GET /api/v1/executions/{id}/spans": {
    path: {
      readonly id: string
    }
    query: {
      readonly cursor?: string
      readonly page_size?: number
    }
    body: undefined
    answer: SpanList
  }
  /** What caused what. */
  "GET /api/v1/executions/{id}/dag": {
    path: {
      readonly id: string
    }
    query: {
      readonly edges?: "recorded" | "inferred"
    }
    body: undefined
    answer: Dag
  }
  /** What caused what, aggregated. */
  "GET /api/v1/executions/{id}/dag/aggregated": {
    path: {
      readonly id: string
    }
    query: {
      readonly edges?: "recorded" | "inferred"
    }
    body: undefined
    answer: AggregatedDag
  }
  /** Compare two executions. */
  "GET /api/v1/executions/{id}/diff/{other}": {
    path: {
      readonly id: string
      readonly other: string
    }
    query: {
      readonly all?: boolean
      readonly limit?: number
    }
    body: undefined
    answer: ExecutionDiff
  }
  /** Follow an execution. */
  "GET /api/v1/executions/{id}/stream": {
    path: {
      readonly id: string
    }
    query: {
      readonly after_sequence?: number
      readonly lastEventId?: number
      readonly "last-event-id"?: number
      readonly evs_last_event_id?: number
    }
    body: undefined
    answer: string
  }
  /** A value that a span or event refers to. */
  "GET /api/v1/payloads/{sha256}": {
    path: {
      readonly sha256: string
    }
    query: Nothing
    body: undefined
    answer: string
  }
  /** Verify an execution. */
  "GET /api/v1/executions/{id}/verify": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: TraceVerifyReport
  }
  /** One span. */
  "GET /api/v1/spans/{id}": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: undefined
    answer: SpanWithEvents
  }
  /** End a span. */
  "PUT /api/v1/spans/{id}/end": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: SpanEnd | undefined
    answer: Span
  }
  /** Record what happened in a span. */
  "POST /api/v1/spans/{id}/events": {
    path: {
      readonly id: string
    }
    query: Nothing
    body: TraceEventInput | TraceEventsInput | TraceEventArray
    answer: TraceEvent | TraceBatchResult | TraceEvent
  }
  /** The events of a span. */
  "GET /api/v1/spans/{id}/events": {
    path: {
      readonly id: string
    }
    query: {
      readonly cursor?: string
      readonly page_size?: number
      readonly execution_id?: string
    }
    body: undefined
    answer: TraceEventList
  }
  /** Up to 1000 operations at once. */
  "POST /api/v1/traces/batch": {
    path: Nothing
    query: {
      readonly sync?: "true"
    }
    body: TraceBatchInput | TraceOperationArray
    answer: TraceBatchResult | TraceBatchAccepted
  }
  /** Export OpenTelemetry spans (OTLP/HTTP). */
  "POST /v1/traces": {
    path: Nothing
    query: Nothing
    body: ExportTraceServiceRequest
    answer: ExportTraceServiceResponse
  }
  /** Export OpenTelemetry logs of models (OTLP/HTTP). */
  "POST /v1/logs": {
    path: Nothing
    query: Nothing
    body: ExportLogsServiceRequest
    answer: ExportLogsServiceResponse
  }
  /** Refuse OpenTelemetry metrics (OTLP/HTTP). */
  "POST /v1/metrics": {
    path: Nothing
    query: Nothing
    body: ExportMetricsServiceRequest
    answer: ExportMetricsServiceResponse
  }
  /** Where everything is. */
  "GET /": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: Landing
  }
  /** Reference page. */
  "GET /docs": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: string
  }
  /** This document. */
  "GET /openapi.json": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: Readonly<Record<string, unknown>>
  }
  /** The topics. */
  "GET /asyncapi.yaml": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: string
  }
  /** Liveness. */
  "GET /healthz": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: Health
  }
  /** Readiness. */
  "GET /readyz": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: Readiness
  }
  /** Metrics. */
  "GET /metrics": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: string
  }
  /** Public keys. */
  "GET /.well-known/alk-keys.json": {
    path: Nothing
    query: Nothing
    body: undefined
    answer: PublicKeys
  }
}
