-- Lists and statistics over a million deaths.

-- Whoever holds a day's counts in memory learns here whether they still hold. The number only grows.
CREATE TABLE days (
    day <key> PRIMARY KEY,
    version BIGINT NOT NULL
);
INSERT INTO days (day, version) SELECT DISTINCT day, 1 FROM counts;

-- A filter that finds nothing must not read everything.
CREATE INDEX incidents_cluster ON incidents (cluster, died);
CREATE INDEX incidents_owner ON incidents (owner, died);
CREATE INDEX incidents_container ON incidents (container, died);
CREATE INDEX incidents_image ON incidents (image, died);
CREATE INDEX incidents_engine ON incidents (engine, died);
CREATE INDEX incidents_engine_version ON incidents (engine_version, died);
CREATE INDEX incidents_plane ON incidents (plane, died);
CREATE INDEX incidents_phase ON incidents (phase, died);
CREATE INDEX incidents_confidence ON incidents (confidence, died);

-- With the time, the newest deaths of a card or a driver stand together.
CREATE TABLE timed (
    dimension <key> NOT NULL,
    value <key> NOT NULL,
    died BIGINT NOT NULL,
    id <key> NOT NULL,
    PRIMARY KEY (dimension, value, died, id)
)<packed>;
INSERT INTO timed (dimension, value, died, id)
    SELECT s.dimension, s.value, i.died, s.id FROM several s JOIN incidents i ON i.id = s.id;
DROP TABLE several;
ALTER TABLE timed RENAME TO several;
CREATE INDEX several_id ON several (id);

CREATE INDEX gpus_last ON gpus (last_died);
