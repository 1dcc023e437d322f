-- Which engine recognises which language in an environment: language=engine,…; empty: as the service is set.

-- +goose Up
ALTER TABLE environments ADD COLUMN captions text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE environments DROP COLUMN captions;
