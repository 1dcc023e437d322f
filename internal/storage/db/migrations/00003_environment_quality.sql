-- The video_quality of what an environment makes without saying one; empty: the service's.

-- +goose Up
ALTER TABLE environments ADD COLUMN video_quality varchar(255) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE environments DROP COLUMN video_quality;
