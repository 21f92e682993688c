-- What is searched, by its trigrams. A row's number is its second and its turn in it, so that matches come in the order of time.
ALTER TABLE incidents ADD COLUMN place BIGINT;
UPDATE incidents SET place = p.place FROM (
    SELECT id AS of_id, ((died - ((died % 1000) + 1000) % 1000) / 1000) * 65536
        + ROW_NUMBER() OVER (PARTITION BY (died - ((died % 1000) + 1000) % 1000) / 1000 ORDER BY id) - 1 AS place
    FROM incidents) p
WHERE incidents.id = p.of_id;
CREATE UNIQUE INDEX incidents_place ON incidents (place);
CREATE VIRTUAL TABLE words USING fts5 (
    searched, content = 'incidents', content_rowid = 'place', tokenize = 'trigram case_sensitive 1', detail = none, columnsize = 0
);
INSERT INTO words (words) VALUES ('rebuild');
