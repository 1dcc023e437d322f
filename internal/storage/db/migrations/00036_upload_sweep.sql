-- When the next job of an upload is due (0: it is over, and nothing is kept of its file but what its asset has), and
-- since when its row is kept for those who ask alone (0: it is needed). Of uploads that wait already a sweep asks when
-- the longest time has passed.

-- +goose Up
ALTER TABLE uploads ADD COLUMN due_at bigint NOT NULL DEFAULT 0;
ALTER TABLE uploads ADD COLUMN unneeded_at bigint NOT NULL DEFAULT 0;
UPDATE uploads SET due_at = created_at + 604800000 WHERE status = 'waiting';
UPDATE uploads SET due_at = updated_at WHERE status IN ('cancelled', 'timed_out', 'errored');
UPDATE uploads SET unneeded_at = updated_at WHERE status IN ('cancelled', 'timed_out', 'errored')
    OR status = 'asset_created' AND NOT EXISTS (SELECT 1 FROM assets WHERE assets.id = uploads.asset_id);
CREATE INDEX uploads_due ON uploads (due_at, id) WHERE due_at > 0;
CREATE INDEX uploads_unneeded ON uploads (unneeded_at) WHERE unneeded_at > 0;
CREATE INDEX uploads_expecting ON uploads (media_id) WHERE due_at > 0;

-- +goose Down
DROP INDEX uploads_expecting;
DROP INDEX uploads_unneeded;
DROP INDEX uploads_due;
ALTER TABLE uploads DROP COLUMN unneeded_at;
ALTER TABLE uploads DROP COLUMN due_at;
