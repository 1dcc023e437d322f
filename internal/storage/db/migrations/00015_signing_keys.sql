-- Public halves of the keys that sign viewers' tokens.

-- +goose Up
CREATE TABLE signing_keys (
    id varchar(255) PRIMARY KEY,
    environment_id varchar(255) NOT NULL,
    public_key bytea NOT NULL, -- SubjectPublicKeyInfo in DER, RFC 5280
    created_at bigint NOT NULL
);
CREATE INDEX signing_keys_environment ON signing_keys (environment_id, created_at);

-- +goose Down
DROP TABLE signing_keys;
