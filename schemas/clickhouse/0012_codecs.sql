-- Which execution a fact belongs to is read of every fact of a tenant where a list of executions asks what
-- their spans say. It is the same text many times in a row: LZ4 reads it in half the time that ZSTD takes,
-- and needs no more room. Parts that are there already change when they are merged.
ALTER TABLE {{database}}.facts{{on_cluster}}
    MODIFY COLUMN execution_id CODEC(LZ4);
