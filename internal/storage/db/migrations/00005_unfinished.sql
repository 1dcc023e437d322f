-- Whether work may be left on an asset or its files, so that what was lost is found without reading every document.

-- +goose Up
ALTER TABLE assets ADD COLUMN unfinished boolean NOT NULL DEFAULT true;
UPDATE assets SET unfinished = (status <> 'errored' AND (status = 'preparing' OR index_key = ''
    OR document LIKE '%"status":"preparing"%' OR document LIKE '%"master":{%'));
DROP INDEX assets_unfinished;
CREATE INDEX assets_unfinished ON assets (id) WHERE unfinished;
CREATE INDEX tracks_unfinished ON tracks (asset_id) WHERE status = 'preparing';

-- +goose Down
DROP INDEX tracks_unfinished;
DROP INDEX assets_unfinished;
CREATE INDEX assets_unfinished ON assets (id) WHERE status = 'preparing' OR is_live;
ALTER TABLE assets DROP COLUMN unfinished;
