package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/app/doctor"
	"millrace/internal/config"
	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestUploadsLeft: what is under way is told apart from what nobody can finish, and looking makes nothing.
func TestUploadsLeft(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		cfg := config.Config{Storage: config.Storage{Kind: config.Folder, Path: filepath.Join(dir, "media")}}
		cfg.Storage.URL = config.Secret(cfg.Storage.Path)
		if cfg.Database.Engine = config.SQLite; strings.HasPrefix(url, "postgres") {
			cfg.Database.Engine, cfg.Database.URL = config.Postgres, config.Secret(url)
		} else {
			cfg.Database.Path = strings.TrimPrefix(url, "sqlite://")
		}
		expect := func(want doctor.UploadsLeft) {
			t.Helper()
			if got, err := uploadsLeft(t.Context(), cfg); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		}
		expect(doctor.UploadsLeft{})
		if _, err := os.Stat(cfg.Database.Path); cfg.Database.Engine == config.SQLite && err == nil {
			t.Error("it made the database")
		}
		d := dbtest.Open(t, url)
		expect(doctor.UploadsLeft{})
		if _, err := os.Stat(cfg.Storage.Path); err == nil {
			t.Error("it made the storage folder")
		}
		store, err := blob.Open(t.Context(), blob.Options{Dir: cfg.Storage.Path, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		begun := time.Now().Add(-2 * time.Hour)
		uploads := upload.New(upload.Options{Store: d.Uploads()})
		for timeout, bytes := range map[int]string{7 * 3600: "here", 3600: "is late"} { // 3600 s are over
			in := upload.CreateInput{CORSOrigin: "*", Timeout: new(timeout)}
			u, failed := uploads.Create(t.Context(), "env", in, begun)
			if failed != nil {
				t.Fatal(failed)
			}
			grow(t, store, u.Media, bytes)
		}
		grow(t, store, "unknown", "unknown")
		grow(t, store, "young", "young")
		growing := filepath.Join(cfg.Storage.Path, ".growing", objectkey.SourceFile("unknown"))
		if err = os.Chtimes(growing, time.Time{}, begun); err != nil {
			t.Fatal(err)
		}
		expect(doctor.UploadsLeft{Underway: 1, Late: 1, LateBytes: 7, Unknown: 1, UnknownBytes: 7})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = uploadsLeft(ended, cfg); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
	})
}

// TestUploadsLeftWithoutTheDatabase: a database that is of an earlier version is as good as none; one that is away is
// an error.
func TestUploadsLeftWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Config{Database: config.Database{Engine: config.SQLite, Path: path}}
	if got, err := uploadsLeft(t.Context(), cfg); err != nil || got != (doctor.UploadsLeft{}) {
		t.Errorf("of an empty file: %+v, %v", got, err)
	}
	cfg.Database = config.Database{Engine: config.Postgres, URL: "postgres://u:hunter2@127.0.0.1:1/m?connect_timeout=2"}
	if _, err := uploadsLeft(t.Context(), cfg); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("of a server that is away: %v", err)
	}
	if _, err := db.OpenGlance(t.Context(), "mysql://x"); err == nil {
		t.Error("an unknown kind of database was opened")
	}
}

func grow(t *testing.T, s blob.Store, m id.Media, bytes string) {
	t.Helper()
	g, err := s.Grow(t.Context(), objectkey.SourceFile(m))
	if err == nil {
		err = errors.Join(g.Append(t.Context(), []byte(bytes)), g.Sync(t.Context()), g.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
