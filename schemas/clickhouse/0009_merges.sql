-- Merges write the text indexes anew each time, which costs more than the rows themselves. With 10 parts
-- of a size in a merge instead of 5 an event goes through fewer of them.
ALTER TABLE {{database}}.events{{on_cluster}}
    MODIFY SETTING merge_selector_base = 10;
