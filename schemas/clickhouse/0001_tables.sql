-- The tables of the query store. Each is made of a topic and can be made again from it.

-- alk.events: one row per record. The columns of a row are the event: its JSON (json) is a fixed function
-- of them, see src/adapters/clickhouse/events/EventText.ts; a test compares the two. Nothing but search,
-- the texts that q looks in, is stored twice. actor_email, resource_name and metadata are JSON texts,
-- empty where the member is absent. Hashes and salt are raw bytes, zero where they are absent.
--
-- An event with an erased_at has no details, whatever their columns still hold until they are purged.
-- Erasing is a lightweight update, which needs the two block columns. The row of a record whose details
-- the topic itself has forgotten has version 1, which wins over version 0. With the hash in the key a
-- second row for the same sequence number stays visible.
--
-- The rows of a page are far apart, and of each column a whole compressed block is read for each of them:
-- blocks of one granule instead of 64 KiB halve what a page costs, and take 2 % more room. Dictionaries
-- with more than 8,192 values in a part fall apart, so actor_id has none, and a text index instead.
CREATE TABLE IF NOT EXISTS {{database}}.events{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64 CODEC(Delta, ZSTD(1)),
    version UInt8 DEFAULT erased_at > toDateTime64(0, 6, 'UTC'),
    tenant_id LowCardinality(String),
    sequence_number UInt64 CODEC(Delta, LZ4),
    hash String CODEC(ZSTD(1)),
    id String,
    timestamp DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    created_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    actor_id String,
    actor_type LowCardinality(String),
    actor_email String CODEC(ZSTD(1)),
    action LowCardinality(String),
    resource_id String,
    resource_type LowCardinality(String),
    resource_name String CODEC(ZSTD(1)),
    outcome LowCardinality(String),
    metadata String,
    search String,
    details_salt FixedString(16) CODEC(NONE),
    details_hash FixedString(32) CODEC(NONE),
    content_hash FixedString(32) CODEC(NONE),
    prev_hash FixedString(32) CODEC(NONE),
    erased_at DateTime64(6, 'UTC'),
    json String
        ALIAS concat('{"id":', concat('"', replaceAll(replaceAll(id, '\\', '\\\\'), '"', '\\"'), '"'), ',"timestamp":"', formatDateTime(timestamp, '%Y-%m-%dT%H:%i:%s.%fZ'), '","actor":{"id":', concat('"', replaceAll(replaceAll(actor_id, '\\', '\\\\'), '"', '\\"'), '"'), ',"type":', concat('"', replaceAll(replaceAll(actor_type, '\\', '\\\\'), '"', '\\"'), '"'), if(erased_at > toDateTime64(0, 6, 'UTC'), '', if(actor_email = '', '', concat(',"email":', actor_email))), '},"action":', concat('"', replaceAll(replaceAll(action, '\\', '\\\\'), '"', '\\"'), '"'), ',"resource":{"id":', concat('"', replaceAll(replaceAll(resource_id, '\\', '\\\\'), '"', '\\"'), '"'), ',"type":', concat('"', replaceAll(replaceAll(resource_type, '\\', '\\\\'), '"', '\\"'), '"'), if(erased_at > toDateTime64(0, 6, 'UTC'), '', if(resource_name = '', '', concat(',"name":', resource_name))), '},"outcome":', concat('"', replaceAll(replaceAll(outcome, '\\', '\\\\'), '"', '\\"'), '"'), if(erased_at > toDateTime64(0, 6, 'UTC'), '', if(metadata = '', '', concat(',"metadata":', metadata))), ',"tenant_id":', concat('"', replaceAll(replaceAll(tenant_id, '\\', '\\\\'), '"', '\\"'), '"'), ',"sequence_number":', toString(sequence_number), ',"created_at":"', formatDateTime(created_at, '%Y-%m-%dT%H:%i:%s.%fZ'), '","prev_hash":"', lower(hex(prev_hash)), if(erased_at > toDateTime64(0, 6, 'UTC'), '', if(details_salt = toFixedString('', 16), '', concat('","details_salt":"', lower(hex(details_salt))))), if(details_hash = toFixedString('', 32), '', concat('","details_hash":"', lower(hex(details_hash)))), '","content_hash":"', lower(hex(content_hash)), '","hash":"', hash, if(erased_at > toDateTime64(0, 6, 'UTC'), concat('","erased_at":"', formatDateTime(erased_at, '%Y-%m-%dT%H:%i:%s.%fZ')), ''), '"}'),
    INDEX by_id id TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX by_timestamp timestamp TYPE minmax GRANULARITY 4,
    INDEX text_actor_id actor_id TYPE text(tokenizer = 'array'),
    INDEX text_resource_id resource_id TYPE text(tokenizer = 'array'),
    INDEX by_erased_at erased_at TYPE minmax GRANULARITY 64,
    INDEX by_kafka_offset kafka_offset TYPE minmax GRANULARITY 4
)
ENGINE = {{replicated}}ReplacingMergeTree(version)
ORDER BY (tenant_id, sequence_number, hash)
SETTINGS index_granularity = 512, enable_block_number_column = 1, enable_block_offset_column = 1,
    merge_selector_base = 10, min_compress_block_size = 4096;

-- alk.receipts. A receipt without a time when it was received is kept from now on, not
-- dropped at once. The first of two with one id is the one that was answered.
CREATE TABLE IF NOT EXISTS {{database}}.receipts{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant_id LowCardinality(String),
    receipt_id String,
    body String CODEC(ZSTD(1)),
    received_at DateTime64(6, 'UTC') DEFAULT ifNull(parseDateTime64BestEffortOrNull(JSONExtractString(body, 'received_at'), 6, 'UTC'), now64(6, 'UTC')),
    INDEX by_kafka_offset kafka_offset TYPE minmax GRANULARITY 16
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (tenant_id, receipt_id, kafka_offset)
TTL toDateTime(received_at, 'UTC') + INTERVAL 8 DAY
SETTINGS index_granularity = 128;

-- Records of alk.events that are no part of their chain, with their bytes, whatever these are:
-- verification reports them.
CREATE TABLE IF NOT EXISTS {{database}}.conflicts{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64,
    tenant_id LowCardinality(String),
    sequence_number UInt64,
    reason String,
    body String CODEC(ZSTD(1))
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (tenant_id, sequence_number, kafka_partition, kafka_offset);

-- The same of alk.traces.
CREATE TABLE IF NOT EXISTS {{database}}.fact_conflicts{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64,
    tenant_id LowCardinality(String),
    sequence_number UInt64,
    reason String,
    body String CODEC(ZSTD(1))
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (tenant_id, sequence_number, kafka_partition, kafka_offset);

-- alk.traces: one row per fact, its bytes as they stand in the topic (body), and what questions are asked
-- by, taken out of these bytes by ClickHouse itself. The expressions are the same as in
-- src/adapters/clickhouse/traces/TraceColumns.ts, by which verification computes them again; a test
-- compares the two.
--
-- simdjson refuses a whole document for one integer beyond 64 bits (1e20 is written with its 21 digits in
-- RFC 8785). A document that it refuses is read with `e0` behind each long run of digits outside of
-- strings. The arrayMap over an empty or one-element array is there so that this costs nothing on all
-- other rows.
--
-- scope is 0 for facts of the execution itself, 1 for those of spans, 2 for events of spans, 3 for values
-- that have no room in their span. It stands before the execution in the key, so that a list of
-- executions reads their own facts only; all facts of one execution are four ranges of the key. A value is
-- found by its SHA-256, which is one of the details: it goes when the execution is erased.
--
-- With the hash in the key a second row for the same fact stays visible, and version 1 (the fact
-- without its erased details) wins over version 0 however often the topic is replayed.
--
-- summary is what a fact says of models, tokens, costs, sessions and users, for lists of executions; -1
-- where a number is not said. mac is the MAC of what the fact is: an execution that was put out of memory
-- is continued by facts that have one, because the hashes of a fact hold no secret.
--
-- Which execution a fact belongs to is read of every fact of a tenant where a list asks what their spans
-- say. It is the same text many times in a row: LZ4 reads it in half the time that ZSTD takes, and needs
-- no more room.
CREATE TABLE IF NOT EXISTS {{database}}.facts{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64 CODEC(Delta, ZSTD(1)),
    body String CODEC(ZSTD(1)),
    mac String CODEC(ZSTD(1)),
    readable String
        EPHEMERAL arrayElement(arrayConcat(arrayMap(refused -> replaceAll(replaceAll(replaceRegexpAll(refused, '("(?:[^"\\\\]|\\\\.)*")|([0-9]{19,})', '\\1\\2\x01'), '"\x01', '"'), '\x01', 'e0'), if(isValidJSON(body), [], [body])), [body]), 1),
    fields Tuple(type String, execution_id String, fact_number UInt64, span_id String, root_span_id String, sequence_number UInt64, agent_id String, status String, started_at DateTime64(6, 'UTC'), ended_at DateTime64(6, 'UTC'), tenant_id String, chain_sequence UInt64, prev_hash String, hash String, erased_at String, span_type String, details Tuple(agent_name String))
        EPHEMERAL JSONExtract(readable, 'Tuple(type String, execution_id String, fact_number UInt64, span_id String, root_span_id String, sequence_number UInt64, agent_id String, status String, started_at DateTime64(6, ''UTC''), ended_at DateTime64(6, ''UTC''), tenant_id String, chain_sequence UInt64, prev_hash String, hash String, erased_at String, span_type String, details Tuple(agent_name String))'),
    attribute_texts Array(String)
        EPHEMERAL tupleElement(tupleToNameValuePairs(JSONExtract(readable, 'details', 'metadata', 'attributes', 'Tuple(`alk.model` String, `gen_ai.response.model` String, `gen_ai.request.model` String, `ai.response.model` String, `ai.model.id` String, `llm.model_name` String, `embedding.model_name` String, `reranker.model_name` String, `alk.input_tokens` String, `gen_ai.usage.input_tokens` String, `gen_ai.usage.prompt_tokens` String, `ai.usage.inputTokens` String, `ai.usage.promptTokens` String, `ai.usage.tokens` String, `llm.token_count.prompt` String, `llm.usage.prompt_tokens` String, `alk.output_tokens` String, `gen_ai.usage.output_tokens` String, `gen_ai.usage.completion_tokens` String, `ai.usage.outputTokens` String, `ai.usage.completionTokens` String, `llm.token_count.completion` String, `llm.usage.completion_tokens` String, `alk.session_id` String, `gen_ai.conversation.id` String, `session.id` String, `ai.telemetry.metadata.sessionId` String, `traceloop.association.properties.session_id` String, `alk.user_id` String, `user.id` String, `enduser.id` String, `ai.telemetry.metadata.userId` String, `traceloop.association.properties.user_id` String, `alk.cost` String, `gen_ai.usage.cost` String, `llm.cost.total` String)')), 2),
    metadata_texts Array(String)
        EPHEMERAL tupleElement(tupleToNameValuePairs(JSONExtract(readable, 'details', 'metadata', 'Tuple(`alk.model` String, `gen_ai.response.model` String, `gen_ai.request.model` String, `ai.response.model` String, `ai.model.id` String, `llm.model_name` String, `embedding.model_name` String, `reranker.model_name` String, `alk.input_tokens` String, `gen_ai.usage.input_tokens` String, `gen_ai.usage.prompt_tokens` String, `ai.usage.inputTokens` String, `ai.usage.promptTokens` String, `ai.usage.tokens` String, `llm.token_count.prompt` String, `llm.usage.prompt_tokens` String, `alk.output_tokens` String, `gen_ai.usage.output_tokens` String, `gen_ai.usage.completion_tokens` String, `ai.usage.outputTokens` String, `ai.usage.completionTokens` String, `llm.token_count.completion` String, `llm.usage.completion_tokens` String, `alk.session_id` String, `gen_ai.conversation.id` String, `session.id` String, `ai.telemetry.metadata.sessionId` String, `traceloop.association.properties.session_id` String, `alk.user_id` String, `user.id` String, `enduser.id` String, `ai.telemetry.metadata.userId` String, `traceloop.association.properties.user_id` String, `alk.cost` String, `gen_ai.usage.cost` String, `llm.cost.total` String)')), 2),
    version UInt8 DEFAULT tupleElement(fields, 'erased_at') != '',
    tenant_id LowCardinality(String) DEFAULT tupleElement(fields, 'tenant_id'),
    scope UInt8 DEFAULT multiIf(startsWith(tupleElement(fields, 'type'), 'execution.'), 0, tupleElement(fields, 'type') = 'span.event', 2, tupleElement(fields, 'type') = 'span.payload', 3, 1),
    execution_id String DEFAULT tupleElement(fields, 'execution_id') CODEC(LZ4),
    fact_number UInt64 DEFAULT tupleElement(fields, 'fact_number') CODEC(Delta, ZSTD(1)),
    hash String DEFAULT tupleElement(fields, 'hash') CODEC(ZSTD(1)),
    chain_sequence UInt64 DEFAULT tupleElement(fields, 'chain_sequence') CODEC(Delta, ZSTD(1)),
    type LowCardinality(String) DEFAULT tupleElement(fields, 'type'),
    span_id String DEFAULT if(tupleElement(fields, 'span_id') = '', tupleElement(fields, 'root_span_id'), tupleElement(fields, 'span_id')) CODEC(ZSTD(1)),
    sequence_number UInt64 DEFAULT tupleElement(fields, 'sequence_number') CODEC(Delta, ZSTD(1)),
    agent_id LowCardinality(String) DEFAULT tupleElement(fields, 'agent_id'),
    status LowCardinality(String) DEFAULT tupleElement(fields, 'status'),
    started_at DateTime64(6, 'UTC') DEFAULT tupleElement(fields, 'started_at') CODEC(Delta, ZSTD(1)),
    ended_at DateTime64(6, 'UTC') DEFAULT tupleElement(fields, 'ended_at') CODEC(Delta, ZSTD(1)),
    payload_hash String DEFAULT if(type = 'span.payload', JSONExtractString(body, 'details', 'payload', 'sha256'), '') CODEC(ZSTD(1)),
    summary Tuple(is_call UInt8, input_tokens Int64, output_tokens Int64, cost Float64, model LowCardinality(String), session_id String, user_id String, agent_name String)
        DEFAULT CAST(tuple(type = 'span.started' AND tupleElement(fields, 'span_type') IN ('LLM_CALL', 'EMBEDDING'), ifNull(toInt64OrNull(extract(concat('\0', arrayStringConcat(arrayConcat(arraySlice(attribute_texts, 9, 8), arraySlice(metadata_texts, 9, 8)), '\0\0'), '\0'), '\0([0-9]{1,15})\0')), -1), ifNull(toInt64OrNull(extract(concat('\0', arrayStringConcat(arrayConcat(arraySlice(attribute_texts, 17, 7), arraySlice(metadata_texts, 17, 7)), '\0\0'), '\0'), '\0([0-9]{1,15})\0')), -1), ifNull(toFloat64OrNull(extract(concat('\0', arrayStringConcat(arrayConcat(arraySlice(attribute_texts, 34, 3), arraySlice(metadata_texts, 34, 3)), '\0\0'), '\0'), '\0([0-9]{1,40}(?:[.][0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?)\0')), -1), extract(concat('\0', arrayStringConcat(arrayConcat(arraySlice(attribute_texts, 1, 8), arraySlice(metadata_texts, 1, 8)), '\0\0'), '\0'), '\0([^{[\0][^\0]*)\0'), extract(concat('\0', arrayStringConcat(arrayConcat(arraySlice(attribute_texts, 24, 5), arraySlice(metadata_texts, 24, 5)), '\0\0'), '\0'), '\0([^{[\0][^\0]*)\0'), extract(concat('\0', arrayStringConcat(arrayConcat(arraySlice(attribute_texts, 29, 5), arraySlice(metadata_texts, 29, 5)), '\0\0'), '\0'), '\0([^{[\0][^\0]*)\0'), tupleElement(tupleElement(fields, 'details'), 'agent_name')), 'Tuple(is_call UInt8, input_tokens Int64, output_tokens Int64, cost Float64, model LowCardinality(String), session_id String, user_id String, agent_name String)')
        CODEC(ZSTD(1)),
    INDEX by_chain_sequence chain_sequence TYPE minmax GRANULARITY 1,
    INDEX by_payload_hash payload_hash TYPE bloom_filter GRANULARITY 1
)
ENGINE = {{replicated}}ReplacingMergeTree(version)
PRIMARY KEY (tenant_id, scope, execution_id)
ORDER BY (tenant_id, scope, execution_id, fact_number, hash)
SETTINGS index_granularity = 256, min_compress_block_size = 4096;

-- Which execution holds a span: the ids of all spans in an order of their own, so that thousands of
-- them are looked up at once however many there are. A root that has not arrived is a span too. Filled
-- from the same bytes, before the facts are.
CREATE TABLE IF NOT EXISTS {{database}}.span_ids{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64 CODEC(Delta, ZSTD(1)),
    body String EPHEMERAL,
    readable String
        EPHEMERAL arrayElement(arrayConcat(arrayMap(refused -> replaceAll(replaceAll(replaceRegexpAll(refused, '("(?:[^"\\\\]|\\\\.)*")|([0-9]{19,})', '\\1\\2\x01'), '"\x01', '"'), '\x01', 'e0'), if(isValidJSON(body), [], [body])), [body]), 1),
    fields Tuple(execution_id String, span_id String, root_span_id String, tenant_id String, chain_sequence UInt64)
        EPHEMERAL JSONExtract(readable, 'Tuple(execution_id String, span_id String, root_span_id String, tenant_id String, chain_sequence UInt64)'),
    tenant_id LowCardinality(String) DEFAULT tupleElement(fields, 'tenant_id'),
    span_id String DEFAULT if(tupleElement(fields, 'span_id') = '', tupleElement(fields, 'root_span_id'), tupleElement(fields, 'span_id')) CODEC(ZSTD(1)),
    execution_id String DEFAULT tupleElement(fields, 'execution_id') CODEC(ZSTD(1)),
    chain_sequence UInt64 DEFAULT tupleElement(fields, 'chain_sequence') CODEC(Delta, ZSTD(1))
)
ENGINE = {{replicated}}ReplacingMergeTree
PRIMARY KEY (tenant_id, span_id)
ORDER BY (tenant_id, span_id, execution_id)
SETTINGS index_granularity = 256;

-- alk.checkpoints: one row per record, its bytes as they stand in the topic.
CREATE TABLE IF NOT EXISTS {{database}}.checkpoints{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant_id LowCardinality(String),
    tree_size UInt64 CODEC(Delta, ZSTD(1)),
    body String CODEC(ZSTD(1)),
    chain LowCardinality(String) MATERIALIZED if(JSONExtractString(body, 'chain') = '', 'events', JSONExtractString(body, 'chain')),
    INDEX by_kafka_offset kafka_offset TYPE minmax GRANULARITY 16
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (tenant_id, tree_size, kafka_offset)
SETTINGS index_granularity = 128;

-- Complete subtrees of Merkle trees over 2^8, 2^16 and 2^24 leaves: what proofs would otherwise
-- compute again and again. Computed when first needed; may be emptied at any time. The tree over a
-- tenant's events has the tenant's name, the one over its trace facts <tenant>/traces.
CREATE TABLE IF NOT EXISTS {{database}}.subtrees{{on_cluster}}
(
    tree LowCardinality(String),
    level UInt8,
    node_index UInt64 CODEC(Delta, ZSTD(1)),
    hash FixedString(32)
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (tree, level, node_index)
SETTINGS index_granularity = 256;

-- Rows that a topic has denied, moved here from the table that they stood in (source): the topic
-- ends before their offset (beyond_end), or holds another record there, or none (not_in_topic).
-- Nothing reads them but operators, and erasures, which take the details out of them too (erased).
-- Rows stay until they are deleted by hand. With the digest of the bytes as they were in the key, a
-- move that was broken off and is done again leaves one row.
CREATE TABLE IF NOT EXISTS {{database}}.set_aside{{on_cluster}}
(
    source LowCardinality(String),
    kafka_partition UInt32,
    kafka_offset UInt64,
    tenant_id String,
    -- sequence_number of an event, chain_sequence of a fact, tree_size of a checkpoint.
    sequence_number UInt64,
    -- Id of an event, execution of a fact, id of a receipt, why a conflict did not link.
    detail String,
    reason LowCardinality(String),
    set_aside_at DateTime64(6, 'UTC') DEFAULT now64(6, 'UTC'),
    erased UInt8,
    digest String,
    body String CODEC(ZSTD(1))
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (source, kafka_partition, kafka_offset, digest);
