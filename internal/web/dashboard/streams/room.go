// Package streams has the dashboard's pages about live streams: their list, a page for each, their settings, simulcast
// targets, and the health of their encoders. It must never know media, storage or SQL. It starts no goroutines.
package streams

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/links"
	"millrace/internal/web/dashboard/shell"
)

// Options is what the room needs.
type Options struct {
	Live   live.API
	Assets asset.API
	Health Health
	Ingest *Ingest       // read when a page is shown, so that it may be filled in until then
	Beat   time.Duration // how often open pages are told how the encoder does; 0: every 10 seconds
	Links  *links.Maker
}

// Health measures encoders, as for the API.
type Health interface {
	// Health tells how the encoders of live streams do, in their order; brief: without samples. It waits for other
	// nodes no longer than ctx lasts.
	Health(ctx context.Context, all []live.Stream, brief bool) []live.Health
}

// Ingest is where encoders connect; what is empty is not offered.
type Ingest struct {
	RTMP, RTMPS string // URL up to the stream key, without a slash at the end
	SRT         string // host:port
	WHIP        string // URL
}

type room struct {
	*shell.Shell
	Options

	rows    *shell.Rows[id.LiveStream, stream]
	counter *counter
}

// simulcast is the pages that add and delete targets.
type simulcast struct{ *room }

// Add adds the pages of the room.
func Add(s *shell.Shell, o Options) {
	if o.Beat == 0 {
		o.Beat = shell.Heartbeat
	}
	r := &room{Shell: s, Options: o, counter: newCounter()}
	r.rows = shell.NewRows(s, "live", streamSource{r})
	r.route()
}
