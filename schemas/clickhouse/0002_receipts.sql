-- The view of alk.receipts. A receipt that can't say when it was received is kept from now on, not
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
