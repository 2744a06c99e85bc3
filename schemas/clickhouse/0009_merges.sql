-- Merges write the text indexes anew each time, which costs more than the rows themselves. With 10 parts
-- of a size in a merge instead of 5 an event goes through fewer of them.
--
-- The rows of a page are far apart, and of each column a whole compressed block is read for each of them:
-- blocks of one granule instead of 64 KiB halve what a page costs, and take 2 % more room.
ALTER TABLE {{database}}.events{{on_cluster}}
    MODIFY SETTING merge_selector_base = 10, min_compress_block_size = 4096;
