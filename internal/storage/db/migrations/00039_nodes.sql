-- Nodes are rows: what each process of the service tells of itself, valid until a time on the database's clock. id is the
-- node's name; seen_at is when its queue of jobs was last heard of, 0: it gave its jobs back. Nodes of an earlier version
-- write these two alone, and have no run.

-- +goose Up
ALTER TABLE nodes ADD COLUMN run varchar(255) NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN version varchar(255) NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN roles text NOT NULL DEFAULT ''; -- separated by commas
ALTER TABLE nodes ADD COLUMN advertise_url text NOT NULL DEFAULT ''; -- '': other nodes can't reach it
ALTER TABLE nodes ADD COLUMN streams bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN viewers bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN cpu_load double precision NOT NULL DEFAULT 0; -- per processor
ALTER TABLE nodes ADD COLUMN started_at bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN renewed_at bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN valid_until bigint NOT NULL DEFAULT 0;

-- +goose Down
DELETE FROM nodes WHERE seen_at = 0;
ALTER TABLE nodes DROP COLUMN valid_until;
ALTER TABLE nodes DROP COLUMN renewed_at;
ALTER TABLE nodes DROP COLUMN started_at;
ALTER TABLE nodes DROP COLUMN cpu_load;
ALTER TABLE nodes DROP COLUMN viewers;
ALTER TABLE nodes DROP COLUMN streams;
ALTER TABLE nodes DROP COLUMN advertise_url;
ALTER TABLE nodes DROP COLUMN roles;
ALTER TABLE nodes DROP COLUMN version;
ALTER TABLE nodes DROP COLUMN run;
