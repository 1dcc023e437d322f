package blobtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

func grow(t *testing.T, s blob.Store, key string, size int64) blob.Growing {
	t.Helper()
	g, err := s.Grow(t.Context(), key)
	if err != nil {
		t.Fatalf("grow %s: %v", key, err)
	}
	if g.Size() != size {
		t.Fatalf("grow %s goes on at %d, want %d", key, g.Size(), size)
	}
	return g
}

// wantKept: a store may or may not know of an object that nothing has come of.
func wantKept(t *testing.T, s blob.Store, key string, size int64) {
	t.Helper()
	kept, err := s.Kept(t.Context(), key)
	if size == 0 && fault.Is(err, fault.NotFound) {
		return
	}
	if err != nil || kept.Size != size {
		t.Errorf("kept of %s: %d bytes, %v, want %d", key, kept.Size, err, size)
	}
}

func closed(t *testing.T, g blob.Growing) {
	t.Helper()
	if err := g.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// grow appends in strokes of all sizes, each by another life of the writer, which goes on behind what was kept.
func (c contract) grow() {
	t, s := c.t, c.s
	for i, strokes := range [][]int{
		{}, {0}, {5}, {5, 256 << 10, 1}, {8 << 20}, {8<<20 - 1, 2, 3}, {1, Large, 7, 16 << 20},
	} {
		key := fmt.Sprintf("grow/%d/file.mp4", i)
		total := 0
		for _, n := range strokes {
			total += n
		}
		want := Bytes(byte(i), total)
		at := 0
		for _, n := range strokes {
			g := grow(t, s, key, int64(at))
			for part := want[at : at+n]; len(part) > 0; part = part[min(len(part), 100_000):] {
				if err := g.Append(t.Context(), part[:min(len(part), 100_000)]); err != nil {
					t.Fatalf("append: %v", err)
				}
			}
			at += n
			if err := g.Sync(t.Context()); err != nil {
				t.Fatalf("keep: %v", err)
			}
			wantKept(t, s, key, int64(at))
			closed(t, g)
			wantAbsent(t, s, key)
		}
		g := grow(t, s, key, int64(total))
		if err := g.Append(t.Context(), []byte("end")); err != nil { // not kept before
			t.Fatalf("append: %v", err)
		}
		if err := g.Finish(t.Context()); err != nil {
			t.Fatalf("finish: %v", err)
		}
		closed(t, g)
		got, _ := get(t, s, key, 0, -1)
		wantData(t, key, got, append(want, "end"...))
		if keys := all(t, s, fmt.Sprintf("grow/%d/", i)); len(keys) != 1 {
			t.Errorf("beside the object there are %v", keys)
		}
		closed(t, grow(t, s, key, 0))
		wantKept(t, s, key, 0)
		if err := s.Drop(t.Context(), key); err != nil {
			t.Errorf("drop: %v", err)
		}
		got, _ = get(t, s, key, 0, -1)
		wantData(t, "what was finished", got, append(want, "end"...))
	}
	// what storages take, at our size of pieces
	if limited, ok := s.(blob.Limited); ok && limited.MaxGrown() != 10_000*8<<20 {
		t.Errorf("an object may have %d bytes", limited.MaxGrown())
	}
	_, err := s.Kept(t.Context(), "a//b")
	wantKind(t, "what is kept of a bad key", err, fault.Invalid)
	_, err = s.Grow(t.Context(), "a//b")
	wantKind(t, "grow of a bad key", err, fault.Invalid)
}

func (c contract) drop() {
	t, s := c.t, c.s
	for _, n := range []int{0, 3, Large + 3} {
		g := grow(t, s, "drop/x", 0)
		if err := g.Append(t.Context(), Bytes(1, n)); err != nil {
			t.Fatalf("append: %v", err)
		}
		if err := g.Sync(t.Context()); err != nil {
			t.Fatalf("keep: %v", err)
		}
		closed(t, g)
		for range 2 {
			if err := s.Drop(t.Context(), "drop/x"); err != nil {
				t.Errorf("drop: %v", err)
			}
		}
		if keys := all(t, s, ""); len(keys) != 0 {
			t.Errorf("left: %v", keys)
		}
	}
	closed(t, grow(t, s, "drop/x", 0))
	wantKind(t, "drop of a bad key", s.Drop(t.Context(), "/"), fault.Invalid)
}

// unfinished keeps pieces, tails and both of some objects, and finishes or drops others.
func (c contract) unfinished() {
	t, s := c.t, c.s
	before := time.Now().Add(-time.Minute)
	list := func(prefix string) (keys []string) {
		t.Helper()
		for u, err := range s.Unfinished(t.Context(), prefix) {
			if err != nil {
				t.Fatalf("list what is unfinished: %v", err)
			}
			if u.ModTime.Before(before) || u.ModTime.After(time.Now().Add(time.Minute)) {
				t.Errorf("%s came at %v", u.Key, u.ModTime)
			}
			keys = append(keys, u.Key)
		}
		return keys
	}
	if got := list(""); len(got) > 0 {
		t.Errorf("of an empty store: %v", got)
	}
	put(t, s, "u/whole", []byte("x"))
	sizes := map[string]int{
		"u/tail": 3, "u/pieces/x": 8 << 20, "u/pieces-and/tails": 8<<20 + 3, "v/tail": 1,
		"u/finished": 8<<20 + 1, "u/dropped": 8<<20 + 1,
	}
	for key, n := range sizes {
		g := grow(t, s, key, 0)
		if err := g.Append(t.Context(), Bytes(2, n)); err != nil {
			t.Fatalf("append: %v", err)
		}
		if err := g.Sync(t.Context()); err != nil {
			t.Fatalf("keep: %v", err)
		}
		if key == "u/finished" {
			if err := g.Finish(t.Context()); err != nil {
				t.Fatalf("finish: %v", err)
			}
		}
		closed(t, g)
	}
	if err := s.Drop(t.Context(), "u/dropped"); err != nil {
		t.Fatalf("drop: %v", err)
	}
	for prefix, want := range map[string][]string{
		"":         {"u/pieces-and/tails", "u/pieces/x", "u/tail", "v/tail"},
		"u/":       {"u/pieces-and/tails", "u/pieces/x", "u/tail"},
		"u/pieces": {"u/pieces-and/tails", "u/pieces/x"},
		"w":        nil,
	} {
		if got := list(prefix); !slices.Equal(got, want) {
			t.Errorf("what begins with %q: %v, want %v", prefix, got, want)
		}
	}
	for _, err := range s.Unfinished(t.Context(), "") { // the caller may have enough
		if err != nil {
			t.Error(err)
		}
		break
	}
	n := 0
	for _, err := range s.Unfinished(t.Context(), "../") {
		wantKind(t, "unfinished of a bad prefix", err, fault.Invalid)
		n++
	}
	if n != 1 {
		t.Errorf("a bad prefix gave %d times something, want one error", n)
	}
	for _, key := range list("") {
		if err := s.Drop(t.Context(), key); err != nil {
			t.Errorf("drop: %v", err)
		}
	}
	if got := list(""); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}
