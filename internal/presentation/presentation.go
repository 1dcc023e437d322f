// Package presentation resolves a playback ID to what viewers may see: rows say what may be watched, broadcasts and
// stored timelines what exists. It implements playback.Source, and says what downloads consist of. It must never know
// SQL, S3's API, sockets, who publishes, or where a broadcast's edge is. It starts no goroutine.
package presentation

import (
	"context"
	"log/slog"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/delivered"
	"millrace/internal/media/images"
	"millrace/internal/media/metering"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/stalecache"
	"millrace/internal/storage/blob"
)

// Resolver finds what a playback ID leads to.
type Resolver interface {
	Resolve(ctx context.Context, p id.Playback) (playbackid.Object, error)
}

var _ Resolver = access.API(nil)

// Broadcasts are those that this node can show; broadcast.Service fits, which has its own. What follows those of other
// nodes fits too.
type Broadcasts interface {
	// Recovered waits until this node has taken up what it was recording before it was started again.
	Recovered(ctx context.Context) error
	// Watched is the broadcast that a live stream's viewers see: the current one, or the last one while it is kept.
	// NotReady: there is none.
	Watched(ctx context.Context, s id.LiveStream) (playback.Broadcast, error)
	// OfAsset is the broadcast of a live stream that is recorded as an asset. NotFound: there is none.
	OfAsset(ctx context.Context, s id.LiveStream, a id.Asset) (playback.Broadcast, error)
	// Earlier is a broadcast of a live stream by its media, current or kept. NotFound: there is none.
	Earlier(ctx context.Context, s id.LiveStream, m id.Media) (playback.Broadcast, error)
}

// Guard says what a request may have of a playback ID; permit.Guard fits.
type Guard interface {
	Admit(ctx context.Context, o playbackid.Object, r playback.Request, now time.Time) (playback.Permit, error)
}

// Options configures a Source.
type Options struct {
	Access     Resolver
	Assets     asset.Reader
	Broadcasts Broadcasts // nil on nodes without ingest
	Blob       blob.Store
	Library    *ondemand.Library
	Renditions *justintime.Maker // nil: what is stored is all there is
	Images     *images.Maker     // nil: there are none
	Meter      *metering.Meter   // of what viewers are sent; nil: nothing is counted
	Workers    Workers           // make what is not stored; nil: this node does
	Guard      Guard             // nil: only what is public is sent
	Keys       ContentKeys       // nil: nothing is encrypted, and what has to be is not sent
	Now        func() time.Time
	Logger     *slog.Logger
}

// Source implements playback.Source.
type Source struct {
	opt     Options
	objects delivered.Objects // the stored ones

	ids    *stalecache.Cache[id.Playback, playbackid.Object]
	assets *stalecache.Cache[id.Asset, *asset.Asset]     // rows that are never changed
	whole  *stalecache.Cache[string, *timeline.Timeline] // by index object; they never change
	views  *stalecache.Cache[id.Asset, *recorded]        // of one revision of the asset each
	texts  *stalecache.Cache[string, captions.Document]  // by object

	encrypted *protection.Store
}

// fresh is how long a row may be used without asking the database again: how late another node's changes are seen. Of
// changes on this node AssetChanged and StreamChanged tell.
const fresh = time.Second

// New returns a Source.
func New(o Options) *Source {
	return &Source{
		opt: o, objects: mediastore.Objects{Blob: o.Blob},
		ids:    stalecache.New[id.Playback, playbackid.Object](4096, fresh),
		assets: stalecache.New[id.Asset, *asset.Asset](4096, fresh),
		whole:  stalecache.New[string, *timeline.Timeline](256, 0), views: stalecache.New[id.Asset, *recorded](256, 0),
		texts: stalecache.New[string, captions.Document](256, 0), encrypted: protection.NewStore(keptEncrypted),
	}
}

// Lookups are those of encrypted media in memory.
func (src *Source) Lookups() *metering.Lookups { return &src.encrypted.Lookups }

// AssetChanged says that an asset, its playback IDs or its tracks have changed on this node: who was told of it may
// look at once.
func (src *Source) AssetChanged(a id.Asset) { src.assets.Drop(a) }

// StreamChanged is AssetChanged for the playback IDs of a live stream. What else changes of it is not told: what is
// known of its playback IDs is needed while the database is away.
func (src *Source) StreamChanged(s id.LiveStream) {
	src.ids.DropIf(func(o playbackid.Object) bool {
		return o.Kind == playbackid.OfLiveStream && o.ObjectID == string(s)
	})
}

// Open implements playback.Source.
func (src *Source) Open(ctx context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	if err := src.recovered(ctx); err != nil {
		return nil, playback.Permit{}, err
	}
	now := src.opt.Now()
	o, err := src.resolve(ctx, id.Playback(r.PlaybackID), now)
	if err != nil {
		return nil, playback.Permit{}, err
	}
	permit, err := src.admit(ctx, o, r, now)
	if err != nil {
		return nil, playback.Permit{}, err
	}
	found, err := src.shown(ctx, o, now)
	return found, permit, err
}

// recovered waits until broadcasts are known.
func (src *Source) recovered(ctx context.Context) error {
	if src.opt.Broadcasts == nil {
		return nil
	}
	if err := src.opt.Broadcasts.Recovered(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the service is starting or stopping: ask again in a moment")
	}
	return nil
}

// Resolve finds what a playback ID leads to. The database is asked once a second; while it is away, what is known is
// good.
func (src *Source) Resolve(ctx context.Context, by id.Playback) (playbackid.Object, error) {
	return src.resolve(ctx, by, src.opt.Now())
}

func (src *Source) resolve(ctx context.Context, by id.Playback, now time.Time) (playbackid.Object, error) {
	return src.ids.Get(ctx, by, now, func(ctx context.Context) (playbackid.Object, error) {
		return src.opt.Access.Resolve(ctx, by)
	})
}

// Smallest is the shorter side, in pixels, of the smallest picture that a playback ID has for who may not have a larger
// one; 0: there is nothing to play now.
func (src *Source) Smallest(ctx context.Context, o playbackid.Object) (int, error) {
	if err := src.recovered(ctx); err != nil {
		return 0, err
	}
	found, err := src.shown(ctx, o, src.opt.Now())
	if err != nil {
		return 0, unlessNothing(err)
	}
	all, err := found.Pictures(ctx)
	if err != nil {
		return 0, unlessNothing(err)
	}
	return playback.Smallest(all), nil
}

// unlessNothing is an error, but for one that says that there is nothing to play.
func unlessNothing(err error) error {
	if fault.Is(err, fault.NotReady) || fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// shown is what a playback ID leads to, encrypted if it has the policy drm.
func (src *Source) shown(ctx context.Context, o playbackid.Object, now time.Time) (playback.Presentation, error) {
	found, err := src.find(ctx, o, now)
	if err == nil && o.ID.Policy == playbackid.DRM {
		found, err = src.protect(ctx, o, found, now)
	}
	return found, err
}

// find is what a playback ID leads to, clear.
func (src *Source) find(ctx context.Context, o playbackid.Object, now time.Time) (playback.Presentation, error) {
	if o.Kind == playbackid.OfLiveStream {
		return src.openLive(ctx, id.LiveStream(o.ObjectID), now)
	}
	return src.openAsset(ctx, id.Asset(o.ObjectID), o.ID.ID, now)
}

// admit asks the guard.
func (src *Source) admit(
	ctx context.Context, o playbackid.Object, r playback.Request, now time.Time,
) (playback.Permit, error) {
	switch {
	case src.opt.Guard != nil:
		return src.opt.Guard.Admit(ctx, o, r, now)
	case o.ID.Policy == playbackid.Public:
		return playback.Permit{}, nil
	}
	return playback.Permit{}, fault.New(fault.Denied, "this playback ID has the policy %s, which is not played here",
		o.ID.Policy)
}

func (src *Source) openLive(ctx context.Context, s id.LiveStream, now time.Time) (playback.Presentation, error) {
	if src.opt.Broadcasts == nil {
		return nil, playback.Inactive()
	}
	b, err := src.opt.Broadcasts.Watched(ctx, s)
	if err != nil {
		return nil, err
	}
	var tracks []asset.Track
	if b.HasTexts() { // how they are named can be changed while they are live
		a := b.About().Asset
		row, err := src.assets.Get(ctx, a, now, src.findAsset(a))
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		if err == nil {
			tracks = row.Tracks
		}
	}
	return src.live(b, s, tracks), nil
}

// findAsset reads an asset's row.
func (src *Source) findAsset(a id.Asset) func(ctx context.Context) (*asset.Asset, error) {
	return func(ctx context.Context) (*asset.Asset, error) {
		found, err := src.opt.Assets.Find(ctx, a)
		return &found, err
	}
}

func (src *Source) openAsset(
	ctx context.Context, a id.Asset, by id.Playback, now time.Time,
) (playback.Presentation, error) {
	has := func(row *asset.Asset) bool { return playbackid.Index(row.PlaybackIDs, by) >= 0 }
	row, err := src.assets.GetIf(ctx, a, now, has, src.findAsset(a))
	if err != nil {
		return nil, err
	}
	if !has(row) { // deleted since it was resolved
		return nil, playbackid.ErrUnknown()
	}
	return src.openRow(ctx, row, now)
}

// openRow is what there is to watch of an asset.
func (src *Source) openRow(ctx context.Context, row *asset.Asset, now time.Time) (playback.Presentation, error) {
	a := row.ID
	if row.Status == asset.Errored {
		return nil, fault.New(fault.NotFound,
			"the asset is errored: there is nothing to play, and there will not be; its errors tell why")
	}
	if src.opt.Broadcasts != nil && row.Index == "" && row.LiveStream != "" {
		b, err := src.opt.Broadcasts.OfAsset(ctx, row.LiveStream, a)
		if err == nil {
			return src.event(b, row), nil
		}
		if !fault.Is(err, fault.NotFound) {
			return nil, err
		}
	}
	current := func(v *recorded) bool { // a timeline grows without the row
		return v.order.Revision == row.Revision && (row.Index != "" || now.Sub(v.read) < fresh)
	}
	return src.views.GetIf(ctx, a, now, current, func(ctx context.Context) (*recorded,
		error,
	) {
		return src.view(ctx, *row)
	})
}

// view is what is stored of an asset with its ready tracks.
func (src *Source) view(ctx context.Context, row asset.Asset) (*recorded, error) {
	t, err := src.stored(ctx, row)
	if err != nil {
		return nil, err
	}
	// Who completes a recording takes its rows away: the asset may be older than that.
	if len(t.Marks) == 0 && row.Index == "" {
		found, err := src.opt.Assets.Find(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		if found.Index != "" {
			return src.view(ctx, found)
		}
	}
	return src.present(ctx, row, t)
}

func (src *Source) stored(ctx context.Context, row asset.Asset) (*timeline.Timeline, error) {
	if row.Index == "" { // still growing, elsewhere
		return mediastore.Growing(ctx, src.opt.Assets, row)
	}
	return src.whole.Get(ctx, row.Index, src.opt.Now(), func(ctx context.Context) (*timeline.Timeline, error) {
		return mediastore.Index(ctx, src.opt.Blob, row.Index)
	})
}

// document is a text track's cues.
func (src *Source) document(ctx context.Context, object string) (captions.Document, error) {
	return src.texts.Get(ctx, object, src.opt.Now(), func(ctx context.Context) (captions.Document, error) {
		return mediastore.Document(ctx, src.opt.Blob, object)
	})
}

// rendition is a rendition of a recording as viewers get it.
func (src *Source) rendition(t *timeline.Timeline, l *timeline.Rendition) mediastore.Rendition {
	return mediastore.Recordings{Blob: src.opt.Blob, Library: src.opt.Library}.Rendition(l, t.First)
}

// open is rendition for those that take any source.
func (src *Source) open(t *timeline.Timeline, l *timeline.Rendition) delivered.Source {
	return src.rendition(t, l)
}
