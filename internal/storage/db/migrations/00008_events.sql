-- Events in an order that can be read on from: number counts the events of a resource, sequence counts all events in the order in which
-- they became visible. On PostgreSQL sequence is 0 until an event is numbered after its commit.

-- +goose Up
ALTER TABLE events ADD COLUMN resource_id varchar(255) NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN number bigint NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN sequence bigint NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN request_id varchar(255) NOT NULL DEFAULT '';
UPDATE events SET resource_id = object_id, number = n.number, sequence = n.sequence FROM (
    SELECT id, ROW_NUMBER() OVER (PARTITION BY object_id ORDER BY at, position, id) AS number,
        ROW_NUMBER() OVER (ORDER BY at, position, id) AS sequence FROM events
) AS n WHERE n.id = events.id;

DROP INDEX events_order;
DROP INDEX events_object;
CREATE UNIQUE INDEX events_sequence ON events (sequence) WHERE sequence > 0;
CREATE INDEX events_list ON events (environment_id, sequence);
CREATE INDEX events_type ON events (environment_id, type, sequence);
CREATE INDEX events_of_object ON events (object_id, sequence);
CREATE INDEX events_of_resource ON events (resource_id, sequence);
CREATE INDEX events_at ON events (at);
CREATE INDEX events_unnumbered ON events (id) WHERE sequence = 0;

-- the number of each resource's last event; ended: the resource is gone
CREATE TABLE event_numbers (
    resource_id varchar(255) PRIMARY KEY,
    last bigint NOT NULL,
    ended boolean NOT NULL
);
INSERT INTO event_numbers (resource_id, last, ended) SELECT resource_id, MAX(number), FALSE FROM events GROUP BY resource_id;

-- one row: the sequence of the last event; who numbers events locks it
CREATE TABLE event_cursor (
    one bigint PRIMARY KEY,
    last bigint NOT NULL
);
INSERT INTO event_cursor (one, last) SELECT 1, COALESCE(MAX(sequence), 0) FROM events;

-- +goose Down
DROP TABLE event_cursor;
DROP TABLE event_numbers;
DROP INDEX events_unnumbered;
DROP INDEX events_at;
DROP INDEX events_of_resource;
DROP INDEX events_of_object;
DROP INDEX events_type;
DROP INDEX events_list;
DROP INDEX events_sequence;
CREATE INDEX events_object ON events (object_id);
CREATE INDEX events_order ON events (environment_id, at, position, id);
ALTER TABLE events DROP COLUMN request_id;
ALTER TABLE events DROP COLUMN sequence;
ALTER TABLE events DROP COLUMN number;
ALTER TABLE events DROP COLUMN resource_id;
