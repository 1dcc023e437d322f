package receive_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/upload"
	"millrace/internal/media/objectkey"
	"millrace/internal/receive"
	"millrace/internal/storage/blob"
)

const block = 256 << 10

// counted counts the reads of a store.
type counted struct {
	blob.Store
	gets int
	err  error // of each
}

func (c *counted) Get(ctx context.Context, key string, off, n int64) (*blob.Reader, error) {
	if c.gets++; c.err != nil {
		return nil, c.err
	}
	return c.Store.Get(ctx, key, off, n)
}

// zeros is a file of zeros with one other byte.
type zeros struct{ at, size, other int64 }

func (z *zeros) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), z.size-z.at)]
	if len(p) == 0 {
		return 0, io.EOF
	}
	clear(p)
	if i := z.other - z.at; i >= 0 && i < int64(len(p)) {
		p[i] = 1
	}
	z.at += int64(len(p))
	return len(p), nil
}

// TestCompare compares with a file whose checksums are not read at once, some of which are not known.
func TestCompare(t *testing.T) {
	t.Parallel()
	const blocks = 1500
	const end = blocks * block // of the whole ones
	const size, two = end + 100, 2 * block
	sum := func(n int) uint32 { return crc32.Checksum(make([]byte, n), crc32.MakeTable(crc32.Castagnoli)) }
	whole, last := sum(block), sum(100)
	var stored []byte
	for i := range blocks {
		if i >= 7 && i < 9 {
			stored = binary.BigEndian.AppendUint32(stored, 0)
			continue
		}
		stored = binary.BigEndian.AppendUint32(stored, whole)
	}
	stored = binary.BigEndian.AppendUint32(stored, last)
	u := upload.Upload{ID: "u", Media: "m", Status: upload.AssetCreated, Length: upload.Length{Size: size, Whole: true}}
	away := errors.New("storage is away")
	for name, tt := range map[string]struct {
		from   int64
		body   zeros
		absent bool // no checksums are kept
		err    error
		read   int64
		other  bool
		gets   int
	}{
		"all of it":                {body: zeros{0, size, -1}, read: size, gets: 2},
		"another first byte":       {body: zeros{0, size, 0}, read: block, other: true, gets: 1},
		"another byte of page two": {body: zeros{0, size, 1024 * block}, read: 1025 * block, other: true, gets: 2},
		"another last byte":        {from: end, body: zeros{0, 100, 99}, read: 100, other: true, gets: 1},
		"a byte more":              {from: end, body: zeros{0, 101, -1}, read: 101, other: true, gets: 1},
		"a byte less":              {from: end, body: zeros{0, 99, 98}, read: 99, gets: 1},
		"what is not known":        {from: 7 * block, body: zeros{0, 2 * block, 5}, read: 2 * block, gets: 1},
		"behind what is not known": {from: 8 * block, body: zeros{0, two, block}, read: two, other: true, gets: 1},
		"from within a block":      {from: block - 1, body: zeros{0, block + 1, 0}, read: block + 1, gets: 1},
		"behind its first":         {from: block - 1, body: zeros{0, two, 1}, read: block + 1, other: true, gets: 1},
		"within a block":           {from: block + 1, body: zeros{0, 100, 5}, read: 100},
		"at the end":               {from: size - 50, body: zeros{0, 51, -1}, read: 51, other: true},
		"no checksums":             {body: zeros{0, size, 0}, absent: true, gets: 1},
		"no storage":               {body: zeros{0, size, 0}, err: away, gets: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = folder.Close() }()
			store := &counted{Store: folder, err: tt.err}
			if !tt.absent {
				if err = store.Put(t.Context(), objectkey.Checksums(u.Media), bytes.NewReader(stored)); err != nil {
					t.Fatal(err)
				}
			}
			f := receive.New(receive.Options{Store: store, Now: time.Now})
			n, same, err := f.Compare(t.Context(), u, tt.from, &tt.body)
			if !errors.Is(err, tt.err) || tt.err == nil && err != nil {
				t.Fatal(err)
			}
			if n != tt.read || err == nil && same == tt.other || store.gets != tt.gets {
				t.Errorf("%d bytes read, the same: %v, %d reads, %v", n, same, store.gets, err)
			}
		})
	}
}

// TestCompareBodyFails: why a body could not be read is said.
func TestCompareBodyFails(t *testing.T) {
	t.Parallel()
	folder, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	f := receive.New(receive.Options{Store: folder, Now: time.Now})
	u := upload.Upload{ID: "u", Media: "m", Status: upload.AssetCreated}
	u.Length = upload.Length{Size: 3 * block, Whole: true}
	sums := bytes.Repeat([]byte{0, 0, 0, 0}, 3)
	if err = folder.Put(t.Context(), objectkey.Checksums(u.Media), bytes.NewReader(sums)); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("the connection was lost")
	for _, from := range []int64{0, 5, block} {
		for _, n := range []int{0, 100, block, block + 100} {
			r := io.MultiReader(bytes.NewReader(slices.Repeat([]byte{1}, n)), failing{lost})
			if _, _, err = f.Compare(t.Context(), u, from, r); !errors.Is(err, lost) {
				t.Errorf("from %d, after %d bytes: %v", from, n, err)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
