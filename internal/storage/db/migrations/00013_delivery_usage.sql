-- What viewers were sent of each asset, hour by hour, in milliseconds of media, and what reports say of assets that are deleted.

-- +goose Up
CREATE TABLE delivery_usage (
    asset_id varchar(255) NOT NULL,
    hour bigint NOT NULL, -- that it begins
    environment_id varchar(255) NOT NULL,
    live_stream_id varchar(255) NOT NULL,
    audio_only bigint NOT NULL,
    tier_720p bigint NOT NULL,
    tier_1080p bigint NOT NULL,
    tier_1440p bigint NOT NULL,
    tier_2160p bigint NOT NULL,
    PRIMARY KEY (asset_id, hour)
);
CREATE INDEX delivery_usage_hours ON delivery_usage (environment_id, hour);
CREATE INDEX delivery_usage_live ON delivery_usage (live_stream_id, hour) WHERE live_stream_id <> '';
CREATE INDEX delivery_usage_old ON delivery_usage (hour);

CREATE TABLE deleted_assets (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    live_stream_id varchar(255) NOT NULL,
    document text NOT NULL,
    created_at bigint NOT NULL,
    deleted_at bigint NOT NULL
);
CREATE INDEX deleted_assets_old ON deleted_assets (deleted_at);

-- +goose Down
DROP TABLE deleted_assets;
DROP TABLE delivery_usage;
