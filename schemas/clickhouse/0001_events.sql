-- The view of alk.events: one row per record, its bytes as they stand in the topic (body), and what
-- lists filter by, taken out of these bytes by ClickHouse itself. The expressions are the same as in
-- src/adapters/clickhouse/EventColumns.ts, by which verification computes them again; a test
-- compares the two.
--
-- simdjson refuses a whole document for one integer beyond 64 bits (1e20 is written with its 21
-- digits in RFC 8785). A document that it refuses is read with `e0` behind each long run of digits
-- outside of strings. The arrayMap over an empty or one-element array is there so that this costs
-- nothing on all other rows.
--
-- With the hash in the key a second row for the same sequence number stays visible, and version 1
-- (the event without its erased details) wins over version 0 however often the topic is replayed.
CREATE TABLE IF NOT EXISTS {{database}}.events{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64 CODEC(Delta, ZSTD(1)),
    body String CODEC(ZSTD(1)),
    readable String
        EPHEMERAL arrayElement(arrayConcat(arrayMap(refused -> replaceAll(replaceAll(replaceRegexpAll(refused, '("(?:[^"\\\\]|\\\\.)*")|([0-9]{19,})', '\\1\\2\x01'), '"\x01', '"'), '\x01', 'e0'), if(isValidJSON(body), [], [body])), [body]), 1),
    fields Tuple(id String, timestamp DateTime64(6, 'UTC'), actor Tuple(id String, type String, email String), action String, resource Tuple(id String, type String, name String), outcome String, metadata String, tenant_id String, sequence_number UInt64, created_at DateTime64(6, 'UTC'), hash String, erased_at String)
        EPHEMERAL JSONExtract(readable, 'Tuple(id String, timestamp DateTime64(6, ''UTC''), actor Tuple(id String, type String, email String), action String, resource Tuple(id String, type String, name String), outcome String, metadata String, tenant_id String, sequence_number UInt64, created_at DateTime64(6, ''UTC''), hash String, erased_at String)'),
    version UInt8 DEFAULT tupleElement(fields, 'erased_at') != '',
    tenant_id LowCardinality(String) DEFAULT tupleElement(fields, 'tenant_id'),
    sequence_number UInt64 DEFAULT tupleElement(fields, 'sequence_number') CODEC(Delta, ZSTD(1)),
    hash String DEFAULT tupleElement(fields, 'hash'),
    id String DEFAULT tupleElement(fields, 'id'),
    timestamp DateTime64(6, 'UTC') DEFAULT tupleElement(fields, 'timestamp') CODEC(Delta, ZSTD(1)),
    created_at DateTime64(6, 'UTC') DEFAULT tupleElement(fields, 'created_at') CODEC(Delta, ZSTD(1)),
    actor_id LowCardinality(String) DEFAULT tupleElement(tupleElement(fields, 'actor'), 'id'),
    actor_type LowCardinality(String) DEFAULT tupleElement(tupleElement(fields, 'actor'), 'type'),
    action LowCardinality(String) DEFAULT tupleElement(fields, 'action'),
    resource_id String DEFAULT tupleElement(tupleElement(fields, 'resource'), 'id'),
    resource_type LowCardinality(String) DEFAULT tupleElement(tupleElement(fields, 'resource'), 'type'),
    outcome LowCardinality(String) DEFAULT tupleElement(fields, 'outcome'),
    metadata String DEFAULT arrayElement(arrayConcat(arrayMap(refused -> replaceAll(replaceAll(replaceRegexpAll(refused, '("(?:[^"\\\\]|\\\\.)*")|([0-9]{19,})', '\\1\\2\x01'), '"\x01', '"'), '\x01', 'e0'), if(isValidJSON(body), [], [tupleElement(fields, 'metadata')])), [tupleElement(fields, 'metadata')]), 1),
    search String DEFAULT lowerUTF8(arrayStringConcat(arrayConcat([tupleElement(fields, 'action'), tupleElement(tupleElement(fields, 'actor'), 'id'), tupleElement(tupleElement(fields, 'actor'), 'email'), tupleElement(tupleElement(fields, 'resource'), 'id'), tupleElement(tupleElement(fields, 'resource'), 'type'), tupleElement(tupleElement(fields, 'resource'), 'name')], JSONExtract(concat('[', arrayStringConcat(arrayFilter(token -> NOT endsWith(token, ':'), extractAll(tupleElement(fields, 'metadata'), '"(?:[^"\\\\]|\\\\.)*":?')), ','), ']'), 'Array(String)')), '\0')),
    INDEX by_id id TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX by_actor_id actor_id TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX by_resource_id resource_id TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX by_timestamp timestamp TYPE minmax GRANULARITY 4
)
ENGINE = {{replicated}}ReplacingMergeTree(version)
ORDER BY (tenant_id, sequence_number, hash)
SETTINGS index_granularity = 512;
