-- Since when a live stream's broadcast can be played, and whether its encoder is connected but silent.

-- +goose Up
ALTER TABLE live_streams ADD COLUMN active_at bigint NOT NULL DEFAULT 0;
ALTER TABLE live_streams ADD COLUMN silent boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE live_streams DROP COLUMN silent;
ALTER TABLE live_streams DROP COLUMN active_at;
