-- The MAC of what a fact is: an execution that was put out of memory is continued by facts that have
-- one. The hashes of a fact hold no secret.

ALTER TABLE {{database}}.facts{{on_cluster}}
    ADD COLUMN IF NOT EXISTS mac String CODEC(ZSTD(1));
