-- What is searched, by its trigrams, where the extension can be had: without it a search reads the rows.
DO $$
DECLARE
    place TEXT;
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    SELECT n.nspname INTO place FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm';
    EXECUTE format('CREATE INDEX incidents_words ON incidents USING gin (searched %I.gin_trgm_ops)', place);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'pg_trgm: %', SQLERRM;
END
$$;
