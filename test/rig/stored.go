package rig

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/storage/blob"
)

// Stored reads the one object in the server's storage that has this file name. Nothing else of this name may be there, as parts of it.
func (s *Server) Stored(t testing.TB, name string) []byte {
	t.Helper()
	store := s.storage(t)
	defer func() { _ = store.Close() }()
	var found []string
	for key, err := range store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(key, "/"+name) {
			found = append(found, key)
		}
	}
	if len(found) != 1 {
		t.Fatalf("stored as %s: %v", name, found)
	}
	r, err := store.Get(t.Context(), found[0], 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Kept lists what the server's storage has of files of this name: whole ones, and what has come of others.
func (s *Server) Kept(t testing.TB, name string) (whole, parts []string) {
	t.Helper()
	store := s.storage(t)
	defer func() { _ = store.Close() }()
	for key, err := range store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(key, "/"+name) {
			whole = append(whole, key)
		}
	}
	for u, err := range store.Unfinished(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(u.Key, "/"+name) {
			parts = append(parts, u.Key)
		}
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
	store, err := blob.OpenURL(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// Padded is an MP4 file that is larger by a box of n bytes, which no player reads: random ones, so that every byte is in its place only there.
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
