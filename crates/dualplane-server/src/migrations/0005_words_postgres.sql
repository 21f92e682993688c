-- Trigrams of new rows wait in a list that searches read as well. A batch that finds the list full would write all of it into the
-- index before it is answered: the list may be longer, and a server writes it in the background.
DO $$
BEGIN
    IF to_regclass('incidents_words') IS NOT NULL THEN
        ALTER INDEX incidents_words SET (fastupdate = on, gin_pending_list_limit = 65536);
    END IF;
END
$$;
