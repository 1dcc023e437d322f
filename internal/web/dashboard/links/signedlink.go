package links

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/web/dashboard/settings"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

const linkEnd = "/playback-ids/{playback}/link"

// Maker makes signed links for live streams and assets, and what is given to viewers without one.
type Maker struct {
	*shell.Shell

	Signing      signing.API
	Restrictions restriction.API
}

// Add adds the pages on which links are made for what a path names. Nothing is stored, so the audit log has nothing of
// it.
func (mk *Maker) Add(path string, find findLinked) {
	mk.Handle("GET "+path+linkEnd, "", access.SystemRead, mk.withLinkForm(find, mk.showLinkForm))
	mk.Handle("POST "+path+linkEnd, "", access.SystemRead, mk.withLinkForm(find, mk.makeLink))
}

// Guarded is a playback ID that plays only with tokens.
type Guarded struct {
	playbackid.ID

	Of string // address of the page that it is shown on
}

// Link is the address of the page that makes signed links.
func (g Guarded) Link() string {
	return g.Of + "/playback-ids/" + url.PathEscape(string(g.ID.ID)) + "/link"
}

// GuardedOf are those of a stream or an asset whose page is at an address.
func GuardedOf(ids []playbackid.ID, address string) []Guarded {
	var out []Guarded
	for _, p := range ids {
		if p.Policy != playbackid.Public {
			out = append(out, Guarded{p, address})
		}
	}
	return out
}

// Linked is what a signed link is made for.
type Linked struct {
	Guarded

	Title, ListAddress, ListName string
}

// DRM reports whether players need a licence too.
func (l Linked) DRM() bool { return l.Policy == playbackid.DRM }

// findLinked reads what the path of a request names.
type findLinked func(r *shell.Request) (Linked, error)

// LinkedOf is the one of all that a request names, with what is said of it.
func LinkedOf(r *shell.Request, all []Guarded, l Linked) (Linked, error) {
	i := slices.IndexFunc(all, func(g Guarded) bool { return string(g.ID.ID) == r.PathValue("playback") })
	if i < 0 {
		return Linked{}, fault.New(fault.NotFound, "it has no such playback ID that needs signed links")
	}
	l.Guarded = all[i]
	return l, nil
}

// use is what a token lets people have: an audience.
type use struct {
	Audience, Name string
	Type           string // what client libraries and `millrace token sign` call it
	paths          []linkedPath
}

// linkedPath is an address that a token of a use is for, below that of the service: before and after the playback ID.
type linkedPath struct{ what, before, after string }

const embedPage = "Embed page"

var uses = []use{ //nolint:gochecknoglobals // a table
	{"v", "To watch: watch page, embed and playlist", "video", []linkedPath{
		{"Watch page", "/watch/", ""}, {embedPage, "/embed/", ""}, {"Playlist for players", "/", ".m3u8"},
	}},
	{"t", "Thumbnail", "thumbnail", []linkedPath{{"Thumbnail", "/", "/thumbnail.jpg"}}},
	{"g", "Animated picture", "gif", []linkedPath{
		{"Animated GIF", "/", "/animated.gif"}, {"Animated WebP", "/", "/animated.webp"},
	}},
	{"s", "Storyboard", "storyboard", []linkedPath{
		{"Storyboard as WebVTT", "/", "/storyboard.vtt"}, {"Its picture", "/", "/storyboard.jpg"},
	}},
}

// licence is the audience of tokens for DRM licences.
const licence = "d"

// linkForm is the page on which a signed link is made. The private half is not shown again, not even to who has just
// pasted it.
type linkForm struct {
	Linked

	Uses         []use
	Keys         []settings.SigningKey
	Restrictions []settings.Restriction
	MayMake      bool // signing keys

	Use, Amount, Unit, Key, Restriction string
	shell.FormErrors

	keys []signing.Key
}

// linkFields are what may be wrong in that form, which the form itself says.
var linkFields = []shell.Field{ //nolint:gochecknoglobals // a table
	shell.At("", "use", "For"),
	shell.At("", "amount", "Valid for"),
	shell.At("", "key", "Signing key"),
	shell.At("", "private_key", "Private key"),
	shell.At("", "restriction", "Playback restriction"),
}

// Units are the units of how long a link holds.
func (linkForm) Units() []string { return []string{"minutes", "hours", "days"} }

// linkForm reads what there is to choose from.
func (mk *Maker) linkForm(ctx context.Context, p access.Person, of Linked) (linkForm, error) {
	f := linkForm{Linked: of, Uses: uses, MayMake: p.Permits(access.SystemWrite)}
	keys, err := mk.Signing.List(ctx, p.Environment.ID, 1, signing.MaxKeys) // all that there can be
	if err != nil {
		return f, err
	}
	f.keys = keys
	f.Keys = shell.Each(keys, func(k signing.Key) settings.SigningKey {
		return settings.SigningKey{ID: k.ID, CreatedAt: k.CreatedAt}
	})
	rules, err := mk.Restrictions.List(ctx, p.Environment.ID, 1, maxRestrictions)
	f.Restrictions = shell.Each(rules, func(v restriction.Restriction) settings.Restriction {
		return settings.Restriction{Restriction: v}
	})
	return f, err
}

const maxRestrictions = 100 // playback restrictions of an environment

// withLinkForm reads the form of what a request names, and hands it on.
func (mk *Maker) withLinkForm(
	find findLinked, then func(r *shell.Request, f linkForm) (shell.View, error),
) shell.Handler {
	return func(r *shell.Request) (shell.View, error) {
		of, err := find(r)
		var f linkForm
		if err == nil {
			f, err = mk.linkForm(r.Context(), r.Person, of)
		}
		if err != nil {
			return shell.View{}, err
		}
		return then(r, f)
	}
}

func (mk *Maker) showLinkForm(_ *shell.Request, f linkForm) (shell.View, error) {
	f.Use, f.Amount, f.Unit = "v", "6", "hours"
	return shell.Show("signedlink", f), nil
}

// madeLink is the page with a signed link. It is the response to the form: the tokens are in no address of the
// dashboard.
type madeLink struct {
	Linked

	Use   use
	Until time.Time
	Lines []shell.CopyLine
	Watch string // the address of the watch page below that of the service; empty: there is none to open
	NoRef bool   // the restriction refuses the watch and embed pages
	Code  []sdkcode.Sample
}

func (mk *Maker) makeLink(r *shell.Request, f linkForm) (shell.View, error) {
	f.Fields = linkFields
	f.Use, f.Amount, f.Unit = r.Text("use"), r.Text("amount"), r.Text("unit")
	f.Key, f.Restriction = r.Text("key"), r.Text("restriction")
	o := f.read(r.PostFormValue("private_key"))
	if len(f.Bad) > 0 {
		return shell.ShowAs(http.StatusBadRequest, "signedlink", f), nil
	}
	o.framed = r.Person.Environment.FrameAncestors != access.FrameNone
	made, err := mk.madeLink(f.Linked, o)
	return shell.Show("madelink", made), err
}
