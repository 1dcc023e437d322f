package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"millrace/internal/fault"
)

func (c contract) putNew() {
	t, s := c.t, c.s
	for _, n := range []int{0, 1000, Large} { // the second and third meet a storage that is known to heed conditions
		key := fmt.Sprintf("new/%d", n)
		want := Bytes(1, n)
		for i, data := range [][]byte{want, []byte("late"), want} {
			created, err := s.PutNew(t.Context(), key, data)
			if err != nil || created != (i == 0) {
				t.Errorf("put new %d of %d bytes: %v, %v", i, n, created, err)
			}
		}
		got, _ := get(t, s, key, 0, -1)
		wantData(t, key, got, want)
	}
	put(t, s, "new/old", []byte("old"))
	if created, err := s.PutNew(t.Context(), "new/old", []byte("new")); created || err != nil {
		t.Errorf("put new over what is there: %v, %v", created, err)
	}
	got, _ := get(t, s, "new/old", 0, -1)
	wantData(t, "what was there", got, []byte("old"))
	if err := s.Delete(t.Context(), "new/old"); err != nil {
		t.Fatal(err)
	}
	if created, err := s.PutNew(t.Context(), "new/old", []byte("new")); !created || err != nil {
		t.Errorf("put new after a delete: %v, %v", created, err)
	}
	got, _ = get(t, s, "new/old", 0, -1)
	wantData(t, "the new one", got, []byte("new"))

	_, err := s.PutNew(t.Context(), "new", nil)
	wantPassing(t, "put new of a key that is a folder", err, fault.Conflict)
	_, err = s.PutNew(t.Context(), "new/old/below", nil)
	wantPassing(t, "put new below a key", err, fault.Conflict)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.PutNew(ended, "c/new", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	wantAbsent(t, s, "c/new")
}

// putNewAtOnce has many put different objects under the same keys: who is told to have created one is one, and it is
// what is there, also for who reads it at once.
func (c contract) putNewAtOnce() {
	t, s := c.t, c.s
	const keys, writers, size = 12, 8, 200_000
	for k := range keys {
		key := fmt.Sprintf("once/%d", k)
		var winners atomic.Int32
		var stays atomic.Int32
		var group errgroup.Group
		for w := range writers {
			group.Go(func() error {
				data := Bytes(byte(w), size)
				created, err := s.PutNew(t.Context(), key, data)
				if err != nil {
					return fmt.Errorf("put new %s: %w", key, err)
				}
				if created {
					winners.Add(1)
					stays.Store(int32(w))
				}
				r, err := s.Get(t.Context(), key, 0, -1)
				if err != nil {
					return fmt.Errorf("get %s: %w", key, err)
				}
				got, err := readClose(r)
				if err != nil {
					return fmt.Errorf("read %s: %w", key, err)
				}
				if created && !bytes.Equal(got, data) {
					return fmt.Errorf("%s was created by %d and is another's", key, w)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		if winners.Load() != 1 {
			t.Errorf("%s was created by %d", key, winners.Load())
		}
		got, _ := get(t, s, key, 0, -1)
		wantData(t, key, got, Bytes(byte(stays.Load()), size))
	}
}
