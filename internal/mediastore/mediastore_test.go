package mediastore_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/storage/blob"
)

// work has the rows of one asset, and says who uses media.
type work struct {
	asset.Reader
	rows  []asset.TimelineEntry
	users []asset.Asset
}

func (w work) Timeline(context.Context, id.Asset, int64) ([]asset.TimelineEntry, error) {
	return w.rows, nil
}

func (w work) Users(context.Context, id.Media) ([]asset.Asset, error) { return w.users, nil }

func folder(t *testing.T) blob.Store {
	t.Helper()
	store, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func entries() []timeline.Entry {
	out := []timeline.Entry{
		{Target: 2},
		{Rendition: &timeline.RenditionInfo{ID: "v", Kind: frame.Video, Timescale: 1000}},
		{
			Init: &timeline.Init{
				Rendition: "v", Codec: "avc1.64001f", Width: 640, Height: 360, Object: "media/m/v/init.mp4",
			},
		},
	}
	for i := range int64(3) {
		out = append(out, timeline.Entry{Segment: &timeline.Segment{MSN: 7 + i, Chunks: []timeline.Chunk{
			{Rendition: "v", Time: i * 2000, Duration: 2000, Gap: i == 1, Object: "media/m/v/segment"},
		}}})
	}
	return out
}

// TestTimeline: the timeline of rows is the one that its index has.
func TestTimeline(t *testing.T) {
	t.Parallel()
	store, w := folder(t), work{}
	for i, e := range entries() {
		w.rows = append(w.rows, asset.TimelineEntry{Sequence: int64(i), Data: timeline.Encode(e)})
	}
	growing, err := mediastore.Timeline(t.Context(), store, w, asset.Asset{Media: "m"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := mediastore.WriteIndex(t.Context(), store, "m", growing)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := mediastore.Timeline(t.Context(), store, work{}, asset.Asset{Media: "m", Index: key})
	if err != nil {
		t.Fatal(err)
	}
	if whole.Next() != 10 || whole.Next() != growing.Next() || whole.Duration() != growing.Duration() ||
		len(whole.Renditions) != 1 {
		t.Errorf("rows: %+v, index: %+v", growing, whole)
	}
	w.rows[1].Data = []byte("no entry")
	if _, err = mediastore.FromRows(w.rows); err == nil {
		t.Error("a row that is none is taken")
	}
}

// TestRendition reads what is stored, and says of all else that there is none.
func TestRendition(t *testing.T) {
	t.Parallel()
	store := folder(t)
	for key, data := range map[string]string{"media/m/v/init.mp4": "init", "media/m/v/segment": "segment"} {
		if err := store.Put(t.Context(), key, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	line, err := timeline.Build(entries())
	if err != nil {
		t.Fatal(err)
	}
	r := mediastore.Recordings{Blob: store}.Rendition(line.Rendition("v"), line.First)
	if data, err := r.Init(t.Context(), 0); string(data) != "init" || err != nil {
		t.Errorf("init: %q, %v", data, err)
	}
	if data, err := delivered.Bytes(r.Segment(t.Context(), 7)); string(data) != "segment" || err != nil {
		t.Errorf("segment: %q, %v", data, err)
	}
	for _, n := range []int{-1, 1} {
		if _, err := r.Init(t.Context(), n); !fault.Is(err, fault.NotFound) {
			t.Errorf("init %d: %v", n, err)
		}
	}
	for _, msn := range []int64{6, 8, 10} { // in front, a gap, behind
		if _, err := r.Segment(t.Context(), msn); !fault.Is(err, fault.NotFound) {
			t.Errorf("segment %d: %v", msn, err)
		}
	}
}

// TestDerived: what is derived is stored once, and not for an asset that is gone.
func TestDerived(t *testing.T) {
	t.Parallel()
	store := folder(t)
	there := mediastore.Derived{Objects: mediastore.Objects{Blob: store}, Assets: work{users: make([]asset.Asset, 1)}}
	gone := mediastore.Derived{Objects: mediastore.Objects{Blob: store}, Assets: work{}}
	for i, want := range []bool{true, false} {
		if created, err := there.PutNew(t.Context(), "media/m/360p/1.m4s", []byte{byte(i)}); created != want ||
			err != nil {
			t.Errorf("attempt %d: %v, %v", i, created, err)
		}
	}
	if data, err := there.Read(t.Context(), "media/m/360p/1.m4s"); !bytes.Equal(data, []byte{0}) || err != nil {
		t.Errorf("got %v, %v", data, err)
	}
	if _, err := gone.PutNew(t.Context(), "media/n/360p/1.m4s", []byte("late")); !fault.Is(err, fault.NotFound) {
		t.Errorf("of an asset that is gone: %v", err)
	}
	if has, err := gone.Has(t.Context(), "media/n/360p/1.m4s"); has || err != nil {
		t.Errorf("it stays: %v, %v", has, err)
	}
	var all []string
	for key, err := range there.List(t.Context(), "media/") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, key)
	}
	if err := there.Delete(t.Context(), all...); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, errors.Join(err))
	}
}
