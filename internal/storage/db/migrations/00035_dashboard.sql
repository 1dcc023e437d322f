-- Who is signed in to the dashboard. Links, cookies and the password are kept as hashes.

-- +goose Up
CREATE TABLE dashboard_password (
    one bigint NOT NULL PRIMARY KEY, -- 1
    hash varchar(255) NOT NULL -- PHC string of argon2id
);
CREATE TABLE dashboard_links (
    hash varchar(64) NOT NULL PRIMARY KEY, -- SHA-256, hexadecimal
    expires_at bigint NOT NULL
);
CREATE TABLE dashboard_sessions (
    hash varchar(64) NOT NULL PRIMARY KEY, -- SHA-256 of the cookie, hexadecimal
    environment_id varchar(255) NOT NULL,
    token_id varchar(255) NOT NULL, -- '': the owner
    address varchar(64) NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX dashboard_sessions_expired ON dashboard_sessions (expires_at);
CREATE INDEX dashboard_sessions_token ON dashboard_sessions (token_id);

-- +goose Down
DROP TABLE dashboard_sessions;
DROP TABLE dashboard_links;
DROP TABLE dashboard_password;
