package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"millrace/internal/storage/blob"
)

// storageOwner tells of a storage that is used with another database too: what one of the two knows nothing of may be
// the other's. The database that comes first leaves its identity in the storage.
type storageOwner struct {
	store    blob.Store
	database string // its identity
	log      *slog.Logger
}

const (
	ownerKey   = "database" // of the object with the identity
	ownerBytes = 1 << 10    // of it, at most
	ownerEvery = time.Hour
	ownerRetry = time.Minute // when the storage is away
)

// Name implements lifecycle.Service.
func (storageOwner) Name() string { return "storage owner" }

// Run implements lifecycle.Service: it looks at the start and from then on every hour, as the other may come later.
func (o storageOwner) Run(ctx context.Context) error {
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
		next := ownerEvery
		owner, err := o.owner(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			next = ownerRetry
			o.log.DebugContext(ctx, "look whose the storage is", "error", err)
		case owner != o.database:
			o.log.WarnContext(ctx, "the storage is used with another database too: give each its own --storage-url; "+
				"if the other one is gone for good, delete the object "+ownerKey+" from the storage",
				"database", o.database, "other_database", owner)
		}
		look.Reset(next)
	}
}

// owner is the identity of the database that used the storage first: this one's, if there was none.
func (o storageOwner) owner(ctx context.Context) (string, error) {
	if created, err := o.store.PutNew(ctx, ownerKey, []byte(o.database+"\n")); created || err != nil {
		return o.database, err
	}
	r, err := o.store.Get(ctx, ownerKey, 0, ownerBytes)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return "", fmt.Errorf("read identity of database: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}
