-- Tokens end by themselves and show when they were used; an environment says who may embed its watch pages.

-- +goose Up
ALTER TABLE tokens ADD COLUMN expires_at bigint NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN last_used_at bigint NOT NULL DEFAULT 0;
CREATE INDEX tokens_environment ON tokens (environment_id, created_at);
ALTER TABLE environments ADD COLUMN frame_ancestors text NOT NULL DEFAULT ''; -- sources of Content-Security-Policy; empty: all

-- +goose Down
ALTER TABLE environments DROP COLUMN frame_ancestors;
DROP INDEX tokens_environment;
ALTER TABLE tokens DROP COLUMN last_used_at;
ALTER TABLE tokens DROP COLUMN expires_at;
