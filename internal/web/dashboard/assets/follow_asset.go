package assets

import (
	"context"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// followAsset keeps the page of an asset up to date.
func (rm *room) followAsset(r *shell.Request) (shell.View, error) {
	if _, err := rm.load(r); err != nil {
		return shell.View{}, err
	}
	return shell.KeepOpen(&followedAsset{s: rm, r: r, asset: assetOf(r)}), nil
}

// followedAsset is the open page of an asset: it is sent whole, and the browser puts in what differs.
type followedAsset struct {
	s     *room
	r     *shell.Request
	asset id.Asset
	sent  string
}

func (f *followedAsset) Note(h shell.Change) bool { return h.Asset == f.asset }

func (f *followedAsset) NoteAll() {}

func (f *followedAsset) Show(
	ctx context.Context, p access.Person, _ int64,
) (parts string, again time.Duration, err error) {
	v, err := f.s.assetPage(ctx, p, f.asset)
	if err != nil {
		return "", 0, err
	}
	if v.Moving() {
		again = shell.ProgressTime
	}
	parts, err = f.s.Part(f.r, p, "asset", "parts", v)
	if err != nil || parts == f.sent {
		return "", again, err
	}
	f.sent = parts
	return parts, again, nil
}
