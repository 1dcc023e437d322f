-- What an environment's retention deletes, and how many bytes media have, as they were last measured.

-- +goose Up
CREATE TABLE retention_policies (
    environment_id varchar(255) PRIMARY KEY REFERENCES environments (id) ON DELETE CASCADE,
    max_age_days bigint NOT NULL, -- 0: no limit
    max_bytes bigint NOT NULL, -- likewise
    starts_at bigint NOT NULL, -- nothing is deleted before
    updated_at bigint NOT NULL
);
CREATE TABLE media_sizes (
    media_id varchar(255) PRIMARY KEY,
    bytes bigint NOT NULL,
    measured_at bigint NOT NULL
);
ALTER TABLE assets ADD COLUMN exempt boolean NOT NULL DEFAULT FALSE; -- from retention

-- +goose Down
ALTER TABLE assets DROP COLUMN exempt;
DROP TABLE media_sizes;
DROP TABLE retention_policies;
