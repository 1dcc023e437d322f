-- The caption channel that a text track is read from while its asset is recorded.

-- +goose Up
ALTER TABLE tracks ADD COLUMN channel varchar(16) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE tracks DROP COLUMN channel;
