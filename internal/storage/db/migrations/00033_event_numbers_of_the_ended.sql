-- Resources end without an event of their deletion, too: uploads, and webhooks, which have none. Their counters
-- stayed for ever.

-- +goose Up
UPDATE event_numbers SET ended = TRUE WHERE resource_id IN (SELECT id FROM uploads WHERE status <> 'waiting');
UPDATE event_numbers SET ended = TRUE WHERE resource_id NOT IN (SELECT id FROM webhooks)
    AND EXISTS (SELECT 1 FROM events
        WHERE events.resource_id = event_numbers.resource_id AND events.object_kind = 'webhook');
DELETE FROM event_numbers WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.resource_id = event_numbers.resource_id)
    AND (ended OR resource_id NOT IN (
        SELECT id FROM assets UNION ALL SELECT id FROM live_streams
        UNION ALL SELECT id FROM webhooks UNION ALL SELECT id FROM uploads
    ));

-- +goose Down
SELECT 1;
