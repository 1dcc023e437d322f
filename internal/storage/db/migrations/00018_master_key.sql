-- The data key, encrypted under the master key; DRM configurations and content keys. What is called sealed is encrypted with the data key.

-- +goose Up
CREATE TABLE master_key (
    one bigint PRIMARY KEY, -- one row
    fingerprint varchar(255) NOT NULL,
    data_key bytea NOT NULL
);

CREATE TABLE drm_configurations (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    name text NOT NULL,
    settings bytea NOT NULL, -- sealed drm.Settings
    created_at bigint NOT NULL
);
CREATE INDEX drm_configurations_environment ON drm_configurations (environment_id, created_at);

CREATE TABLE content_keys (
    resource_id varchar(255) NOT NULL, -- an asset or a live stream
    configuration_id varchar(255) NOT NULL,
    environment_id varchar(255) NOT NULL,
    resource_kind varchar(32) NOT NULL,
    keys bytea NOT NULL, -- sealed drm.StoredKeys
    revision bigint NOT NULL,
    PRIMARY KEY (resource_id, configuration_id)
);

-- +goose Down
DROP TABLE content_keys;
DROP TABLE drm_configurations;
DROP TABLE master_key;
