-- Deliveries that were skipped are listed by an index of their own. That of the resources finds the event that others
-- of its resource wait for; the state is a column of both, as without it SQLite takes the primary key.

-- +goose Up
CREATE INDEX webhook_deliveries_skipped ON webhook_deliveries (webhook_id, state, sequence) WHERE state = 'skipped';
CREATE INDEX webhook_deliveries_first ON webhook_deliveries (webhook_id, state, resource_id, sequence)
    WHERE state = 'waiting';

-- +goose Down
UPDATE webhook_deliveries SET state = 'failed' WHERE state = 'skipped';
DROP INDEX webhook_deliveries_first;
DROP INDEX webhook_deliveries_skipped;
