-- Checkpoints of trace facts beside those of events: which chain a checkpoint is of.
ALTER TABLE {{database}}.checkpoints{{on_cluster}}
    ADD COLUMN IF NOT EXISTS chain LowCardinality(String) MATERIALIZED if(JSONExtractString(body, 'chain') = '', 'events', JSONExtractString(body, 'chain'));

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

DROP TABLE IF EXISTS {{database}}.tree_nodes{{on_cluster}};

-- Records of alk.traces that do not link, as table conflicts is for alk.events.
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
