-- Direct uploads, and the assets that were made of them.

-- +goose Up
CREATE TABLE uploads (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    secret varchar(255) NOT NULL,
    status varchar(32) NOT NULL,
    media_id varchar(255) NOT NULL,
    asset_id varchar(255) NOT NULL,
    size bigint NOT NULL,
    document text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    revision bigint NOT NULL
);
CREATE UNIQUE INDEX uploads_secret ON uploads (secret);
CREATE INDEX uploads_list ON uploads (environment_id, created_at, id);
CREATE INDEX uploads_waiting ON uploads (environment_id) WHERE status = 'waiting';

ALTER TABLE assets ADD COLUMN upload_id varchar(255) NOT NULL DEFAULT '';
CREATE INDEX assets_of_upload ON assets (upload_id) WHERE upload_id <> '';

-- +goose Down
DROP INDEX assets_of_upload;
ALTER TABLE assets DROP COLUMN upload_id;
DROP TABLE uploads;
