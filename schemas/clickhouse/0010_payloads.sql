-- Values that have no room in their span are in facts of their own, scope 3, so that nothing that is
-- asked of executions, spans and events reads them. They are found by the SHA-256 of the value, which is
-- one of the details: it goes when the execution is erased.
ALTER TABLE {{database}}.facts{{on_cluster}}
    MODIFY COLUMN scope UInt8 DEFAULT multiIf(startsWith(tupleElement(fields, 'type'), 'execution.'), 0, tupleElement(fields, 'type') = 'span.event', 2, tupleElement(fields, 'type') = 'span.payload', 3, 1);

ALTER TABLE {{database}}.facts{{on_cluster}}
    ADD COLUMN IF NOT EXISTS payload_hash String DEFAULT if(type = 'span.payload', JSONExtractString(body, 'details', 'payload', 'sha256'), '') CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS by_payload_hash payload_hash TYPE bloom_filter GRANULARITY 1
    SETTINGS alter_sync = 0, mutations_sync = 0;
