-- The end of an asset's master or files was taken for that of the asset. Its number would begin again once its events are removed.

-- +goose Up
UPDATE event_numbers SET ended = FALSE WHERE ended AND NOT EXISTS (
    SELECT 1 FROM events WHERE events.resource_id = event_numbers.resource_id AND events.object_id = events.resource_id
        AND events.type IN ('video.asset.deleted', 'video.live_stream.deleted')
);

-- +goose Down
SELECT 1;
