-- What the paths of signed playback are signed with, the same on every node: a secret for each turn of thirty days.

-- +goose Up
CREATE TABLE path_secrets (
    number bigint PRIMARY KEY, -- of the turn, since 1970
    secret bytea NOT NULL
);

-- +goose Down
DROP TABLE path_secrets;
