package rig

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/internal/storage/blob"
)

// Stored reads the one object in the server's storage that has this file name. Nothing else of this name may be there,
// as parts of it.
func (s *Server) Stored(t testing.TB, name string) []byte {
	t.Helper()
	all := s.AllStored(t, name)
	if len(all) != 1 {
		t.Fatalf("%d objects are stored as %s", len(all), name)
	}
	return all[0]
}

// AllStored reads all objects in the server's storage that have this file name.
func (s *Server) AllStored(t testing.TB, name string) (all [][]byte) {
	t.Helper()
	found, _ := s.Kept(t, name)
	store := s.storage(t)
	defer func() { _ = store.Close() }()
	for _, key := range found {
		r, err := store.Get(t.Context(), key, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		_ = r.Close() // it was only read
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

// Kept lists what the server's storage has of files of this name: whole ones, and what has come of others.
func (s *Server) Kept(t testing.TB, name string) (whole, parts []string) {
	t.Helper()
	store := s.storage(t)
	defer func() { _ = store.Close() }()
	whole, parts = keys(t, store)
	whole = slices.DeleteFunc(whole, func(key string) bool { return !strings.Contains(key, "/"+name) })
	parts = slices.DeleteFunc(parts, func(key string) bool { return !strings.HasSuffix(key, "/"+name) })
	return whole, parts
}

// Left lists all media that the server has: in its storage, whole or in parts, and in the folders where media are on
// their way there. The mark that its database leaves in the storage is none. It may be called in a cleanup.
func (s *Server) Left(t testing.TB) (left []string) {
	t.Helper()
	store := s.storage(t)
	defer func() { _ = store.Close() }()
	whole, parts := keys(t, store)
	left = slices.DeleteFunc(append(whole, parts...), func(key string) bool {
		return strings.HasPrefix(key, "databases/")
	})
	for _, dir := range []string{"storage/.tmp", "downloads", "journal"} {
		_ = filepath.WalkDir(filepath.Join(s.Dir, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				left = append(left, path)
			}
			return nil
		})
	}
	return left
}

// keys are those of a storage's objects, and of what has come of others.
func keys(t testing.TB, store blob.Store) (whole, parts []string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for key, err := range store.List(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, key)
	}
	for u, err := range store.Unfinished(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, u.Key)
	}
	return whole, parts
}

// storage opens the storage beside the server.
func (s *Server) storage(t testing.TB) blob.Store {
	t.Helper()
	address := s.Setting("MILLRACE_STORAGE_URL")
	if address == "" {
		address = filepath.Join(s.Dir, "storage")
	}
	store, err := blob.OpenURL(context.WithoutCancel(t.Context()), address)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// Padded is an MP4 file that is larger by a box of n bytes, which no player reads: random ones, so that every byte is
// in its place only there.
func Padded(t testing.TB, path string, n int) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	padding := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(padding)
	copy(padding, binary.BigEndian.AppendUint32(nil, uint32(n)))
	copy(padding[4:], "free")
	return append(data, padding...)
}
