-- The view of alk.traces: one row per fact, its bytes as they stand in the topic (body), and what
-- questions are asked by, taken out of these bytes by ClickHouse itself. The expressions are the same
-- as in src/adapters/clickhouse/TraceColumns.ts, by which verification computes them again; a test
-- compares the two. What `readable` is for, 0001_events.sql says.
--
-- scope is 0 for facts of the execution itself, 1 for those of spans, 2 for events of spans. It stands
-- before the execution in the key, so that a list of executions reads their own facts only, and nothing
-- of the spans and events between them; all facts of one execution are three ranges of the key.
--
-- With the hash in the key a second row for the same fact stays visible, and version 1 (the fact
-- without its erased details) wins over version 0 however often the topic is replayed.
CREATE TABLE IF NOT EXISTS {{database}}.facts{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64 CODEC(Delta, ZSTD(1)),
    body String CODEC(ZSTD(1)),
    readable String
        EPHEMERAL arrayElement(arrayConcat(arrayMap(refused -> replaceAll(replaceAll(replaceRegexpAll(refused, '("(?:[^"\\\\]|\\\\.)*")|([0-9]{19,})', '\\1\\2\x01'), '"\x01', '"'), '\x01', 'e0'), if(isValidJSON(body), [], [body])), [body]), 1),
    fields Tuple(type String, execution_id String, fact_number UInt64, span_id String, root_span_id String, sequence_number UInt64, agent_id String, status String, started_at DateTime64(6, 'UTC'), ended_at DateTime64(6, 'UTC'), tenant_id String, chain_sequence UInt64, prev_hash String, hash String, erased_at String)
        EPHEMERAL JSONExtract(readable, 'Tuple(type String, execution_id String, fact_number UInt64, span_id String, root_span_id String, sequence_number UInt64, agent_id String, status String, started_at DateTime64(6, ''UTC''), ended_at DateTime64(6, ''UTC''), tenant_id String, chain_sequence UInt64, prev_hash String, hash String, erased_at String)'),
    version UInt8 DEFAULT tupleElement(fields, 'erased_at') != '',
    tenant_id LowCardinality(String) DEFAULT tupleElement(fields, 'tenant_id'),
    scope UInt8 DEFAULT multiIf(startsWith(tupleElement(fields, 'type'), 'execution.'), 0, tupleElement(fields, 'type') = 'span.event', 2, 1),
    execution_id String DEFAULT tupleElement(fields, 'execution_id') CODEC(ZSTD(1)),
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
    INDEX by_chain_sequence chain_sequence TYPE minmax GRANULARITY 1
)
ENGINE = {{replicated}}ReplacingMergeTree(version)
PRIMARY KEY (tenant_id, scope, execution_id)
ORDER BY (tenant_id, scope, execution_id, fact_number, hash)
SETTINGS index_granularity = 256;

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
