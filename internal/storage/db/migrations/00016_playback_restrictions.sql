-- Where and by which players something may be watched; tokens name them.

-- +goose Up
CREATE TABLE playback_restrictions (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    referrer text NOT NULL, -- restriction.Referrer
    user_agent text NOT NULL, -- restriction.UserAgent
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX playback_restrictions_environment ON playback_restrictions (environment_id, created_at);

-- +goose Down
DROP TABLE playback_restrictions;
