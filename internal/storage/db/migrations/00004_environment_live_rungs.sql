-- When live streams of an environment are encoded in lower sizes: on_demand, always or off; empty: as the service is set.

-- +goose Up
ALTER TABLE environments ADD COLUMN live_rungs varchar(255) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE environments DROP COLUMN live_rungs;
