-- The view of alk.checkpoints: one row per record, its bytes as they stand in the topic.
CREATE TABLE IF NOT EXISTS {{database}}.checkpoints{{on_cluster}}
(
    kafka_partition UInt32,
    kafka_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant_id LowCardinality(String),
    tree_size UInt64 CODEC(Delta, ZSTD(1)),
    body String CODEC(ZSTD(1)),
    INDEX by_kafka_offset kafka_offset TYPE minmax GRANULARITY 16
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (tenant_id, tree_size, kafka_offset)
SETTINGS index_granularity = 128;
-- Complete subtrees of the tenants' Merkle trees over 2^8, 2^16 and 2^24 events: what proofs would
-- otherwise compute again and again. Made of the events when it is first needed; may be emptied at
-- any time.
CREATE TABLE IF NOT EXISTS {{database}}.tree_nodes{{on_cluster}}
(
    tenant_id LowCardinality(String),
    level UInt8,
    node_index UInt64 CODEC(Delta, ZSTD(1)),
    hash FixedString(32)
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (tenant_id, level, node_index)
SETTINGS index_granularity = 256;
