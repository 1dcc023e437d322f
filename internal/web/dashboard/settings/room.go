// Package settings has the dashboard's pages about an environment's access tokens, signing keys, playback restrictions,
// defaults and retention, and, for the owner, about the nodes and the health of the service. It must never know live
// streams. It starts no goroutines.
package settings

import (
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/restriction"
	"millrace/internal/control/retention"
	"millrace/internal/control/signing"
	"millrace/internal/web/dashboard/shell"
)

// Options is what the room needs.
type Options struct {
	Access       access.API
	Signing      signing.API
	Restrictions restriction.API
	Retention    retention.API
	Assets       asset.API
	Nodes        Nodes
	Configured   Configured
	Examine      Examine
}

type room struct {
	*shell.Shell
	Options

	looking chan struct{} // has an element while somebody has everything looked at
}

// tokens, keys and restrictions are the pages of the room that have a list each.
type (
	tokens       struct{ *room }
	keys         struct{ *room }
	restrictions struct{ *room }
)

// Add adds the pages of the room.
func Add(s *shell.Shell, o Options) {
	(&room{Shell: s, Options: o, looking: make(chan struct{}, 1)}).route()
}
