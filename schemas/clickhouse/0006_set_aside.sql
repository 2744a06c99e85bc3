-- Rows that a topic has denied, moved here from the table that they stood in (source): the topic
-- ends before their offset (beyond_end), or holds another record there, or none (not_in_topic).
-- Nothing reads them but operators, and erasures, which take the details out of them too (erased).
-- Rows stay until somebody deletes them. With the digest of the bytes as they were in the key, a
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
