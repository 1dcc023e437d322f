-- A stream's row names the process that leads its broadcast: its node and the run of it, without a lease of its own. Who
-- names no run is gone: of a broadcast of an earlier version, disconnected_at keeps when its owner was heard of last.

-- +goose Up
ALTER TABLE live_streams ADD COLUMN run varchar(255) NOT NULL DEFAULT '';
UPDATE live_streams SET disconnected_at = lease_until - 15000
    WHERE active_asset <> '' AND disconnected_at = 0 AND lease_until > 15000;
ALTER TABLE live_streams DROP COLUMN lease_until;
CREATE INDEX live_streams_owned ON live_streams (run) WHERE active_asset <> '';

-- when a run of a node that leads broadcasts was heard of last
CREATE TABLE owners (
    run varchar(255) PRIMARY KEY,
    node varchar(255) NOT NULL,
    seen_at bigint NOT NULL
);

-- +goose Down
DROP TABLE owners;
DROP INDEX live_streams_owned;
ALTER TABLE live_streams ADD COLUMN lease_until bigint NOT NULL DEFAULT 0;
ALTER TABLE live_streams DROP COLUMN run;
