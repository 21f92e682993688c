-- Sessions that their owners ended before their time, until they would be over by themselves (seconds since 1970).
CREATE TABLE ended (
    mark <key> PRIMARY KEY,
    over BIGINT NOT NULL
)<packed>;
