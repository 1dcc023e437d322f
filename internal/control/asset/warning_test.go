package asset_test

import (
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/event"
)

// TestWarningOfUpload: the warning about an asset that an upload has made names that.
func TestWarningOfUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := w.Uploaded(asset.NewUpload{Upload: "upload1", Environment: env, Media: "media1"}, w.now())
	w.must(err)
	w.must(w.store.Insert(w.ctx(), c))
	w.must(w.Warn(w.ctx(), c.Asset.ID, asset.Warning{Type: asset.InputTruncated, Message: "it ends early"}, w.now()))
	told, err := w.db.ListEvents(w.ctx(), event.Query{Types: []string{asset.EventWarning}, Limit: 10})
	w.must(err)
	if len(told) != 1 || !strings.Contains(string(told[0].Data), `"upload_id":"upload1"`) {
		t.Errorf("told %+v", told)
	}
}
