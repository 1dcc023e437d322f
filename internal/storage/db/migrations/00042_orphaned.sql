-- The encoder of a broadcast that is away was lost with its node, and did not leave.

-- +goose Up
ALTER TABLE live_streams ADD COLUMN orphaned boolean NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE live_streams DROP COLUMN orphaned;
