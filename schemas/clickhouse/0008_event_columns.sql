-- The columns of an event become the event: its JSON (json) is a fixed function of them, see
-- src/adapters/clickhouse/events/EventText.ts; a test compares the two. A row that does not have this
-- form, and one that was stored before this version, keeps its bytes in body. Rows of earlier versions
-- are rewritten in the background, see StoreUpgrade.ts.
--
-- actor_email, resource_name and metadata are JSON texts, empty where the member is absent. Hashes and
-- salt are raw bytes, zero where they are absent. An event with an erased_at has no details, whatever their
-- columns still hold until they are purged.
ALTER TABLE {{database}}.events{{on_cluster}}
    ADD COLUMN IF NOT EXISTS actor_email String CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS resource_name String CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS details_salt FixedString(16) CODEC(NONE),
    ADD COLUMN IF NOT EXISTS details_hash FixedString(32) CODEC(NONE),
    ADD COLUMN IF NOT EXISTS content_hash FixedString(32) CODEC(NONE),
    ADD COLUMN IF NOT EXISTS prev_hash FixedString(32) CODEC(NONE),
    ADD COLUMN IF NOT EXISTS erased_at DateTime64(6, 'UTC');

ALTER TABLE {{database}}.events{{on_cluster}}
    ADD COLUMN IF NOT EXISTS json String
        ALIAS if(body = '', concat('{"id":', concat('"', replaceAll(replaceAll(id, '\\', '\\\\'), '"', '\\"'), '"'), ',"timestamp":"', formatDateTime(timestamp, '%Y-%m-%dT%H:%i:%s.%fZ'), '","actor":{"id":', concat('"', replaceAll(replaceAll(actor_id, '\\', '\\\\'), '"', '\\"'), '"'), ',"type":', concat('"', replaceAll(replaceAll(actor_type, '\\', '\\\\'), '"', '\\"'), '"'), if(erased_at > toDateTime64(0, 6, 'UTC'), '', if(actor_email = '', '', concat(',"email":', actor_email))), '},"action":', concat('"', replaceAll(replaceAll(action, '\\', '\\\\'), '"', '\\"'), '"'), ',"resource":{"id":', concat('"', replaceAll(replaceAll(resource_id, '\\', '\\\\'), '"', '\\"'), '"'), ',"type":', concat('"', replaceAll(replaceAll(resource_type, '\\', '\\\\'), '"', '\\"'), '"'), if(erased_at > toDateTime64(0, 6, 'UTC'), '', if(resource_name = '', '', concat(',"name":', resource_name))), '},"outcome":', concat('"', replaceAll(replaceAll(outcome, '\\', '\\\\'), '"', '\\"'), '"'), if(erased_at > toDateTime64(0, 6, 'UTC'), '', if(metadata = '', '', concat(',"metadata":', metadata))), ',"tenant_id":', concat('"', replaceAll(replaceAll(tenant_id, '\\', '\\\\'), '"', '\\"'), '"'), ',"sequence_number":', toString(sequence_number), ',"created_at":"', formatDateTime(created_at, '%Y-%m-%dT%H:%i:%s.%fZ'), '","prev_hash":"', lower(hex(prev_hash)), if(erased_at > toDateTime64(0, 6, 'UTC'), '', if(details_salt = toFixedString('', 16), '', concat('","details_salt":"', lower(hex(details_salt))))), if(details_hash = toFixedString('', 32), '', concat('","details_hash":"', lower(hex(details_hash)))), '","content_hash":"', lower(hex(content_hash)), '","hash":"', hash, if(erased_at > toDateTime64(0, 6, 'UTC'), concat('","erased_at":"', formatDateTime(erased_at, '%Y-%m-%dT%H:%i:%s.%fZ')), ''), '"}'), body);

-- Erasing is a lightweight update, which needs these two.
ALTER TABLE {{database}}.events{{on_cluster}}
    MODIFY SETTING enable_block_number_column = 1, enable_block_offset_column = 1;

-- Dictionaries with more than 8,192 values in a part fall apart: actor_id gets a text index instead.
ALTER TABLE {{database}}.events{{on_cluster}}
    MODIFY COLUMN actor_id String
    SETTINGS alter_sync = 0, mutations_sync = 0;

ALTER TABLE {{database}}.events{{on_cluster}}
    MODIFY COLUMN sequence_number CODEC(Delta, LZ4),
    MODIFY COLUMN hash CODEC(ZSTD(1))
    SETTINGS alter_sync = 0, mutations_sync = 0;

ALTER TABLE {{database}}.events{{on_cluster}}
    DROP INDEX IF EXISTS by_actor_id
    SETTINGS alter_sync = 0, mutations_sync = 0;

ALTER TABLE {{database}}.events{{on_cluster}}
    DROP INDEX IF EXISTS by_resource_id
    SETTINGS alter_sync = 0, mutations_sync = 0;

ALTER TABLE {{database}}.events{{on_cluster}}
    ADD INDEX IF NOT EXISTS text_actor_id actor_id TYPE text(tokenizer = 'array'),
    ADD INDEX IF NOT EXISTS text_resource_id resource_id TYPE text(tokenizer = 'array'),
    ADD INDEX IF NOT EXISTS by_erased_at erased_at TYPE minmax GRANULARITY 64,
    ADD INDEX IF NOT EXISTS by_kafka_offset kafka_offset TYPE minmax GRANULARITY 4
    SETTINGS alter_sync = 0, mutations_sync = 0;

-- What was rewritten in the background: done, or started with what the rows said before (details).
CREATE TABLE IF NOT EXISTS {{database}}.upgrades{{on_cluster}}
(
    name String,
    state LowCardinality(String),
    details String,
    at DateTime64(6, 'UTC') DEFAULT now64(6, 'UTC')
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (name, state);
