package app

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"millrace/internal/storage/blob"
)

// storageUsers notices that the storage is used with another database too: what one of the two knows nothing of may be
// the other's. Each database leaves a mark in the storage.
type storageUsers struct {
	store    blob.Store
	database string // its identity
	log      *slog.Logger
}

func (n *node) storageUsers() storageUsers {
	return storageUsers{store: n.blob, database: n.db.Identity(), log: n.log}
}

const (
	marksOfDatabases = "databases/" // keys of the marks, in front of a database's identity
	lookAtMarks      = time.Hour
	lookAgain        = time.Minute // when the storage is away
)

// Name implements lifecycle.Service.
func (storageUsers) Name() string { return "users of the storage" }

// Run implements lifecycle.Service: it looks at the start and from then on every hour, as the other may come later.
func (s storageUsers) Run(ctx context.Context) error {
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
		next := lookAtMarks
		others, err := s.others(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			next = lookAgain
			s.log.DebugContext(ctx, "look who uses the storage", "error", err)
		case len(others) > 0:
			s.log.WarnContext(ctx, "the storage is used with another database too: give each its own --storage-url; "+
				"if the other one is gone for good, delete its mark from the storage",
				"marks_of_others", strings.Join(others, " "))
		}
		look.Reset(next)
	}
}

// alone reports whether no other database uses the storage.
func (s storageUsers) alone(ctx context.Context) (bool, error) {
	others, err := s.others(ctx)
	return len(others) == 0, err
}

// others are the marks of the other databases, after this one has left its own.
func (s storageUsers) others(ctx context.Context) (marks []string, err error) {
	own := marksOfDatabases + s.database
	if _, err = s.store.PutNew(ctx, own, []byte("Millrace has used this storage with this database.\n")); err != nil {
		return nil, err
	}
	for key, err := range s.store.List(ctx, marksOfDatabases) {
		if err != nil {
			return nil, err
		}
		if key != own {
			marks = append(marks, key)
		}
	}
	return marks, nil
}
