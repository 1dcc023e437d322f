-- The control plane's rows, in the subset of SQL that SQLite and PostgreSQL share.
-- Times are Unix milliseconds, 0 for none; documents are JSON text; revision counts writes (compare-and-set).

-- +goose Up
CREATE TABLE environments (
    id varchar(255) PRIMARY KEY,
    name text NOT NULL,
    kind text NOT NULL,
    is_default boolean NOT NULL,
    created_at bigint NOT NULL
);
CREATE UNIQUE INDEX environments_default ON environments (is_default) WHERE is_default;

CREATE TABLE tokens (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL REFERENCES environments (id),
    name text NOT NULL,
    permissions text NOT NULL,
    hash bytea NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint NOT NULL
);

CREATE TABLE live_streams (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    stream_key varchar(255) NOT NULL,
    srt_passphrase varchar(255) NOT NULL,
    state varchar(32) NOT NULL,
    settings text NOT NULL,
    epoch bigint NOT NULL,
    active_asset varchar(255) NOT NULL,
    recent_assets text NOT NULL,
    protocol varchar(32) NOT NULL,
    started_at bigint NOT NULL,
    disconnected_at bigint NOT NULL,
    node varchar(255) NOT NULL,
    lease_until bigint NOT NULL,
    end_wanted varchar(32) NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint NOT NULL,
    revision bigint NOT NULL
);
CREATE UNIQUE INDEX live_streams_key ON live_streams (stream_key);
CREATE INDEX live_streams_list ON live_streams (environment_id, created_at, id);
CREATE INDEX live_streams_broadcasting ON live_streams (id) WHERE active_asset <> '';

CREATE TABLE assets (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    status varchar(32) NOT NULL,
    origin varchar(32) NOT NULL,
    live_stream_id varchar(255) NOT NULL,
    source_asset_id varchar(255) NOT NULL,
    is_live boolean NOT NULL,
    media_id varchar(255) NOT NULL,
    index_key text NOT NULL,
    entries bigint NOT NULL,
    document text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    revision bigint NOT NULL
);
CREATE INDEX assets_list ON assets (environment_id, created_at, id);
CREATE INDEX assets_of_live_stream ON assets (live_stream_id, created_at, id) WHERE live_stream_id <> '';
CREATE INDEX assets_unfinished ON assets (id) WHERE status = 'preparing' OR is_live;
CREATE INDEX assets_media ON assets (media_id);

-- whose bytes an asset refers to besides its own
CREATE TABLE asset_uses (
    asset_id varchar(255) NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
    media_id varchar(255) NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (asset_id, media_id)
);
CREATE INDEX asset_uses_media ON asset_uses (media_id);

CREATE TABLE tracks (
    id varchar(255) PRIMARY KEY,
    asset_id varchar(255) NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
    type varchar(32) NOT NULL,
    status varchar(32) NOT NULL,
    url text NOT NULL,
    rendition varchar(255) NOT NULL,
    object text NOT NULL,
    document text NOT NULL,
    created_at bigint NOT NULL,
    position bigint NOT NULL
);
CREATE INDEX tracks_of_asset ON tracks (asset_id, position);

-- the timeline of an asset while it grows
CREATE TABLE timeline_entries (
    asset_id varchar(255) NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
    sequence bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (asset_id, sequence)
);

CREATE TABLE playback_ids (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    object_kind varchar(32) NOT NULL,
    object_id varchar(255) NOT NULL,
    policy varchar(32) NOT NULL,
    drm_configuration_id varchar(255) NOT NULL,
    position bigint NOT NULL
);
CREATE INDEX playback_ids_object ON playback_ids (object_id);

-- what happened, for webhooks
CREATE TABLE events (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    type varchar(255) NOT NULL,
    object_kind varchar(32) NOT NULL,
    object_id varchar(255) NOT NULL,
    at bigint NOT NULL,
    position bigint NOT NULL,
    data text NOT NULL
);
CREATE INDEX events_order ON events (environment_id, at, position, id);
CREATE INDEX events_object ON events (object_id);

-- which processes work jobs, and when they were last heard of
CREATE TABLE nodes (
    id varchar(255) PRIMARY KEY,
    seen_at bigint NOT NULL
);

-- +goose Down
DROP TABLE nodes;
DROP TABLE events;
DROP TABLE playback_ids;
DROP TABLE timeline_entries;
DROP TABLE tracks;
DROP TABLE asset_uses;
DROP TABLE assets;
DROP TABLE live_streams;
DROP TABLE tokens;
DROP TABLE environments;
