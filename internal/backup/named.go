package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"slices"
	"strings"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/rows"
)

// keySet are many keys in few bytes: 8 of each, by a hash that nobody knows beforehand.
type keySet struct {
	seed   maphash.Seed
	hashes []uint64
}

func newKeySet(list iter.Seq2[entry, error]) (*keySet, error) {
	s := &keySet{seed: maphash.MakeSeed()}
	for e, err := range list {
		if err != nil {
			return nil, err
		}
		s.hashes = append(s.hashes, maphash.String(s.seed, e.Key))
	}
	slices.Sort(s.hashes)
	return s, nil
}

func (k *keySet) has(key string) bool {
	_, found := slices.BinarySearch(k.hashes, maphash.String(k.seed, key))
	return found
}

// named is an object that a row names, or the index of a timeline, which names others.
type named struct {
	key, by string
	index   bool
}

// namesOf are the objects that rows name and the media of an asset can't be played without, and nothing that is made of
// them again when somebody asks for it: segments, init segments and files of timelines, text and audio tracks, and
// files to download.
func namesOf(r *rows.Reader) iter.Seq2[named, error] {
	return func(yield func(named, error) bool) {
		found := func(n named) error {
			if !yield(n, nil) {
				return errEnough
			}
			return nil
		}
		if err := eachName(r, found); err != nil && !errors.Is(err, errEnough) {
			yield(named{}, err)
		}
	}
}

var errEnough = errors.New("nobody wants more")

func eachName(r *rows.Reader, found func(named) error) error {
	for {
		t, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err = eachRow(r, t, func(r row) error { return r.names(found) }); err != nil {
			return err
		}
	}
}

// names are what one row names.
func (r row) names(found func(named) error) error {
	switch r.table.Name {
	case "assets":
		if r.text("status") == "errored" {
			return nil
		}
		by := "asset " + r.text("id")
		if key := r.text("index_key"); key != "" {
			if err := found(named{key, by, true}); err != nil {
				return err
			}
		}
		return r.files(by, found)
	case "tracks":
		if key := r.text("object"); key != "" && r.text("status") == "ready" {
			return found(named{key: key, by: "track " + r.text("id")})
		}
	case "timeline_entries":
		by := "asset " + r.text("asset_id")
		e, err := timeline.Decode(r.bytes("data"))
		if err != nil {
			return fmt.Errorf("%s: %w", by, err)
		}
		return inEntry(e, by, found)
	}
	return nil
}

// row is a row of a table.
type row struct {
	table  rows.Table
	values []any
}

func (r row) text(column string) string {
	if i := r.table.Index(column); i >= 0 {
		s, _ := r.values[i].(string)
		return s
	}
	return ""
}

func (r row) bytes(column string) []byte {
	if i := r.table.Index(column); i >= 0 {
		b, _ := r.values[i].([]byte)
		return b
	}
	return nil
}

func eachRow(r *rows.Reader, t rows.Table, take func(row) error) error {
	for {
		values, err := r.Row()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err = take(row{t, values}); err != nil {
			return err
		}
	}
}

// files are the files to download of an asset.
func (r row) files(by string, found func(named) error) error {
	type file struct {
		ID     id.StaticRendition `json:"id"`
		Ext    string             `json:"ext"`
		Status string             `json:"status"`
	}
	var doc struct {
		Static struct {
			Files []file `json:"files"`
		} `json:"static_renditions"`
		Master *file `json:"master"`
	}
	if err := json.Unmarshal([]byte(r.text("document")), &doc); err != nil {
		return fmt.Errorf("%s has a document that can't be read", by)
	}
	all := doc.Static.Files
	if doc.Master != nil {
		doc.Master.Ext = "mp4"
		all = append(all, *doc.Master)
	}
	for _, f := range all {
		if f.Status != "ready" {
			continue
		}
		key := objectkey.File(id.Media(r.text("media_id")), f.ID, f.Ext)
		if err := found(named{key: key, by: by}); err != nil {
			return err
		}
	}
	return nil
}

func inEntry(e timeline.Entry, by string, found func(named) error) error {
	var keys []string
	if e.Rendition != nil && e.Rendition.Source != nil {
		keys = append(keys, e.Rendition.Source.Object)
	}
	if e.Init != nil {
		keys = append(keys, e.Init.Object)
	}
	if e.Segment != nil {
		for _, c := range e.Segment.Chunks {
			keys = append(keys, c.Object)
		}
	}
	for _, key := range keys {
		if key == "" {
			continue
		}
		if err := found(named{key: key, by: by}); err != nil {
			return err
		}
	}
	return nil
}

// maxIndex is how much of an index is read. That of a day with six renditions has some 60 MB.
const maxIndex = 256 << 20

// open reads what an index names, with the index in front.
func (n named) open(ctx context.Context, index func(ctx context.Context, key string) (io.ReadCloser, error)) ([]named,
	error,
) {
	names := []named{n}
	if !n.index {
		return names, nil
	}
	r, err := index(ctx, n.key)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		return names, nil // it is missing then, or its key is none
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only read from
	entries, err := timeline.ReadIndex(io.LimitReader(r, maxIndex))
	if err != nil {
		return append(names, named{key: damagedIndex + n.key, by: n.by}), ctx.Err() //nolint:wrapcheck // of the caller
	}
	for _, e := range entries {
		_ = inEntry(e, n.by, func(n named) error { // never fails
			names = append(names, n)
			return nil
		})
	}
	return names, nil
}

// damagedIndex is in front of the key of an index that can't be read; no object has such a key.
const damagedIndex = "unreadable:"

func (n named) String() string {
	if key, unreadable := strings.CutPrefix(n.key, damagedIndex); unreadable {
		return "damaged  " + key + ", the index of " + n.by
	}
	return "missing  " + n.key + ", of " + n.by
}

// missing gives what of the names of rows a list does not have.
func missing(
	ctx context.Context, r *rows.Reader, have *keySet, index func(context.Context, string) (io.ReadCloser, error),
) (lacks []named, count int64, err error) {
	seen := map[string]bool{}
	err = inOrder(ctx, namesOf(r), func(ctx context.Context, n named) ([]named, error) {
		return n.open(ctx, index)
	}, func(names []named) error {
		for _, n := range names {
			if have.has(n.key) || seen[n.key] {
				continue
			}
			count++
			if n.index = false; len(lacks) < maxFindings {
				seen[n.key] = true
				lacks = append(lacks, n)
			}
		}
		return nil
	})
	return lacks, count, err
}

// opening reads objects of a store at a prefix.
func opening(store blob.Store, prefix string) func(context.Context, string) (io.ReadCloser, error) {
	return func(ctx context.Context, key string) (io.ReadCloser, error) {
		r, err := store.Get(ctx, prefix+key, 0, -1)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}
