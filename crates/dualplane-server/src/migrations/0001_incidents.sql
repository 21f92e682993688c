-- What a fleet keeps of its deaths. <key>, <text> and <bytes> are the types of SQLite or Postgres; keys sort by bytes in both.

-- One row a death. Its columns are what lists filter by; body is the whole of it.
CREATE TABLE incidents (
    id <key> PRIMARY KEY,
    died BIGINT NOT NULL,
    received BIGINT NOT NULL,
    digest <key> NOT NULL,
    loop_key <key> NOT NULL,
    cause_key <key> NOT NULL,
    -- 1: the latest death of its cause.
    latest BIGINT NOT NULL DEFAULT 0,
    class <key> NOT NULL,
    plane <key> NOT NULL,
    phase <key> NOT NULL,
    confidence <key> NOT NULL,
    cluster <key> NOT NULL,
    namespace <key> NOT NULL,
    owner <key> NOT NULL,
    pod <key> NOT NULL,
    container <key> NOT NULL,
    node <key> NOT NULL,
    image <key> NOT NULL,
    model <key> NOT NULL,
    engine <key> NOT NULL,
    engine_version <key> NOT NULL,
    searched <text> NOT NULL,
    body <text> NOT NULL
);
CREATE INDEX incidents_died ON incidents (died, id);
CREATE INDEX incidents_received ON incidents (received, id);
CREATE INDEX incidents_latest ON incidents (died, id) WHERE latest = 1;
CREATE INDEX incidents_latest_cause ON incidents (cause_key) WHERE latest = 1;
CREATE INDEX incidents_latest_namespace ON incidents (namespace, died, id) WHERE latest = 1;
CREATE INDEX incidents_cause ON incidents (cause_key, died, id);
CREATE INDEX incidents_loop ON incidents (loop_key, died, id);
CREATE INDEX incidents_class ON incidents (class, died, id);
CREATE INDEX incidents_namespace ON incidents (namespace, died, id);
-- What people ask most: one class in their namespace. By either index alone, the other word is looked up row by row.
CREATE INDEX incidents_class_namespace ON incidents (class, namespace, died, id);
CREATE INDEX incidents_node ON incidents (node, died, id);
CREATE INDEX incidents_model ON incidents (model, died, id);
CREATE INDEX incidents_pod ON incidents (pod, died, id);

-- What a death has several of: cards, kinds of card, drivers, Xids.
CREATE TABLE several (
    dimension <key> NOT NULL,
    value <key> NOT NULL,
    id <key> NOT NULL,
    PRIMARY KEY (dimension, value, id)
);
CREATE INDEX several_id ON several (id);

-- The report, packed.
CREATE TABLE reports (
    id <key> PRIMARY KEY,
    body <bytes> NOT NULL
);

-- Bundles that lie in the store of files.
CREATE TABLE bundles (
    id <key> PRIMARY KEY,
    size BIGINT NOT NULL,
    sha256 <key> NOT NULL
);

-- What repeats, and how often it was received. The count outlives the deaths that retention removed.
CREATE TABLE causes (
    cause_key <key> PRIMARY KEY,
    loop_key <key> NOT NULL,
    cluster <key> NOT NULL,
    namespace <key> NOT NULL,
    occurrences BIGINT NOT NULL,
    first_died BIGINT NOT NULL,
    last_died BIGINT NOT NULL,
    last_id <key> NOT NULL
);
CREATE INDEX causes_worst ON causes (occurrences, last_died);
CREATE INDEX causes_last ON causes (last_died);

-- Deaths of each day by what they share: statistics without reading them all.
CREATE TABLE counts (
    day <key> NOT NULL,
    cluster <key> NOT NULL,
    namespace <key> NOT NULL,
    dimension <key> NOT NULL,
    value <key> NOT NULL,
    class <key> NOT NULL,
    deaths BIGINT NOT NULL,
    PRIMARY KEY (day, cluster, namespace, dimension, value, class)
);

-- The history of each card.
CREATE TABLE gpus (
    uuid <key> NOT NULL,
    cluster <key> NOT NULL,
    namespace <key> NOT NULL,
    name <key> NOT NULL,
    driver <key> NOT NULL,
    node <key> NOT NULL,
    deaths BIGINT NOT NULL,
    faults BIGINT NOT NULL,
    -- -1: nobody told.
    ecc BIGINT NOT NULL,
    last_died BIGINT NOT NULL,
    PRIMARY KEY (uuid, cluster, namespace)
);
CREATE TABLE gpu_xids (
    uuid <key> NOT NULL,
    cluster <key> NOT NULL,
    namespace <key> NOT NULL,
    code BIGINT NOT NULL,
    seen BIGINT NOT NULL,
    PRIMARY KEY (uuid, cluster, namespace, code)
);
