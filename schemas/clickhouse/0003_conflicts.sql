-- Records of alk.events that did not link to the one before them, with their bytes, whatever these
-- are: verification reports them.
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
