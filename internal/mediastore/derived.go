package mediastore

import (
	"context"
	"iter"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/objectkey"
)

// Derived keeps what is derived from recordings and can be made again: renditions and images. Neither outlives its
// asset.
type Derived struct {
	Objects

	Assets asset.Reader
}

// Has reports whether there is an object.
func (d Derived) Has(ctx context.Context, key string) (bool, error) {
	_, err := d.Blob.Stat(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// PutNew stores an object unless there is one; created reports whether it did. An object that comes too late for the
// purge of its asset is deleted again.
func (d Derived) PutNew(ctx context.Context, key string, data []byte) (created bool, err error) {
	if created, err = d.Blob.PutNew(ctx, key, data); !created || err != nil {
		return created, err
	}
	owner, _ := objectkey.Owner(key)
	users, err := d.Assets.Users(ctx, owner)
	if err != nil || len(users) > 0 {
		return true, err
	}
	if err := d.Blob.Delete(ctx, key); err != nil {
		return true, err
	}
	return false, fault.New(fault.NotFound, "the asset was deleted")
}

// List gives every key that begins with prefix.
func (d Derived) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return d.Blob.List(ctx, prefix)
}

// Delete deletes objects.
func (d Derived) Delete(ctx context.Context, keys ...string) error {
	return d.Blob.Delete(ctx, keys...)
}
