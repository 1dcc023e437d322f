-- Who changed what: one row for each request or command that changed something, written in the transaction of its first change.

-- +goose Up
CREATE TABLE audit_log (
    id varchar(255) PRIMARY KEY, -- UUID version 7: grows with time
    at bigint NOT NULL,
    environment_id varchar(255) NOT NULL, -- empty: the change belongs to none
    actor_type varchar(32) NOT NULL,
    actor_id varchar(255) NOT NULL,
    actor_name text NOT NULL,
    operation varchar(255) NOT NULL,
    resource_type varchar(64) NOT NULL,
    resource_id varchar(255) NOT NULL,
    address varchar(64) NOT NULL,
    request_id varchar(255) NOT NULL
);
CREATE INDEX audit_log_environment ON audit_log (environment_id, id);
CREATE INDEX audit_log_at ON audit_log (at);

-- +goose Down
DROP TABLE audit_log;
