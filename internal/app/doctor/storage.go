package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"millrace/internal/config"
	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// Storage checks that an object can be put, read in part, listed and deleted, and how long that takes. A folder that is
// not there yet stays so: the check uses another one beside it.
type Storage struct {
	Where config.Storage
	Open  func(ctx context.Context, url config.Secret) (blob.Store, error)
	Now   func() time.Time
}

// Name implements Check.
func (Storage) Name() string { return "storage" }

const (
	trialBytes = 256 << 10 // about a third of a second of 6 Mbit/s video
	slowPut    = time.Second
)

// Run implements Check.
func (s Storage) Run(ctx context.Context) Finding {
	target, url, later := s.name(), s.Where.URL, ""
	if err := unreachable(s.Where.Path); s.Where.Kind == config.Folder && err != nil {
		return problem(mendFolder, "%s can't be reached: %v", target, err)
	}
	if s.Where.Kind == config.Folder && !exists(s.Where.Path) {
		dir, err := os.MkdirTemp(nearest(s.Where.Path), ".millrace-doctor-*")
		if err != nil {
			return problem(mendFolder, "%s is not there and cannot be made: %v", target, cause(err))
		}
		defer func() { _ = os.RemoveAll(dir) }() // a folder of our own
		url, later = config.Secret(filepath.Join(dir, "media")), " will be made at the first start;"
	}
	store, err := s.Open(ctx, url)
	if err != nil {
		return s.explain(fmt.Errorf("open: %w", err))
	}
	defer func() { _ = store.Close() }() // nothing was kept
	put, get, err := s.trial(ctx, store)
	if err != nil {
		return s.explain(err)
	}
	text := fmt.Sprintf("%s%s %d KiB put in %s, read in %s", target, later, trialBytes>>10,
		put.Round(100*time.Microsecond), get.Round(100*time.Microsecond))
	if put > slowPut {
		return warning("Put the storage nearer to this machine: every segment of every stream goes there.", "%s", text)
	}
	return ok("%s", text)
}

const mendFolder = "Give the folder to the user that runs millrace (chown), or name another one with --storage-url."

// name is the storage as a person knows it, without parameters.
func (s Storage) name() string {
	if s.Where.Kind == config.S3 {
		bucket, _, _ := strings.Cut(s.Where.URL.Reveal(), "?")
		return bucket
	}
	return s.Where.Path
}

// trial walks one object through its life.
func (s Storage) trial(ctx context.Context, store blob.Store) (put, get time.Duration, err error) {
	body := make([]byte, trialBytes)
	_, _ = rand.Read(body) // never fails
	prefix := "doctor/" + strings.ToLower(rand.Text())
	key := prefix + "/trial.bin"
	defer func() {
		if err != nil { // the object may be there although something failed
			_ = store.Delete(context.WithoutCancel(ctx), key)
		}
	}()
	begin := s.Now()
	if err := store.Put(ctx, key, bytes.NewReader(body)); err != nil {
		return 0, 0, fmt.Errorf("put: %w", err)
	}
	put = s.Now().Sub(begin)
	begin = s.Now()
	if err := same(ctx, store, key, 0, -1, body); err != nil {
		return 0, 0, fmt.Errorf("get: %w", err)
	}
	get = s.Now().Sub(begin)
	if err := same(ctx, store, key, 1000, 500, body[1000:1500]); err != nil {
		return 0, 0, fmt.Errorf("get a range: %w", err)
	}
	if err := counts(ctx, store, prefix, 1); err != nil {
		return 0, 0, fmt.Errorf("list: %w", err)
	}
	if err := store.Delete(ctx, key); err != nil {
		return 0, 0, fmt.Errorf("delete: %w", err)
	}
	if err := counts(ctx, store, prefix, 0); err != nil {
		return 0, 0, fmt.Errorf("list after delete: %w", err)
	}
	return put, get, nil
}

func same(ctx context.Context, store blob.Store, key string, off, n int64, want []byte) error {
	r, err := store.Get(ctx, key, off, n)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(io.LimitReader(r, trialBytes+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("other bytes came back than were put")
	}
	return nil
}

// counts complains unless there are want objects.
func counts(ctx context.Context, store blob.Store, prefix string, want int) error {
	n := 0
	for _, err := range store.List(ctx, prefix) {
		if err != nil {
			return err
		}
		n++
	}
	if n != want {
		return fmt.Errorf("%d objects are listed where %d should be", n, want)
	}
	return nil
}

// explain says what to do about an error of the storage.
func (s Storage) explain(err error) Finding {
	if s.Where.Kind == config.Folder {
		return problem(mendFolder, "%s: %v", s.name(), err)
	}
	mend := "Check bucket, endpoint and region in storage-url."
	switch kind := fault.KindOf(err); {
	case errors.Is(err, blob.ErrRefused):
		mend = "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may get, put, list and delete " +
			"objects of this bucket."
	case errors.Is(err, blob.ErrNoCredentials):
		mend = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine, container or service account a " +
			"role that may use this bucket."
	case errors.Is(err, blob.ErrNoBucket):
		mend = "Make the bucket, or correct its name, region or endpoint in storage-url."
	case kind == fault.Unavailable:
		mend = "Start the storage server, or correct endpoint in storage-url; check the network between."
	case kind == fault.Invalid:
		mend = "Correct storage-url: s3://bucket?region=…&endpoint=…&path_style=true&prefix=…"
	}
	return problem(mend, "%s: %v", s.name(), err)
}
