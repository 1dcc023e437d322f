-- The schema that a node's program knows: the number of its newest migration. 0: it is of a version before this one.

-- +goose Up
ALTER TABLE nodes ADD COLUMN schema_version bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE nodes DROP COLUMN schema_version;
