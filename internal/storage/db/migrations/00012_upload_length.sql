-- Whether the size of an upload is that of the whole file, and what a tus client said about it.

-- +goose Up
ALTER TABLE uploads ADD COLUMN whole boolean NOT NULL DEFAULT false;
ALTER TABLE uploads ADD COLUMN metadata text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE uploads DROP COLUMN metadata;
ALTER TABLE uploads DROP COLUMN whole;
