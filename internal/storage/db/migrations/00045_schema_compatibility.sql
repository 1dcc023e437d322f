-- Which programs may run on this schema: those that know schema `since` or a later one. An additive migration leaves it
-- as it is; one that takes away what earlier programs need raises it in the same transaction.

-- +goose Up
CREATE TABLE schema_compatibility (
    one bigint PRIMARY KEY, -- one row
    since bigint NOT NULL
);
INSERT INTO schema_compatibility (one, since) VALUES (1, 45);

-- +goose Down
DROP TABLE schema_compatibility;
