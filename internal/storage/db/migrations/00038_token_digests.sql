-- SHA-256 of a secret that the service has made, beside its slow hash: a guess at one of 256 bits costs nothing. NULL: a
-- person may have chosen the secret, or nobody has used it since.

-- +goose Up
ALTER TABLE tokens ADD COLUMN digest bytea;

-- +goose Down
ALTER TABLE tokens DROP COLUMN digest;
