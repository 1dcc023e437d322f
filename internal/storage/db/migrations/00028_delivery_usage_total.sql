-- Reports list the most delivered first: the order is read from an index, and what was delivered of each size only for the page that is shown.

-- +goose Up
ALTER TABLE delivery_usage ADD COLUMN total bigint NOT NULL DEFAULT 0;
UPDATE delivery_usage SET total = audio_only + tier_720p + tier_1080p + tier_1440p + tier_2160p;
DROP INDEX delivery_usage_hours;
CREATE INDEX delivery_usage_hours ON delivery_usage (environment_id, hour, total, asset_id);

-- +goose Down
DROP INDEX delivery_usage_hours;
CREATE INDEX delivery_usage_hours ON delivery_usage (environment_id, hour);
ALTER TABLE delivery_usage DROP COLUMN total;
