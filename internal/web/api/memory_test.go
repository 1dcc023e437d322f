package api

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// memory is what the real services keep their rows in for tests of the API: maps instead of a database, events and jobs dropped.
type memory struct {
	mu      sync.Mutex
	streams []live.Stream // oldest first
	assets  []asset.Asset // oldest first
	env     access.Environment
	tokens  []access.Token
}

func absent(what string) error { return fault.New(fault.NotFound, "the %s does not exist", what) }

func moved() error { return fault.New(fault.Conflict, "the row has moved on") }

type liveMemory struct{ *memory }

func (m liveMemory) find(match func(live.Stream) bool) (int, error) {
	i := slices.IndexFunc(m.streams, match)
	if i < 0 {
		return 0, absent("live stream")
	}
	return i, nil
}

func (m liveMemory) get(match func(live.Stream) bool) (live.Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(match)
	if err != nil {
		return live.Stream{}, err
	}
	return m.streams[i], nil
}

func (m liveMemory) Insert(_ context.Context, c live.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams = append(m.streams, c.Stream)
	return nil
}

func (m liveMemory) Get(_ context.Context, env id.Environment, s id.LiveStream) (live.Stream, error) {
	return m.get(func(st live.Stream) bool { return st.ID == s && st.Environment == env && st.DeletedAt.IsZero() })
}

func (m liveMemory) Find(_ context.Context, s id.LiveStream) (live.Stream, error) {
	return m.get(func(st live.Stream) bool { return st.ID == s })
}

func (m liveMemory) ByKey(_ context.Context, key string) (live.Stream, error) {
	return m.get(func(st live.Stream) bool { return st.StreamKey == key && st.DeletedAt.IsZero() })
}

func (m liveMemory) List(_ context.Context, env id.Environment, q live.ListQuery) ([]live.Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []live.Stream
	for _, st := range slices.Backward(m.streams) {
		if st.Environment == env && st.DeletedAt.IsZero() && (q.Status == "" || st.Status() == q.Status) && (q.StreamKey == "" || st.StreamKey == q.StreamKey) {
			out = append(out, st)
		}
	}
	return part(out, (q.Page-1)*q.Limit, q.Limit), nil
}

func part[T any](list []T, from, n int) []T {
	from = min(from, len(list))
	return list[from:min(from+n, len(list))]
}

func (m liveMemory) Broadcasting(context.Context) ([]live.Stream, error) { return nil, nil }

func (m liveMemory) Save(_ context.Context, c live.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(func(st live.Stream) bool { return st.ID == c.Stream.ID })
	if err != nil {
		return err
	}
	if old := m.streams[i]; old.State != c.From || old.Epoch != c.FromEpoch || old.Revision != c.Stream.Revision {
		return moved()
	}
	c.Stream.Revision++
	m.streams[i] = c.Stream
	return nil
}

func (m liveMemory) Delete(_ context.Context, c live.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(func(st live.Stream) bool { return st.ID == c.Stream.ID })
	if err == nil {
		m.streams = slices.Delete(m.streams, i, i+1)
	}
	return err
}

func (m liveMemory) Renew(ctx context.Context, s id.LiveStream, _ id.Epoch, _ id.Node, _ time.Time) (live.Stream, error) {
	return m.Find(ctx, s)
}

type assetMemory struct{ *memory }

func (m assetMemory) find(match func(asset.Asset) bool) (int, error) {
	i := slices.IndexFunc(m.assets, match)
	if i < 0 {
		return 0, absent("asset")
	}
	return i, nil
}

func (m assetMemory) get(match func(asset.Asset) bool) (asset.Asset, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(match)
	if err != nil {
		return asset.Asset{}, err
	}
	return m.assets[i], nil
}

func (m assetMemory) Insert(_ context.Context, c asset.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.assets = append(m.assets, c.Asset)
	return nil
}

func (m assetMemory) Get(_ context.Context, env id.Environment, a id.Asset) (asset.Asset, error) {
	return m.get(func(have asset.Asset) bool { return have.ID == a && have.Environment == env })
}

func (m assetMemory) Find(_ context.Context, a id.Asset) (asset.Asset, error) {
	return m.get(func(have asset.Asset) bool { return have.ID == a })
}

// List has cursors that count from the oldest, so that newer assets do not move them.
func (m assetMemory) List(_ context.Context, env id.Environment, q asset.ListQuery) ([]asset.Asset, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []asset.Asset
	for _, a := range slices.Backward(m.assets) {
		if a.Environment == env && (q.LiveStream == "" || a.LiveStream == q.LiveStream) {
			all = append(all, a)
		}
	}
	from := (q.Page - 1) * q.Limit
	if q.Cursor != "" {
		left, err := strconv.Atoi(q.Cursor)
		if err != nil || left < 0 || left > len(all) {
			return nil, "", fault.New(fault.Invalid, "cursor must be a next_cursor of an earlier answer")
		}
		from = len(all) - left
	}
	out := part(all, from, q.Limit)
	if left := len(all) - from - len(out); left > 0 {
		return out, strconv.Itoa(left), nil
	}
	return out, "", nil
}

func (m assetMemory) Save(_ context.Context, c asset.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(func(have asset.Asset) bool { return have.ID == c.Asset.ID })
	if err != nil {
		return err
	}
	if old := m.assets[i]; old.Status != c.From || old.Revision != c.Asset.Revision {
		return moved()
	}
	c.Asset.Revision++
	m.assets[i] = c.Asset
	return nil
}

func (m assetMemory) Delete(_ context.Context, c asset.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(func(have asset.Asset) bool { return have.ID == c.Asset.ID })
	if err == nil {
		m.assets = slices.Delete(m.assets, i, i+1)
	}
	return err
}

func (m assetMemory) Timeline(context.Context, id.Asset, int64) ([]asset.TimelineEntry, error) {
	return nil, nil
}

func (m assetMemory) Users(context.Context, id.Media) ([]asset.Asset, error) { return nil, nil }

func (m assetMemory) Preparing(context.Context) ([]asset.Asset, error) { return nil, nil }

type accessMemory struct{ *memory }

func (m accessMemory) Environment(context.Context, id.Environment) (access.Environment, error) {
	return m.env, nil
}

func (m accessMemory) EnsureDefault(_ context.Context, fresh access.Environment) (access.Environment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.env.ID == "" {
		m.env = fresh
	}
	return m.env, nil
}

func (m accessMemory) InsertToken(_ context.Context, t access.Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens = append(m.tokens, t)
	return nil
}

func (m accessMemory) Token(_ context.Context, t id.Token) (access.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.tokens, func(have access.Token) bool { return have.ID == t })
	if i < 0 {
		return access.Token{}, absent("token")
	}
	return m.tokens[i], nil
}

func (m accessMemory) Tokens(context.Context) ([]access.Token, error) { return m.tokens, nil }

func (m accessMemory) RevokeToken(context.Context, id.Token, time.Time) error { return nil }

func (m accessMemory) PlaybackID(_ context.Context, p id.Playback) (playbackid.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.streams {
		if i := playbackid.Index(s.PlaybackIDs, p); i >= 0 {
			return playbackid.Object{ID: s.PlaybackIDs[i], Environment: s.Environment, Kind: playbackid.OfLiveStream, ObjectID: string(s.ID)}, nil
		}
	}
	for _, a := range m.assets {
		if i := playbackid.Index(a.PlaybackIDs, p); i >= 0 {
			return playbackid.Object{ID: a.PlaybackIDs[i], Environment: a.Environment, Kind: playbackid.OfAsset, ObjectID: string(a.ID)}, nil
		}
	}
	return playbackid.Object{}, absent("playback ID")
}
