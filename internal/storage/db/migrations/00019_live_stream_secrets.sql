-- Secrets of live streams: a stream is looked up by the keyed hash of its key. The next migration, which is code, fills both columns, and
-- encrypts the secrets of webhooks and of signed paths where they are.

-- +goose Up
ALTER TABLE live_streams RENAME COLUMN stream_key TO stream_key_hash;
ALTER TABLE live_streams ADD COLUMN secrets bytea NOT NULL DEFAULT ''; -- sealed liveSecrets

-- +goose Down
ALTER TABLE live_streams DROP COLUMN secrets;
ALTER TABLE live_streams RENAME COLUMN stream_key_hash TO stream_key;
