-- How text tracks are made by speech recognition, and the vocabularies that help it.

-- +goose Up
ALTER TABLE tracks ADD COLUMN speech text NOT NULL DEFAULT ''; -- asset.Speech
CREATE TABLE transcription_vocabularies (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    name text NOT NULL,
    phrases text NOT NULL, -- an array of strings
    passthrough text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX transcription_vocabularies_environment ON transcription_vocabularies (environment_id, created_at);

-- +goose Down
DROP TABLE transcription_vocabularies;
ALTER TABLE tracks DROP COLUMN speech;
