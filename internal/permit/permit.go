// Package permit decides who may watch media that is not public: by the token of a request, or the signed path that it
// was exchanged for; by the playback restriction that either names; and with which content keys the media is encrypted.
// It must never know HTTP, SQL, licences or the clock (`now` is an argument). It starts no goroutine.
package permit

import (
	"context"
	"time"

	"millrace/internal/control/audience"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/playback"
)

// Options configures a Guard.
type Options struct {
	Signing      *signing.Service
	Restrictions *restriction.Service
	// SessionMax is how long somebody may go on watching who began with a good token, also behind its expiry. 0: until
	// that.
	SessionMax time.Duration
}

// Guard decides. All its methods may be called at the same time.
type Guard struct{ opt Options }

// New returns a Guard.
func New(o Options) *Guard { return &Guard{opt: o} }

// audiences are the claims aud of tokens by what they are for.
var audiences = map[playback.Use]string{ //nolint:gochecknoglobals // a table
	playback.ToWatch: "v", playback.ToThumbnail: "t", playback.ToAnimated: "g", playback.ToStoryboard: "s",
}

// Admit says what a request may have of a playback ID. fault.Denied: nothing, and why.
func (g *Guard) Admit(
	ctx context.Context, o playbackid.Object, r playback.Request, now time.Time,
) (playback.Permit, error) {
	switch o.ID.Policy {
	case playbackid.Public:
		return playback.Permit{}, public(r)
	case playbackid.Signed, playbackid.DRM: // what a licence takes is asked where licences are given
		if r.Path != "" {
			return g.byPath(ctx, o, r, now)
		}
		return g.byToken(ctx, o, r, now)
	}
	return playback.Permit{}, fault.New(fault.Internal, "a playback ID has the unknown policy %s", o.ID.Policy)
}

// public refuses what has no meaning for a public playback ID, so that anyone who believes to have signed something
// learns that it is open.
func public(r playback.Request) error {
	if len(r.Tokens) > 0 {
		return fault.Coded(fault.Invalid, "token_unexpected",
			"token: this playback ID is public and takes no token; only playback IDs with the policy signed or drm "+
				"take one")
	}
	if r.Path != "" {
		return fault.New(fault.NotFound, "there is nothing to play under this address")
	}
	return nil
}

// Licence reports whether a request may have the licences of a playback ID, and gives its token. fault.Denied: it may
// not, and why.
func (g *Guard) Licence(
	ctx context.Context, o playbackid.Object, r playback.Request, now time.Time,
) (signing.Token, error) {
	const licence = "d"
	return g.token(ctx, o, r, licence, now)
}

// token is the one token of a request, which has to be for a use of the playback ID.
func (g *Guard) token(
	ctx context.Context, o playbackid.Object, r playback.Request, use string, now time.Time,
) (signing.Token, error) {
	switch len(r.Tokens) {
	case 0:
		return signing.Token{}, fault.Coded(fault.Denied, "token_missing",
			"token: this playback ID has the policy %s; add ?token= with a token", o.ID.Policy)
	case 1:
	default:
		return signing.Token{}, fault.New(fault.Denied, "token: there must be one, not %d", len(r.Tokens))
	}
	t, err := g.opt.Signing.Verify(ctx, r.Tokens[0], o.Environment, now)
	if err != nil {
		return signing.Token{}, err
	}
	if t.Subject != string(o.ID.ID) {
		return signing.Token{}, fault.Coded(fault.Denied, "token_subject",
			"token: the subject (sub) must be the playback ID")
	}
	if !t.For(use) {
		return signing.Token{}, fault.Coded(fault.Denied, "token_audience", "token: the audience (aud) must be %s here",
			use)
	}
	return t, g.restricted(ctx, o.Environment, t.Restriction, r, now)
}

// byToken is for the requests that a player makes of itself: the multivariant playlist, images, texts and files.
func (g *Guard) byToken(
	ctx context.Context, o playbackid.Object, r playback.Request, now time.Time,
) (playback.Permit, error) {
	use := audiences[r.Use]
	t, err := g.token(ctx, o, r, use, now)
	if err != nil {
		return playback.Permit{}, err
	}
	p := playback.Permit{Signed: true, Query: t.Modifiers.Encode()}
	if r.Use != playback.ToWatch && r.Use != playback.ToStoryboard {
		return p, nil
	}
	path := signing.Path{
		Use:         use,
		Key:         t.Key,
		Restriction: t.Restriction,
		Modifiers:   playback.Carried(t.Modifiers, r.Use),
		Until:       t.Expires,
	}
	if longest := now.Add(g.opt.SessionMax); longest.After(path.Until) {
		path.Until = longest
	}
	p.Path, _, err = g.opt.Signing.SignPath(ctx, o.ID.ID, path, now)
	return p, err
}

// byPath is for what is behind them. The key and the restriction of the token are looked at again: they may be gone, or
// changed.
func (g *Guard) byPath(
	ctx context.Context, o playbackid.Object, r playback.Request, now time.Time,
) (playback.Permit, error) {
	path, err := g.opt.Signing.OpenPath(ctx, o.ID.ID, r.Path, now)
	if err != nil {
		return playback.Permit{}, err
	}
	// pictures for it are in a playlist
	winding := path.Use == audiences[playback.ToWatch] && r.Use == playback.ToStoryboard
	if path.Use != audiences[r.Use] && !winding {
		return playback.Permit{}, fault.New(fault.Denied, "the signed path is not for this")
	}
	if _, err = g.opt.Signing.Known(ctx, o.Environment, path.Key, now); err != nil {
		return playback.Permit{}, err
	}
	if err = g.restricted(ctx, o.Environment, path.Restriction, r, now); err != nil {
		return playback.Permit{}, err
	}
	return playback.Permit{
		Signed: true, Path: r.Path, Until: path.Until, Query: path.Modifiers, Shared: path.Restriction == "",
	}, nil
}

func (g *Guard) restricted(
	ctx context.Context, env id.Environment, by id.PlaybackRestriction, r playback.Request, now time.Time,
) error {
	if by == "" {
		return nil
	}
	return g.opt.Restrictions.Permits(ctx, env, by, r.Referrers, r.UserAgents, now)
}

// Counts verifies tokens for viewer counts.
type Counts struct{ Guard *Guard }

var _ audience.Verifier = Counts{}

// Verify implements audience.Verifier.
func (c Counts) Verify(ctx context.Context, r audience.Request, now time.Time) (audience.Grant, error) {
	t, err := c.Guard.opt.Signing.Verify(ctx, r.Token, "", now)
	if err != nil {
		return audience.Grant{}, err
	}
	if len(t.Audience) != 1 {
		return audience.Grant{}, fault.New(fault.Denied, "token: there must be one audience (aud)")
	}
	from := playback.Request{Referrers: r.Referrers, UserAgents: r.UserAgents}
	if err = c.Guard.restricted(ctx, t.Environment, t.Restriction, from, now); err != nil {
		return audience.Grant{}, err
	}
	return audience.Grant{Environment: t.Environment, Kind: audience.Kind(t.Audience[0]), ID: t.Subject}, nil
}
