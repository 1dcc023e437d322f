-- Which process makes what viewers of several nodes wait for: leases of seconds, which are gone when the thing is made.

-- +goose Up
CREATE TABLE claims (
    object_key varchar(2048) PRIMARY KEY,
    holder varchar(255) NOT NULL,
    lease_until bigint NOT NULL,
    wanted boolean NOT NULL
);
CREATE INDEX claims_holder ON claims (holder);

-- +goose Down
DROP TABLE claims;
