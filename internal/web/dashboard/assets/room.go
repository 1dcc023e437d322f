// Package assets has the dashboard's pages about assets: their list, a page for each, what is made of them, and file
// uploads. It must never know media, storage or live streams. It starts no goroutines.
package assets

import (
	"millrace/internal/control/asset"
	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/links"
	"millrace/internal/web/dashboard/shell"
)

// Options is what the room needs.
type Options struct {
	Assets  asset.API
	Uploads upload.API
	Links   *links.Maker
}

type room struct {
	*shell.Shell
	Options

	rows *shell.Rows[id.Asset, Video]
}

// tracks, losses and uploads are the pages that change a track, delete something, and send a file.
type (
	tracks  struct{ *room }
	losses  struct{ *room }
	uploads struct{ *room }
)

// Add adds the pages of the room.
func Add(s *shell.Shell, o Options) {
	r := &room{Shell: s, Options: o}
	r.rows = shell.NewRows(s, "assets", videoSource{room: r})
	r.route()
	(&uploads{r}).route()
}
