package app

import (
	"millrace/internal/control/drm"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/permit"
	"millrace/internal/storage/db"
)

// admission is who may watch what is not public.
type admission struct {
	signing      *signing.Service
	restrictions *restriction.Service
	guard        *permit.Guard
	drm          *drm.Service
}

// admitViewers builds it.
func (n *node) admitViewers() {
	n.signing = signing.New(signing.Options{Store: n.db.Signing()})
	n.restrictions = restriction.New(restriction.Options{Store: n.db.Restrictions()})
	n.drm = drm.New(drm.Options{Store: n.db.DRM(), Provider: keyProvider{n.fetch}.ask})
	n.guard = permit.New(permit.Options{
		Signing: n.signing, Restrictions: n.restrictions, SessionMax: n.cfg.PlaybackSessionMax,
	})
	n.db.HearRights(db.Rights{
		SigningKey: n.signing.Forget, Restriction: n.restrictions.Forget,
		Missed: func() {
			n.signing.ForgetAll()
			n.restrictions.ForgetAll()
		},
	})
}
