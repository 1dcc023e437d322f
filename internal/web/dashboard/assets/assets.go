package assets

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/links"
	"millrace/internal/web/dashboard/shell"
)

func (rm *room) route() {
	rm.Handle("GET "+shell.AssetsPath, "", shell.Reads, rm.listAssets)
	rm.Handle("GET "+shell.AssetsPath+"/follow", "", shell.Reads, shell.FollowList(rm.rows, findAssets))
	rm.routeAdd()
	rm.routeAsset()
}

// Video is an asset as pages show it.
type Video struct {
	asset.Asset

	Now time.Time
}

// Name is what it is called; empty: nothing.
func (v Video) Name() string { return strings.TrimSpace(v.Options.Meta.Title) }

// Title is its name; without one the beginning and the end of its ID.
func (v Video) Title() string {
	if t := shell.PlainName(v.Options.Meta.Title); t != "" {
		return t
	}
	return shell.Short(v.ID)
}

// Address is that of its page.
func (v Video) Address() string { return shell.AssetsPath + "/" + url.PathEscape(string(v.ID)) }

// Public is the playback ID that everybody may use.
func (v Video) Public() id.Playback { return links.Public(v.PlaybackIDs) }

// Long is how long it is.
func (v Video) Long() time.Duration {
	return time.Duration(v.Facts.Duration * float64(time.Second))
}

// Poster is the address of its picture; empty: there is none to show.
func (v Video) Poster() string {
	if p := v.Public(); p != "" && v.Ready() && v.Facts.HasVideo {
		return "/" + string(p) + "/thumbnail.webp?width=320"
	}
	return ""
}

// Growing reports whether it is being recorded. Of this and the next three one is true.
func (v Video) Growing() bool { return v.IsLive }

// Preparing reports whether nothing of it plays yet.
func (v Video) Preparing() bool { return !v.IsLive && v.Status == asset.Preparing }

// Ready reports whether it plays.
func (v Video) Ready() bool { return !v.IsLive && v.Status == asset.Ready }

// Failed reports whether it could not be made.
func (v Video) Failed() bool { return !v.IsLive && v.Status == asset.Errored }

// Unfinished reports whether it is played already while the rest of it is made.
func (v Video) Unfinished() bool {
	return v.Ready() && (v.Progress.State == asset.Ingesting || v.Progress.State == asset.Transcoding)
}

// Working reports whether it is being made.
func (v Video) Working() bool { return v.Preparing() || v.Unfinished() }

// Percent is how far it is made; empty: not known, or whole.
func (v Video) Percent() string {
	if v.Working() {
		return percent(v.Progress.Percent)
	}
	return ""
}

func percent(p float64) string {
	if p <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", min(p, 100))
}

// left says how long something still takes; empty: nobody knows.
func left(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Minute:
		return "Less than a minute left"
	case d < 90*time.Second:
		return "About a minute left"
	case d < 90*time.Minute:
		return fmt.Sprintf("About %.0f minutes left", d.Minutes())
	case d < 36*time.Hour:
		return fmt.Sprintf("About %.0f hours left", d.Hours())
	}
	return fmt.Sprintf("About %.0f days left", d.Hours()/24)
}

// Work is what is done with it while it is prepared.
func (v Video) Work() string {
	if v.Progress.State == asset.Transcoding {
		return "Encoding"
	}
	return "Preparing"
}

// Why says what went wrong.
func (v Video) Why() string { return why(v.Errors) }

func why(e *asset.Errors) string {
	if e == nil || len(e.Messages) == 0 {
		return "See the service's log for the reason."
	}
	return shell.Capital(strings.Join(e.Messages, ". "))
}

// Watch says who may watch.
func (v Video) Watch() string {
	switch {
	case len(v.PlaybackIDs) == 0:
		return "Nobody"
	case v.Public() != "":
		return "Everyone"
	}
	return "Signed links"
}

// From says where it comes from.
func (v Video) From() string {
	switch {
	case v.SourceAsset != "":
		return "Clip"
	case v.LiveStream != "":
		return "Live stream"
	case v.Upload != "":
		return "Upload"
	}
	return "URL"
}

// assetList is the page of all assets.
type assetList struct {
	shell.Selection

	Rows []Video
}

// states are the words by which the list is filtered.
var states = map[string]func(Video) bool{ //nolint:gochecknoglobals // a table
	"preparing": Video.Preparing, "growing": Video.Growing, "ready": Video.Ready, "failed": Video.Failed,
}

func (rm *room) listAssets(r *shell.Request) (shell.View, error) {
	l, err := rm.videos(r.Context(), r.Person, findAssets(r))
	return shell.Show("assets", l), err
}

// findAssets reads which assets a request asks for.
func findAssets(r *shell.Request) shell.Selection {
	return shell.Select(r.URL.Query(), shell.AssetsPath, "preparing", "growing", "ready", "failed")
}

// videos reads what the page of the list shows.
func (rm *room) videos(ctx context.Context, p access.Person, f shell.Selection) (l assetList, err error) {
	l.Selection = f
	var rows []asset.Asset
	list := func(page, limit int) ([]asset.Asset, error) {
		some, _, failed := rm.Assets.List(ctx, p.Environment.ID, asset.ListQuery{Page: page, Limit: limit})
		return some, failed
	}
	if !l.Filtered {
		rows, err = shell.Paged(&l.Selection, list)
	} else {
		rows, err = shell.Searched(&l.Selection, list, l.fits)
	}
	if err == nil && l.Query != "" && len(rows) == 0 {
		rows, err = rm.assetByID(ctx, p, l)
	}
	l.Rows = shell.Each(rows, rm.video)
	return l, err
}

func (rm *room) video(a asset.Asset) Video { return Video{a, rm.Now()} }

// New is empty: a page that is loaded has what is new.
func (al assetList) New() string { return "" }

// Self is the address of the page.
func (al assetList) Self() string { return al.Address(al.Page) }

// Follow is the address of the events that change the page.
func (al assetList) Follow() string {
	return shell.FollowAddress(al.Selection, al.Rows, Video.Row)
}

// fits reports whether an asset has the state and the text that are looked for.
func (al assetList) fits(a asset.Asset) bool {
	if is := states[al.Status]; is != nil && !is(Video{Asset: a}) {
		return false
	}
	return al.Query == "" || links.Named(a.PlaybackIDs, al.Query) ||
		shell.Contain(al.Query, a.Options.Meta.Title, string(a.ID),
			a.Options.Passthrough, a.Options.Meta.ExternalID)
}

// assetByID finds an asset by its ID, however old it is.
func (rm *room) assetByID(ctx context.Context, p access.Person, l assetList) ([]asset.Asset, error) {
	a, err := rm.Assets.Get(ctx, p.Environment.ID, id.Asset(l.Query))
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !l.fits(a):
		return nil, nil
	}
	return []asset.Asset{a}, nil
}

// load reads the asset that a request names.
func (rm *room) load(r *shell.Request) (asset.Asset, error) {
	return rm.Assets.Get(r.Context(), r.Person.Environment.ID, assetOf(r))
}

// Row names its row in a list.
func (v Video) Row() id.Asset { return v.ID }

// Made is when it was made.
func (v Video) Made() time.Time { return v.CreatedAt }

// Moves reports whether work goes on whose progress no events tell.
func (v Video) Moves() bool { return v.Working() }

// MadeOf is the upload that it was made of; empty: of none.
func (v Video) MadeOf() id.Upload { return v.Upload }

// videoSource has the rows of the list of assets.
type videoSource struct {
	*room
	shell.Uncounted
}

// About implements source.
func (videoSource) About(h shell.Change) id.Asset { return h.Asset }

// Load implements source.
func (v videoSource) Load(ctx context.Context, p access.Person, f shell.Selection) (shell.Loaded[Video], error) {
	l, err := v.videos(ctx, p, f)
	return shell.Loaded[Video]{Selection: l.Selection, Rows: l.Rows}, err
}

// Some implements source.
func (v videoSource) Some(ctx context.Context, env id.Environment, of []id.Asset) ([]Video, error) {
	found, err := v.Assets.Some(ctx, env, of)
	return shell.Each(found, v.video), err
}

// Fits implements source.
func (videoSource) Fits(f shell.Selection, v Video) bool {
	return assetList{Selection: f}.fits(v.Asset)
}

// Gone implements source.
func (v videoSource) Gone(of id.Asset, name string) Video {
	out := v.video(asset.Asset{ID: of})
	out.Options.Meta.Title = name
	return out
}
