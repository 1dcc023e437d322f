-- Who watches what on each node, as sketches of hashes, for counts over all nodes. Rows are of seconds.

-- +goose Up
CREATE TABLE audiences (
    node varchar(255) NOT NULL,
    playback_key bigint NOT NULL, -- hash of the playback ID
    viewers bytea NOT NULL,
    told_at bigint NOT NULL,
    PRIMARY KEY (node, playback_key)
);
CREATE INDEX audiences_key ON audiences (playback_key);

-- +goose Down
DROP TABLE audiences;
