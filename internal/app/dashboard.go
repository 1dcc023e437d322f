package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	"millrace/internal/app/cleanup"
	"millrace/internal/app/doctor"
	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/event"
	nodes "millrace/internal/control/node"
	"millrace/internal/storage/blob"
	"millrace/internal/web/api"
	"millrace/internal/web/dashboard"
)

// people is what the dashboard stands on.
type people struct {
	sessions *access.Sessions
	ingest   dashboard.Ingest // complete once everything listens
}

// dashboard has the pages for people; nil: they are switched off.
func (n *node) dashboard() http.Handler {
	if !n.cfg.Dashboard {
		return nil
	}
	return dashboard.Handler(dashboard.Options{
		Services: dashboard.Services{
			Access: n.access, Live: n.streams, Assets: n.assets, Uploads: n.uploads, Webhooks: n.endpoints(),
			Signing: n.signing, Restrictions: n.restrictions, Nodes: n.row,
			Retention: cleanup.Retention(n.db),
		},
		Sessions: n.sessions, Health: n.health(), Events: n.db, Clients: n.clients(), Ingest: &n.ingest,
		PublicURL: n.base, Now: clock, Logger: n.log,
		Configured: dashboard.Configured{LiveRungs: n.cfg.LiveRungs, Speech: n.cfg.Speech.Rules},
		Examine:    n.examine, EventTypes: api.EventTypes(),
		ShowEvent: func(ctx context.Context, e event.Event) ([]byte, error) {
			shown, err := formOf(n.db, n.base).Show(ctx, e)
			if err != nil {
				return nil, err
			}
			return json.Marshal(shown.Attempted(nil))
		},
	})
}

// examine makes the checks of millrace doctor, with the settings that this node runs with.
func (n *node) examine(ctx context.Context, tell func(dashboard.Finding)) error {
	checks := doctor.Checks(doctor.Options{
		Config: n.cfg, SpeechEngines: n.speech.All,
		OpenStorage: func(ctx context.Context, url config.Secret) (blob.Store, error) {
			return openStorage(ctx, n.cfg, url)
		},
		UploadsLeft: func(ctx context.Context) (doctor.UploadsLeft, error) { return uploadsLeft(ctx, n.cfg) },
	})
	return doctor.Examine(ctx, checks, func(f doctor.Finding) error {
		tell(dashboard.Finding{Name: f.Name, Text: f.Text, Mend: f.Mend, Level: dashboard.Level(f.Level)})
		return nil
	})
}

// encodersConnect says where encoders reach the service. Behind public-url they do so at its host, on the ports that
// are listened on.
func (n *node) encodersConnect(rtmp, srt string, whip bool) {
	n.ingest.RTMP = strings.TrimSuffix(n.cfg.RTMPBase(rtmp).String(), "/")
	n.ingest.SRT = n.atPublicHost(srt)
	if whip {
		n.ingest.WHIP = n.base + "/whip"
	}
}

func (n *node) rtmpsBase(addr string) string {
	return (&url.URL{Scheme: "rtmps", Host: n.atPublicHost(addr), Path: "/app"}).String()
}

// atPublicHost is the public host with the port of an address.
func (n *node) atPublicHost(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	base, bad := url.Parse(n.base)
	if err != nil || bad != nil {
		return addr
	}
	return net.JoinHostPort(base.Hostname(), port)
}

// firstLink shows a link that sets the password of the dashboard, as long as none is set and no log would keep it.
func (n *node) firstLink(ctx context.Context) error {
	if !n.cfg.Dashboard || !n.cfg.Node.Roles.Has(nodes.RoleAPI) {
		return nil
	}
	has, err := n.sessions.HasPassword(ctx)
	if err != nil || has {
		return err
	}
	if inJournal(n.out) {
		n.log.InfoContext(ctx, "the dashboard has no password yet: set it by a link of millrace dashboard link")
		return nil
	}
	secret, err := n.sessions.CreateLink(ctx, clock())
	if err != nil {
		return err
	}
	fmt.Fprintf(n.out, "\nDashboard (the link sets its password; it works once, within an hour): %s\n\n",
		dashboard.LinkURL(n.base, secret))
	return nil
}

// dashboardLink makes a link to the dashboard in the configured database, whether the service runs or not.
func dashboardLink(ctx context.Context, cfg config.Config) (link string, err error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	tokens := access.New(access.Options{Store: d.Access()})
	secret, err := access.NewSessions(access.SessionOptions{Store: d.Sessions(), Access: tokens}).CreateLink(ctx,
		clock())
	base := strings.TrimSuffix(cfg.PublicBase(cfg.HTTPAddr).String(), "/")
	return dashboard.LinkURL(base, secret), err
}
