package assets

import (
	"context"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// Row names its row in a list.
func (v Video) Row() id.Asset { return v.ID }

// Made is when it was made.
func (v Video) Made() time.Time { return v.CreatedAt }

// Moves reports whether work goes on whose progress no events tell.
func (v Video) Moves() bool { return v.Working() }

// MadeOf is the upload that it was made of; empty: of none.
func (v Video) MadeOf() id.Upload { return v.Upload }

// videoSource has the rows of the list of assets.
type videoSource struct {
	*room
	shell.Uncounted
}

// About implements source.
func (videoSource) About(h shell.Change) id.Asset { return h.Asset }

// Load implements source.
func (s videoSource) Load(ctx context.Context, p access.Person, f shell.Selection) (shell.Loaded[Video], error) {
	l, err := s.videos(ctx, p, f)
	return shell.Loaded[Video]{Selection: l.Selection, Rows: l.Rows}, err
}

// Some implements source.
func (s videoSource) Some(ctx context.Context, env id.Environment, of []id.Asset) ([]Video, error) {
	found, err := s.Assets.Some(ctx, env, of)
	return shell.Each(found, s.video), err
}

// Fits implements source.
func (videoSource) Fits(f shell.Selection, v Video) bool {
	return assetList{Selection: f}.fits(v.Asset)
}

// Gone implements source.
func (s videoSource) Gone(of id.Asset, name string) Video {
	out := s.video(asset.Asset{ID: of})
	out.Options.Meta.Title = name
	return out
}
