-- The run of a node that is to take no encoder any more: it leaves. A later run of the node is not meant.

-- +goose Up
ALTER TABLE nodes ADD COLUMN draining_run text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE nodes DROP COLUMN draining_run;
