-- Who writes a broadcast, counted, and the media sequence numbers that may have been published: whoever goes on after a crash uses others.

-- +goose Up
ALTER TABLE live_streams ADD COLUMN generation bigint NOT NULL DEFAULT 0;
ALTER TABLE live_streams ADD COLUMN reserved bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE live_streams DROP COLUMN reserved;
ALTER TABLE live_streams DROP COLUMN generation;
