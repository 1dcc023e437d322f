package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/web/licence"
	"millrace/internal/web/limit"
)

// openDRM opens the DRM configurations of the configured database, whether the service runs or not.
func openDRM(ctx context.Context, cfg config.Config, e id.Environment) (cli.DRMConfigurations, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	env, err := access.New(access.Options{Store: d.Access()}).Named(ctx, e, clock())
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return drmOf{drm.New(drm.Options{Store: d.DRM()}), env.ID}, d.Close, nil
}

// drmOf are the DRM configurations of an environment.
type drmOf struct {
	all *drm.Service
	env id.Environment
}

func (d drmOf) Create(ctx context.Context, name string, s drm.Settings) (drm.Configuration, error) {
	return d.all.Create(ctx, d.env, name, s, clock())
}

func (d drmOf) List(ctx context.Context) ([]drm.Configuration, error) {
	return d.all.List(ctx, d.env, 1, drm.MaxConfigurations)
}

func (d drmOf) SetVendors(ctx context.Context, c id.DRMConfiguration, v drm.Vendors) error {
	return d.all.SetVendors(ctx, d.env, c, v)
}

func (d drmOf) Delete(ctx context.Context, c id.DRMConfiguration) error {
	return d.all.Delete(ctx, d.env, c)
}

// licences serves licences of what is encrypted.
func (n *node) licences() http.Handler {
	return licence.Handler(licence.Options{
		Resolve: n.viewers.Resolve, Smallest: n.viewers.Smallest, DRM: n.drm, Now: clock, Logger: n.log,
		Limit: limit.New(n.cfg.LicenceRateAddress), Clients: n.clients(),
		Admit: func(ctx context.Context, o playbackid.Object, r licence.Request, now time.Time) (url.Values, error) {
			t, err := n.guard.Licence(ctx, o, playback.Request{
				Tokens:     r.Tokens,
				Referrers:  r.Referrers,
				UserAgents: r.UserAgents,
			}, now)
			return t.Modifiers, err
		},
		Post: func(
			ctx context.Context, to string, header http.Header, body []byte, most int64,
		) (licence.Response, error) {
			a, err := n.fetch.Post(ctx, to, header, body, most)
			return licence.Response{Status: a.Status, ContentType: a.Header.Get("Content-Type"), Body: a.Body}, err
		},
	})
}
