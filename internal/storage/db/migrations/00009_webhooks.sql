-- Endpoints that events are sent to, and what of each event has been sent to them.

-- +goose Up
CREATE TABLE webhooks (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    address text NOT NULL,
    enabled boolean NOT NULL,
    event_types text NOT NULL,
    secret varchar(255) NOT NULL,
    old_secret varchar(255) NOT NULL,
    old_until bigint NOT NULL,
    failing_since bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    position bigint NOT NULL, -- the sequence of the last event that it has a delivery of, or needs none
    owner varchar(255) NOT NULL, -- the node that sends to it, by a lease
    lease_until bigint NOT NULL,
    revision bigint NOT NULL
);
CREATE UNIQUE INDEX webhooks_address ON webhooks (environment_id, address);

-- An event for an endpoint. next_at: not to be sent before; first_at: of the first attempt; log: a line of JSON for each attempt.
CREATE TABLE webhook_deliveries (
    webhook_id varchar(255) NOT NULL,
    sequence bigint NOT NULL,
    resource_id varchar(255) NOT NULL,
    state varchar(16) NOT NULL,
    attempts bigint NOT NULL,
    first_at bigint NOT NULL,
    next_at bigint NOT NULL,
    log text NOT NULL,
    PRIMARY KEY (webhook_id, sequence)
);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, sequence) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, sequence) WHERE state = 'failed';
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (sequence);

-- +goose Down
DROP TABLE webhook_deliveries;
DROP TABLE webhooks;
