-- The state is a column of these indexes, too: without it SQLite takes the primary key and reads all that was delivered before.

-- +goose Up
DROP INDEX webhook_deliveries_waiting;
DROP INDEX webhook_deliveries_failed;
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, state, sequence) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, state, sequence) WHERE state = 'failed';

-- +goose Down
DROP INDEX webhook_deliveries_waiting;
DROP INDEX webhook_deliveries_failed;
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, sequence) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, sequence) WHERE state = 'failed';
