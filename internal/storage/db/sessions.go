package db

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	passwordNoun = "dashboard password"
	linkNoun     = "dashboard link"
	sessionNoun  = "dashboard session"
)

type passwordRow struct {
	bun.BaseModel `bun:"table:dashboard_password,alias:dp"`
	One           int64  `bun:"one,pk"`
	Hash          string `bun:"hash"`
}

type linkRow struct {
	bun.BaseModel `bun:"table:dashboard_links,alias:dl"`
	Hash          string `bun:"hash,pk"`
	ExpiresAt     int64  `bun:"expires_at"`
}

type sessionRow struct {
	bun.BaseModel `bun:"table:dashboard_sessions,alias:ds"`
	Hash          string `bun:"hash,pk"`
	Environment   string `bun:"environment_id"`
	Token         string `bun:"token_id"`
	Address       string `bun:"address"`
	CreatedAt     int64  `bun:"created_at"`
	ExpiresAt     int64  `bun:"expires_at"`
}

func (s sessionRow) value() access.Session {
	return access.Session{
		Hash: s.Hash, Environment: id.Environment(s.Environment), Token: id.Token(s.Token), Address: s.Address,
		CreatedAt: moment(s.CreatedAt), ExpiresAt: moment(s.ExpiresAt),
	}
}

type sessionStore struct{ accessStore }

// Sessions is the store of those who are signed in to the dashboard.
func (d *DB) Sessions() access.SessionStore { return sessionStore{accessStore{d}} }

// Password implements access.SessionStore.
func (ss sessionStore) Password(ctx context.Context) (string, error) {
	var row passwordRow
	err := ss.first(ctx, ss.read.NewSelect().Model(&row).Where("one = 1"), "", passwordNoun)
	return row.Hash, err
}

// SetPassword implements access.SessionStore. Of two that have the same link, the one that deletes it wins.
func (ss sessionStore) SetPassword(ctx context.Context, link, password string, s access.Session) error {
	return ss.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(s.Environment, passwordNoun, "owner")
		res, err := t.NewDelete().Model((*linkRow)(nil)).Where("hash = ?", link).
			Where("expires_at > ?", millis(s.CreatedAt)).Exec(ctx)
		if err = found(res, err, "use up", linkNoun); err != nil {
			return err
		}
		if _, err = t.NewDelete().Model((*linkRow)(nil)).Where("1 = 1").Exec(ctx); err != nil {
			return fmt.Errorf("remove dashboard links: %w", err)
		}
		_, err = t.NewInsert().Model(&passwordRow{One: 1, Hash: password}).On("CONFLICT (one) DO UPDATE").
			Set("hash = EXCLUDED.hash").Exec(ctx)
		if err != nil {
			return fmt.Errorf("write dashboard password: %w", err)
		}
		if err = endSessions(ctx, t, ""); err != nil {
			return err
		}
		return insertSession(ctx, t, s)
	})
}

// InsertLink implements access.SessionStore.
func (ss sessionStore) InsertLink(ctx context.Context, link string, now, until time.Time) error {
	return ss.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about("", linkNoun, "owner")
		if _, err := t.NewDelete().Model((*linkRow)(nil)).Where("expires_at <= ?", millis(now)).Exec(ctx); err != nil {
			return fmt.Errorf("remove old dashboard links: %w", err)
		}
		if _, err := t.NewInsert().Model(&linkRow{Hash: link, ExpiresAt: millis(until)}).Exec(ctx); err != nil {
			return fmt.Errorf("insert dashboard link: %w", err)
		}
		return nil
	})
}

// Link implements access.SessionStore.
func (ss sessionStore) Link(ctx context.Context, link string, now time.Time) error {
	var row linkRow
	q := ss.read.NewSelect().Model(&row).Where("hash = ?", link).Where("expires_at > ?", millis(now))
	return ss.first(ctx, q, link, linkNoun)
}

// InsertSession implements access.SessionStore.
func (ss sessionStore) InsertSession(ctx context.Context, s access.Session, password string) error {
	return ss.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(s.Environment, sessionNoun, who(s.Token))
		if s.Token == "" {
			n, err := t.NewSelect().Model((*passwordRow)(nil)).Where("hash = ?", password).Count(ctx)
			if err != nil {
				return fmt.Errorf("read dashboard password: %w", err)
			}
			if n == 0 {
				return fault.New(fault.Conflict, "the password was changed meanwhile")
			}
		}
		return insertSession(ctx, t, s)
	})
}

// who is signed in, for the audit log.
func who(t id.Token) string {
	if t == "" {
		return "owner"
	}
	return string(t)
}

func insertSession(ctx context.Context, t tx, s access.Session) error {
	_, err := t.NewDelete().Model((*sessionRow)(nil)).Where("expires_at <= ?", millis(s.CreatedAt)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove old dashboard sessions: %w", err)
	}
	row := sessionRow{
		Hash: s.Hash, Environment: string(s.Environment), Token: string(s.Token), Address: s.Address,
		CreatedAt: millis(s.CreatedAt), ExpiresAt: millis(s.ExpiresAt),
	}
	if _, err := t.NewInsert().Model(&row).Exec(ctx); err != nil {
		return fmt.Errorf("insert dashboard session: %w", err)
	}
	return nil
}

// Session implements access.SessionStore.
func (ss sessionStore) Session(ctx context.Context, hash string, now time.Time) (access.Session, error) {
	var row sessionRow
	q := ss.read.NewSelect().Model(&row).Where("hash = ?", hash).Where("expires_at > ?", millis(now))
	err := ss.first(ctx, q, hash, sessionNoun)
	return row.value(), err
}

// DeleteSession implements access.SessionStore.
func (ss sessionStore) DeleteSession(ctx context.Context, hash string) error {
	return ss.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about("", sessionNoun, "one")
		if _, err := t.NewDelete().Model((*sessionRow)(nil)).Where("hash = ?", hash).Exec(ctx); err != nil {
			return fmt.Errorf("delete dashboard session: %w", err)
		}
		return nil
	})
}

// DeleteSessions implements access.SessionStore.
func (ss sessionStore) DeleteSessions(ctx context.Context, token id.Token) error {
	return ss.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about("", sessionNoun, who(token))
		return endSessions(ctx, t, token)
	})
}

func endSessions(ctx context.Context, t tx, token id.Token) error {
	if _, err := t.NewDelete().Model((*sessionRow)(nil)).Where("token_id = ?", string(token)).Exec(ctx); err != nil {
		return fmt.Errorf("delete dashboard sessions: %w", err)
	}
	return nil
}

// NoteShown implements access.SessionStore.
func (ss sessionStore) NoteShown(ctx context.Context, e id.Environment, noun, key string) error {
	return ss.engine.begin(ctx, func(_ context.Context, t tx) error {
		t.about(e, noun, key)
		return nil
	})
}
