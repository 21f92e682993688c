-- Of several programs on one database, one does what must be done once. Whoever holds a lease raises its beat; the fence is higher
-- with each holder.
CREATE TABLE leases (
    name <key> PRIMARY KEY,
    holder <key> NOT NULL,
    beat BIGINT NOT NULL,
    fence BIGINT NOT NULL
);
-- What such a one must not forget, written by the holder of the highest fence alone.
CREATE TABLE states (
    name <key> PRIMARY KEY,
    fence BIGINT NOT NULL,
    body <text> NOT NULL
);
