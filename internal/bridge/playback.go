package bridge

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/images"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
	"millrace/internal/media/transcode"
	"millrace/internal/storage/blob"
)

// Resolver finds what a playback ID leads to.
type Resolver interface {
	Resolve(ctx context.Context, p id.Playback) (playbackid.Object, error)
}

var _ Resolver = access.API(nil)

// PlaybackOptions is what Playback needs.
type PlaybackOptions struct {
	Access  Resolver
	Assets  asset.Work
	Live    *Live // nil on nodes without ingest
	Blob    blob.Store
	Library *ondemand.Library
	Rungs   *transcode.Maker // nil: what is stored is all there is
	Images  *images.Maker    // nil: there are none
	Now     func() time.Time
	Logger  *slog.Logger
}

// Playback implements playback.Source: rows say what may be watched, edges and stored timelines what there is.
type Playback struct {
	opt PlaybackOptions

	ids    *shelf[id.Playback, playbackid.Object]
	assets *shelf[id.Asset, *asset.Asset]     // rows that are never changed
	whole  *shelf[string, *timeline.Timeline] // by index object; they never change
	views  *shelf[id.Asset, *recorded]        // of one revision of the asset each
	texts  *shelf[string, captions.Document]  // by object
}

// fresh is how long a row may be used without asking the database again: how late another node's changes are seen. Of changes on this
// node AssetChanged and StreamChanged tell.
const fresh = time.Second

// NewPlayback returns a Playback.
func NewPlayback(o PlaybackOptions) *Playback {
	return &Playback{
		opt: o, ids: newShelf[id.Playback, playbackid.Object](4096, fresh), assets: newShelf[id.Asset, *asset.Asset](4096, fresh),
		whole: newShelf[string, *timeline.Timeline](256, 0), views: newShelf[id.Asset, *recorded](256, 0),
		texts: newShelf[string, captions.Document](256, 0),
	}
}

// AssetChanged says that an asset, its playback IDs or its tracks have changed on this node: who was told of it may look at once.
func (p *Playback) AssetChanged(a id.Asset) { p.assets.drop(a) }

// StreamChanged is AssetChanged of a live stream.
func (p *Playback) StreamChanged(s id.LiveStream) {
	p.ids.dropIf(func(o playbackid.Object) bool { return o.Kind == playbackid.OfLiveStream && o.ObjectID == string(s) })
}

// Open implements playback.Source.
func (p *Playback) Open(ctx context.Context, playbackID, _ string) (playback.Presentation, error) {
	if p.opt.Live != nil {
		if err := p.opt.Live.Recovered(ctx); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the service is starting or stopping: ask again in a moment")
		}
	}
	now := p.opt.Now()
	o, err := p.ids.get(ctx, id.Playback(playbackID), now, func(ctx context.Context) (playbackid.Object, error) {
		return p.opt.Access.Resolve(ctx, id.Playback(playbackID))
	})
	if err != nil {
		return nil, err
	}
	if o.ID.Policy != playbackid.Public {
		return nil, fault.New(fault.Denied, "this playback ID has the policy %s, which this version of the service can't play yet: "+
			"add a playback ID with the policy public", o.ID.Policy)
	}
	if o.Kind == playbackid.OfLiveStream {
		return p.openLive(id.LiveStream(o.ObjectID))
	}
	return p.openAsset(ctx, id.Asset(o.ObjectID), o.ID.ID, now)
}

func (p *Playback) openLive(s id.LiveStream) (playback.Presentation, error) {
	if p.opt.Live != nil {
		if b := p.opt.Live.watched(s); b != nil {
			return &edgeView{p: p, stream: s, media: string(b.asset.Media), edge: b.edge, lower: b.lower}, nil
		}
	}
	return nil, inactive()
}

func inactive() error {
	return fault.New(fault.NotReady, "the live stream is not active: connect an encoder, then ask again")
}

func (p *Playback) openAsset(ctx context.Context, a id.Asset, by id.Playback, now time.Time) (playback.Presentation, error) {
	has := func(row *asset.Asset) bool { return playbackid.Index(row.PlaybackIDs, by) >= 0 }
	row, err := p.assets.getIf(ctx, a, now, has, func(ctx context.Context) (*asset.Asset, error) {
		found, err := p.opt.Assets.Find(ctx, a)
		return &found, err
	})
	if err != nil {
		return nil, err
	}
	if !has(row) { // deleted since it was resolved
		return nil, playbackid.ErrUnknown()
	}
	if row.Status == asset.Errored {
		return nil, fault.New(fault.NotFound, "the asset is errored: there is nothing to play, and there will not be; its errors tell why")
	}
	if p.opt.Live != nil && row.Index == "" {
		if b := p.opt.Live.holding(a); b != nil {
			return &edgeView{p: p, media: string(b.asset.Media), edge: b.edge, lower: b.lower, event: true, tracks: row.Tracks, files: row.Static}, nil
		}
	}
	current := func(v *recorded) bool { // a timeline grows without the row
		return v.revision == row.Revision && (row.Index != "" || now.Sub(v.read) < fresh)
	}
	return p.views.getIf(ctx, a, now, current, func(ctx context.Context) (*recorded, error) { return p.view(ctx, *row) })
}

// view is what is stored of an asset with its ready tracks.
func (p *Playback) view(ctx context.Context, row asset.Asset) (*recorded, error) {
	t, err := p.stored(ctx, row)
	if err != nil {
		return nil, err
	}
	if len(t.Marks) == 0 && row.Index == "" { // who completes a recording takes its rows away: the asset may be older than that
		found, err := p.opt.Assets.Find(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		if found.Index != "" {
			return p.view(ctx, found)
		}
	}
	return p.present(ctx, row, t)
}

func (p *Playback) stored(ctx context.Context, row asset.Asset) (*timeline.Timeline, error) {
	if row.Index == "" { // still growing, elsewhere
		rows, err := p.opt.Assets.Timeline(ctx, row.ID, 0)
		if err != nil {
			return nil, err
		}
		t, err := build(rows)
		if err != nil || row.IsLive || row.LiveStream == "" {
			return t, err
		}
		return t.Concluded(row.Limit)
	}
	return p.whole.get(ctx, row.Index, p.opt.Now(), func(ctx context.Context) (*timeline.Timeline, error) {
		r, err := p.opt.Blob.Get(ctx, row.Index, 0, -1)
		if err != nil {
			return nil, fmt.Errorf("read timeline index: %w", err)
		}
		defer func() { _ = r.Close() }() // it was only read
		entries, err := timeline.ReadIndex(r)
		if err != nil {
			return nil, err
		}
		return timeline.Build(entries)
	})
}

// document is a text track's cues.
func (p *Playback) document(ctx context.Context, object string) (captions.Document, error) {
	return p.texts.get(ctx, object, p.opt.Now(), func(ctx context.Context) (captions.Document, error) {
		r, err := p.opt.Blob.Get(ctx, object, 0, -1)
		if err != nil {
			return captions.Document{}, err
		}
		defer func() { _ = r.Close() }() // it was only read
		data, err := io.ReadAll(io.LimitReader(r, 64<<20))
		if err != nil {
			return captions.Document{}, fmt.Errorf("read text track: %w", err)
		}
		return captions.Parse(data)
	})
}

// object is a stored object, or a part of it, as a body.
func (p *Playback) object(ctx context.Context, key string, offset, n int64) (playback.Body, error) {
	r, err := p.opt.Blob.Get(ctx, key, offset, n)
	if err != nil {
		return playback.Body{}, err
	}
	if n < 0 {
		n = r.Size - offset
	}
	return playback.Body{Reader: r.ReadCloser, Size: n}, nil
}

// still is a segment in which a picture is held.
func (p *Playback) still(ctx context.Context, msn int64, c timeline.Chunk) (playback.Body, error) {
	r, err := p.opt.Blob.Get(ctx, c.Object, 0, -1)
	if err != nil {
		return playback.Body{}, err
	}
	defer func() { _ = r.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(r, 32<<20))
	if err != nil {
		return playback.Body{}, fmt.Errorf("read held picture: %w", err)
	}
	data, err = ondemand.Still(data, msn, c)
	return playback.Body{Data: data}, err
}
