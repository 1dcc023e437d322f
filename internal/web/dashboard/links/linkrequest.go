package links

import (
	"crypto/rsa"
	"slices"
	"strconv"
	"time"

	"millrace/internal/control/signing"
	"millrace/internal/web/dashboard/settings"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/iframe"
	"millrace/internal/web/sdkcode"
)

// linkRequest is a signed link that somebody wants. The private half is in it for the time of a request.
type linkRequest struct {
	use         use
	key         signing.Key
	private     *rsa.PrivateKey
	restriction *settings.Restriction // nil: no playback restriction
	framed      bool                  // sites may embed players of the environment
	holds       time.Duration
	span        string // how long it holds, as `millrace token sign` and client libraries take it
}

// maxHolds is the longest time that a link is made for.
const maxHolds = 366 * 24 * time.Hour

// spans are the units of how long a link holds, by their names in the form.
var spans = map[string]struct { //nolint:gochecknoglobals // a table
	long   time.Duration
	suffix string
}{
	"minutes": {time.Minute, "m"}, "hours": {time.Hour, "h"}, "days": {24 * time.Hour, "d"},
}

// read reads what was chosen, and marks what is wrong with it.
func (l *linkForm) read(private string) (o linkRequest) {
	i := slices.IndexFunc(l.Uses, func(u use) bool { return u.Audience == l.Use })
	if i < 0 {
		l.Add("use", "Choose what the link is for.")
	} else {
		o.use = l.Uses[i]
	}
	span, known := spans[l.Unit]
	n, err := strconv.Atoi(l.Amount)
	if !known || err != nil || n < 1 || n > int(maxHolds/span.long) {
		l.Add("amount", "This must be a whole number of minutes, hours or days, up to 366 days.")
	} else {
		o.holds, o.span = time.Duration(n)*span.long, strconv.Itoa(n)+span.suffix
	}
	if l.Restriction != "" {
		i = slices.IndexFunc(l.Restrictions, func(v settings.Restriction) bool { return string(v.ID) == l.Restriction })
		if i < 0 {
			l.Add("restriction", "This playback restriction no longer exists. Choose another one.")
		} else {
			o.restriction = &l.Restrictions[i]
		}
	}
	l.readKey(&o, private)
	if len(l.Bad) > 0 && l.Bad["private_key"] == "" {
		l.Add("private_key", "It is not stored, so paste it again.")
	}
	return o
}

// readKey sees to it that the private half is that of the key.
func (l *linkForm) readKey(o *linkRequest, private string) {
	i := slices.IndexFunc(l.keys, func(k signing.Key) bool { return string(k.ID) == l.Key })
	if i < 0 {
		l.Add("key", "This signing key doesn't exist here. Choose one from the list.")
		return
	}
	o.key = l.keys[i]
	var err error
	if o.private, err = signing.ReadPrivate(private); err != nil {
		l.Add("private_key", shell.Sentence(err)+".")
		return
	}
	if o.private.PublicKey.Equal(o.key.Public) {
		return
	}
	for _, k := range l.keys {
		if o.private.PublicKey.Equal(k.Public) {
			l.Add("private_key",
				"This is the private key of "+shell.Short(k.ID)+". Choose that key, or paste the private key of "+
					shell.Short(o.key.ID)+".")
			return
		}
	}
	l.Add("private_key",
		"This private key belongs to none of the signing keys here, so links signed with it would be "+
			"refused. Its key may be deleted, or another environment's.")
}

// madeLink signs what was asked for.
func (mk *Maker) madeLink(of Linked, o linkRequest) (madeLink, error) {
	until := mk.Now().Add(o.holds).Truncate(time.Second)
	m := madeLink{Linked: of, Use: o.use, Until: until, Code: signingCode(of, o)}
	query, err := o.token(of, o.use.Audience, until)
	if err != nil {
		return m, err
	}
	query = "?token=" + query
	watch := o.use.Audience == "v"
	if watch && of.DRM() {
		second, err := o.token(of, licence, until)
		if err != nil {
			return m, err
		}
		query += "&drm-token=" + second
	}
	m.NoRef = watch && o.restriction != nil && !o.restriction.Referrer.AllowNoReferrer
	for _, p := range o.use.paths {
		address := p.before + string(of.ID.ID) + p.after + query
		page := watch && p.after == ""
		switch {
		case p.what == embedPage && !o.framed: // no browser would show it there
			continue
		case page && m.NoRef: // it would be refused
			continue
		case of.DRM() && p.after == ".m3u8": // a player needs more than its address
			continue
		case p.what == "Watch page":
			m.Watch = address
		}
		m.Lines = append(m.Lines, shell.CopyLine{What: p.what, Text: mk.PublicURL + address})
		if p.what == embedPage {
			code := iframe.Code(mk.PublicURL+address, "Video", iframe.Usual)
			m.Lines = append(m.Lines, shell.CopyLine{What: "Embed code", Text: code})
		}
	}
	return m, nil
}

// token signs one of a use.
func (l linkRequest) token(of Linked, audience string, until time.Time) (string, error) {
	claims := map[string]any{"sub": string(of.ID.ID), "aud": audience, "exp": until.Unix()}
	if l.restriction != nil {
		claims["playback_restriction_id"] = string(l.restriction.ID)
	}
	return signing.Sign(l.key.ID, l.private, claims)
}

// signingCode is the same link at a shell and in other languages.
func signingCode(of Linked, o linkRequest) []sdkcode.Sample {
	l := sdkcode.SignedLink{
		Key: string(o.key.ID), Playback: string(of.ID.ID), Type: o.use.Type, Audience: o.use.Audience,
		Span: o.span, Lasts: o.holds,
	}
	if o.restriction != nil {
		l.Restriction = string(o.restriction.ID)
	}
	return l.Samples()
}
