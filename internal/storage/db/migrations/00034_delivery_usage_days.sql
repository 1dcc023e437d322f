-- What viewers were sent of each asset on each day, in UTC: reports of days add up a row of each asset, not one of
-- each hour.

-- +goose Up
CREATE TABLE delivery_usage_days (
    asset_id varchar(255) NOT NULL,
    day bigint NOT NULL, -- that it begins
    environment_id varchar(255) NOT NULL,
    total bigint NOT NULL, -- of all sizes
    PRIMARY KEY (asset_id, day)
);
INSERT INTO delivery_usage_days (asset_id, day, environment_id, total)
    SELECT asset_id, hour - hour % 86400000, MAX(environment_id), SUM(total) FROM delivery_usage
    GROUP BY asset_id, hour - hour % 86400000;
CREATE INDEX delivery_usage_days_list ON delivery_usage_days (environment_id, day, asset_id, total);
CREATE INDEX delivery_usage_days_old ON delivery_usage_days (day);

-- +goose Down
DROP TABLE delivery_usage_days;
