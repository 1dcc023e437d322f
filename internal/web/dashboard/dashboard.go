// Package dashboard is the web interface for people who do not want to use the API: pages under /dashboard, HTML
// rendered by the server, with forms and links that work without script. It calls the same services as the REST API and
// decides nothing by itself. A person may do what the access token that they signed in with permits; the owner, who has
// the password, may do everything. It must never know media, storage or SQL. It starts no goroutines.
package dashboard

import (
	"context"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"millrace/internal/clientaddr"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/restriction"
	"millrace/internal/control/retention"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/webhook"
	"millrace/internal/web/dashboard/assets"
	"millrace/internal/web/dashboard/links"
	"millrace/internal/web/dashboard/settings"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/dashboard/streams"
	"millrace/internal/web/dashboard/webhooks"
)

//go:embed static templates
var files embed.FS

// Options is what the dashboard needs. Every field without a default named here must be set.
type Options struct {
	Services

	Sessions  *access.Sessions
	Health    Health
	Events    shell.EventLog
	Clients   clientaddr.Finder
	Ingest    *Ingest // read when a page is shown, so that it may be filled in until then
	PublicURL string  // where people reach the service, without a slash at the end
	Now       func() time.Time
	Beat      time.Duration // how often open pages are told how the encoder does; 0: every 10 seconds
	Logger    *slog.Logger

	Configured Configured
	Examine    Examine
	EventTypes []string // of all events that can happen
	// ShowEvent is an event as JSON, as the API shows it: without secrets.
	ShowEvent func(ctx context.Context, e event.Event) ([]byte, error)
}

// Services are those that the API has, one for each noun.
type Services struct {
	Access       access.API
	Live         live.API
	Assets       asset.API
	Uploads      upload.API
	Webhooks     webhook.API
	Signing      signing.API
	Restrictions restriction.API
	Retention    retention.API
	Nodes        Nodes
}

// Handler serves Path and all below. Requests that change something are refused when another site sends them.
func Handler(o Options) http.Handler {
	s := shell.New(shell.Options{
		Files: files, Funcs: template.FuncMap{"advice": streams.Advice}, Sessions: o.Sessions, Events: o.Events,
		Clients: o.Clients, Publish: func() bool { return o.Ingest.WHIP != "" }, PublicURL: o.PublicURL, Now: o.Now,
		Logger: o.Logger,
	})
	maker := &links.Maker{Shell: s, Signing: o.Signing, Restrictions: o.Restrictions}
	streams.Add(s, streams.Options{
		Live: o.Live, Assets: o.Assets, Health: o.Health, Ingest: o.Ingest, Beat: o.Beat, Links: maker,
	})
	assets.Add(s, assets.Options{Assets: o.Assets, Uploads: o.Uploads, Links: maker})
	webhooks.Add(s, webhooks.Options{Webhooks: o.Webhooks, EventTypes: o.EventTypes, ShowEvent: o.ShowEvent})
	settings.Add(s, settings.Options{
		Access: o.Access, Signing: o.Signing, Restrictions: o.Restrictions, Nodes: o.Nodes, Configured: o.Configured,
		Examine: o.Examine, Retention: o.Retention, Assets: o.Assets,
	})
	return s.Handler()
}

// These are what rooms are told, by whoever makes a dashboard.
type (
	// Configured is what the service itself is set to.
	Configured = settings.Configured
	// Examine makes the checks of millrace doctor.
	Examine = settings.Examine
	// Finding is what came of one check.
	Finding = settings.Finding
	// Level says how bad a finding is.
	Level = settings.Level
	// Nodes are the processes that share the database.
	Nodes = settings.Nodes
	// EventLog tells what happened.
	EventLog = shell.EventLog
	// Health measures encoders.
	Health = streams.Health
	// Ingest is where encoders connect.
	Ingest = streams.Ingest
)

// The levels of a finding.
const (
	Fine    = settings.Fine
	Warning = settings.Warning
	Problem = settings.Problem
)

// Path is where the dashboard is.
const Path = shell.Path

// LinkURL is the address of a link that sets the password.
func LinkURL(public, secret string) string { return shell.LinkURL(public, secret) }
