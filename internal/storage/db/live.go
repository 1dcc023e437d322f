package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

const liveStream = "live stream"

type liveStore struct{ *DB }

type liveRow struct {
	bun.BaseModel  `bun:"table:live_streams,alias:s"`
	ID             string `bun:"id,pk"`
	Environment    string `bun:"environment_id"`
	StreamKeyHash  string `bun:"stream_key_hash"`
	Secrets        []byte `bun:"secrets"`
	State          string `bun:"state"`
	Settings       string `bun:"settings"`
	Epoch          int64  `bun:"epoch"`
	ActiveAsset    string `bun:"active_asset"`
	RecentAssets   string `bun:"recent_assets"`
	Protocol       string `bun:"protocol"`
	StartedAt      int64  `bun:"started_at"`
	DisconnectedAt int64  `bun:"disconnected_at"`
	Node           string `bun:"node"`
	Run            string `bun:"run"`
	ActiveAt       int64  `bun:"active_at"`
	Generation     int64  `bun:"generation"`
	Reserved       int64  `bun:"reserved"`
	Silent         bool   `bun:"silent"`
	Orphaned       bool   `bun:"orphaned"`
	EndWanted      string `bun:"end_wanted"`
	CreatedAt      int64  `bun:"created_at"`
	UpdatedAt      int64  `bun:"updated_at"`
	DeletedAt      int64  `bun:"deleted_at"`
	Revision       int64  `bun:"revision"`
}

func (l liveStore) row(s live.Stream) (liveRow, error) {
	hash := keyHash(l.vault, s.StreamKey)
	s, secrets, err := sealLive(l.vault, s)
	if err != nil {
		return liveRow{}, err
	}
	settings, err := document(s.Settings)
	if err != nil {
		return liveRow{}, err
	}
	recent, err := document(s.RecentAssets)
	if err != nil {
		return liveRow{}, err
	}
	return liveRow{
		ID:             string(s.ID),
		Environment:    string(s.Environment),
		StreamKeyHash:  hash,
		Secrets:        secrets,
		State:          string(s.State),
		Settings:       settings,
		Epoch:          int64(s.Epoch),
		ActiveAsset:    string(s.ActiveAsset),
		RecentAssets:   recent,
		Protocol:       s.Protocol,
		StartedAt:      millis(s.StartedAt),
		DisconnectedAt: millis(s.DisconnectedAt),
		Node:           string(s.Node),
		Run:            s.Run,
		ActiveAt:       millis(s.ActiveAt),
		Silent:         s.Silent,
		EndWanted:      string(s.EndWanted),
		CreatedAt:      millis(s.CreatedAt),
		UpdatedAt:      millis(s.UpdatedAt),
		DeletedAt:      millis(s.DeletedAt),
		Revision:       s.Revision,
		Generation:     s.Generation,
		Reserved:       s.Reserved,
		Orphaned:       s.Orphaned,
	}, nil
}

func (l liveStore) value(r liveRow, ids []playbackid.ID) (live.Stream, error) {
	s := live.Stream{
		ID:             id.LiveStream(r.ID),
		Environment:    id.Environment(r.Environment),
		State:          live.State(r.State),
		PlaybackIDs:    ids,
		Epoch:          id.Epoch(r.Epoch),
		ActiveAsset:    id.Asset(r.ActiveAsset),
		Protocol:       r.Protocol,
		CreatedAt:      moment(r.CreatedAt),
		UpdatedAt:      moment(r.UpdatedAt),
		StartedAt:      moment(r.StartedAt),
		DisconnectedAt: moment(r.DisconnectedAt),
		Owner:          live.Owner{Node: id.Node(r.Node), Run: r.Run},
		ActiveAt:       moment(r.ActiveAt),
		Silent:         r.Silent,
		EndWanted:      live.EndReason(r.EndWanted),
		DeletedAt:      moment(r.DeletedAt),
		Revision:       r.Revision,
		Generation:     r.Generation,
		Reserved:       r.Reserved,
		Orphaned:       r.Orphaned,
	}
	err := errors.Join(read(r.Settings, &s.Settings), read(r.RecentAssets, &s.RecentAssets))
	if err == nil {
		err = openLive(l.vault, r.Secrets, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read live stream %s: %w", r.ID, err)
	}
	return s, nil
}

func (l liveStore) Insert(ctx context.Context, c live.Change) error {
	row, err := l.row(c.Stream)
	if err != nil {
		return err
	}
	return l.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if err := t.insert(ctx, &row); isUnique(err) {
			return exists(err, liveStream)
		} else if err != nil {
			return fmt.Errorf("insert live stream: %w", err)
		}
		if err := t.syncPlaybackIDs(ctx, c.Stream.Environment, playbackid.OfLiveStream, row.ID, nil,
			c.Stream.PlaybackIDs); err != nil {
			return err
		}
		return t.tell(ctx, c.Events, c.Jobs)
	})
}

func (l liveStore) Get(ctx context.Context, env id.Environment, s id.LiveStream) (live.Stream, error) {
	if !possible(string(s)) {
		return live.Stream{}, noSuch(liveStream)
	}
	return l.one(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("id = ?", string(s)).Where("environment_id = ?", string(env)).Where("deleted_at = 0")
	})
}

func (l liveStore) Find(ctx context.Context, s id.LiveStream) (live.Stream, error) {
	if !possible(string(s)) {
		return live.Stream{}, noSuch(liveStream)
	}
	return l.one(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("id = ?", string(s)) })
}

func (l liveStore) ByKey(ctx context.Context, key string) (live.Stream, error) {
	if !possible(key) {
		return live.Stream{}, noSuch(liveStream)
	}
	return l.one(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("stream_key_hash = ?", keyHash(l.vault, key)).Where("deleted_at = 0")
	})
}

func (l liveStore) one(ctx context.Context, where func(*bun.SelectQuery) *bun.SelectQuery) (live.Stream, error) {
	found, err := l.many(ctx, where, refuse)
	if err != nil {
		return live.Stream{}, err
	}
	if len(found) == 0 {
		return live.Stream{}, noSuch(liveStream)
	}
	return found[0], nil
}

// many reads streams with their playback IDs in two queries.
func (l liveStore) many(
	ctx context.Context, where func(*bun.SelectQuery) *bun.SelectQuery, bad unreadable,
) ([]live.Stream, error) {
	var rows []liveRow
	if err := where(l.read.NewSelect().Model(&rows)).Scan(ctx); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read live streams: %w", err)
	}
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		keys = append(keys, r.ID)
	}
	ids, err := playbackIDs(ctx, l.read, playbackid.OfLiveStream, keys)
	if err != nil {
		return nil, err
	}
	out := make([]live.Stream, 0, len(rows))
	for _, r := range rows {
		s, err := l.value(r, ids[r.ID])
		if err = bad(ctx, err); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (l liveStore) List(ctx context.Context, env id.Environment, q live.ListQuery) ([]live.Stream, error) {
	if !possible(q.StreamKey) {
		return nil, nil
	}
	return l.many(ctx, func(sel *bun.SelectQuery) *bun.SelectQuery {
		sel = sel.Where("environment_id = ?", string(env)).Where("deleted_at = 0")
		if q.Status != "" {
			sel = sel.Where("state IN ?", bun.Tuple(live.StatesOf(q.Status)))
		}
		if q.StreamKey != "" {
			sel = sel.Where("stream_key_hash = ?", keyHash(l.vault, q.StreamKey))
		}
		return sel.Order("created_at DESC", "id DESC").Limit(int64(q.Limit)).Offset(int64(q.Page-1) * int64(q.Limit))
	}, l.listed)
}

// Some goes by the IDs: the environment shall not choose another index.
func (l liveStore) Some(ctx context.Context, env id.Environment, of []id.LiveStream) ([]live.Stream, error) {
	of = slices.DeleteFunc(slices.Clone(of), func(s id.LiveStream) bool { return !possible(string(s)) })
	if len(of) == 0 {
		return nil, nil
	}
	return l.many(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("id IN ?", bun.Tuple(of)).Where("environment_id || '' = ?", string(env)).Where("deleted_at = 0")
	}, l.listed)
}

func (l liveStore) Broadcasting(ctx context.Context) ([]live.Stream, error) {
	now := func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("active_asset <> ''").Order("id") }
	return l.many(ctx, now, refuse)
}

func (l liveStore) Save(ctx context.Context, c live.Change) error {
	row, err := l.row(c.Stream)
	if err != nil {
		return err
	}
	row.Revision++
	return l.engine.begin(ctx, func(ctx context.Context, t tx) error {
		q := t.NewUpdate().Model(&row).WherePK().
			Value("reserved", "CASE WHEN epoch = ? THEN reserved ELSE ? END", row.Epoch, row.Reserved).
			Where("revision = ?", c.Stream.Revision).Where("state = ?", string(c.From)).
			Where("epoch = ?", int64(c.FromEpoch))
		res, err := l.ifDead(q, c).Exec(ctx)
		if isUnique(err) {
			return exists(err, liveStream)
		}
		if err = t.touched(ctx, res, err, (*liveRow)(nil), row.ID, liveStream); err != nil {
			return err
		}
		if err := t.putPlaybackIDs(ctx, c.Stream.Environment, playbackid.OfLiveStream, row.ID,
			c.Stream.PlaybackIDs); err != nil {
			return err
		}
		if !c.Seen.IsZero() {
			if err := see(ctx, t, c.Stream.Owner, c.Seen); err != nil {
				return err
			}
		}
		return t.tell(ctx, c.Events, c.Jobs)
	})
}

func (l liveStore) Delete(ctx context.Context, c live.Change) error {
	key := string(c.Stream.ID)
	return l.engine.begin(ctx, func(ctx context.Context, t tx) error {
		res, err := t.NewDelete().Model((*liveRow)(nil)).Where("id = ?", key).
			Where("revision = ?", c.Stream.Revision).Where("state = ?", string(c.From)).
			Where("epoch = ?", int64(c.FromEpoch)).Exec(ctx)
		if err = t.touched(ctx, res, err, (*liveRow)(nil), key, liveStream); err != nil {
			return err
		}
		if err := t.dropPlaybackIDs(ctx, key); err != nil {
			return err
		}
		return t.tell(ctx, c.Events, c.Jobs)
	})
}

// touched checks that a compare-and-set has found its row: otherwise that has moved on, or is gone.
func (t tx) touched(ctx context.Context, res sql.Result, err error, model any, key, what string) error {
	if err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	if n == 1 {
		return nil
	}
	return t.untouched(ctx, model, key, what)
}

// untouched says why there was no row to change.
func (t tx) untouched(ctx context.Context, model any, key, what string) error {
	there, err := t.NewSelect().Model(model).Where("id = ?", key).Exists(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	if !there {
		return noSuch(what)
	}
	return moved(what)
}
