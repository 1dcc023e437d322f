// Package workertest has the tests of workers their world: a real database and a real store, with real files of ffmpeg,
// each job done directly.
package workertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/id"
	"millrace/internal/media/encode"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/transform"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/worker/expire"
	"millrace/internal/worker/finish"
	"millrace/internal/worker/ingest"
	"millrace/internal/worker/purge"
	"millrace/internal/worker/track"
	"millrace/internal/worker/workertest/filmtest"
)

// Env is the environment of all assets.
const Env = id.Environment("env")

// Jobs notes the jobs of the changes that were committed.
type Jobs struct {
	asset.Store
	Fail func() error // nil: all goes well
	mu   sync.Mutex
	All  []job.Insert
	Warn []asset.Warning // that were told
	Grew []asset.Change  // those that changed a timeline
}

func (j *Jobs) note(c asset.Change, err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.All = append(j.All, c.Jobs...)
		if len(c.Entries) > 0 || c.Forget {
			j.Grew = append(j.Grew, c)
		}
		for _, e := range c.Events {
			if e.Type == asset.EventWarning {
				var warned asset.Warned
				err = json.Unmarshal(e.Data, &warned)
				j.Warn = append(j.Warn, warned.Warning)
			}
		}
	}
	return err
}

// Insert implements asset.Store.
func (j *Jobs) Insert(ctx context.Context, c asset.Change) error {
	return j.note(c, j.Store.Insert(ctx, c))
}

// Save implements asset.Store.
func (j *Jobs) Save(ctx context.Context, c asset.Change) error {
	if j.Fail != nil {
		if err := j.Fail(); err != nil {
			return err
		}
	}
	return j.note(c, j.Store.Save(ctx, c))
}

// Delete implements asset.Store.
func (j *Jobs) Delete(ctx context.Context, c asset.Change) error {
	return j.note(c, j.Store.Delete(ctx, c))
}

// Take gives the jobs that have come since the last time.
func (j *Jobs) Take() []job.Insert {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.All
	j.All = nil
	return out
}

// Store can be made to fail, and tells of what is put.
type Store struct {
	blob.Store
	Fail func(key string) error // nil: all goes well
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader) error {
	if s.Fail != nil {
		if err := s.Fail(key); err != nil {
			return err
		}
	}
	return s.Store.Put(ctx, key, r)
}

// PutNew implements blob.Store.
func (s *Store) PutNew(ctx context.Context, key string, data []byte) (bool, error) {
	if s.Fail != nil {
		if err := s.Fail(key); err != nil {
			return false, err
		}
	}
	return s.Store.PutNew(ctx, key, data)
}

// Adopt implements blob.Store.
func (s *Store) Adopt(ctx context.Context, key, path string) error {
	if s.Fail != nil {
		if err := s.Fail(key); err != nil {
			return err
		}
	}
	return s.Store.Adopt(ctx, key, path)
}

// World is everything that workers stand on, with a clock that goes on by a second each time it is read.
type World struct {
	*asset.Service
	*asset.Work
	T        testing.TB
	DB       *db.DB
	Jobs     *Jobs
	Store    *Store
	Scratch  string
	Site     *Site
	Ingest   *ingest.Worker
	Track    *track.Worker
	Handlers map[string]job.Handler
	Equip    func(*encode.Engine) // gives workers another one

	Mu    sync.Mutex
	Clock time.Time

	aired aired
}

// Options are for worlds that differ; those of others are zero.
type Options struct {
	MaxSize int64
	Strict  bool // nothing of this machine may be fetched
	Stall   time.Duration
	Engine  *encode.Engine // nil: this machine's
	Folder  bool           // files are stored in a folder, and workers know
}

// Folder is a store whose objects are files here.
type Folder struct {
	*Store
	blob.Local
}

// New makes a world with the workers of assets and their tracks.
func New(t testing.TB, o Options) *World {
	t.Helper()
	files, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	d := dbtest.Open(t, dbtest.SQLite(t))
	w := &World{
		T:       t,
		DB:      d,
		Jobs:    &Jobs{Store: d.Assets()},
		Store:   &Store{Store: files},
		Scratch: t.TempDir(),
		Site:    newSite(t),
		Clock:   time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	w.Service, w.Work = asset.New(asset.Options{Store: w.Jobs}), asset.NewWork(asset.Options{Store: w.Jobs})
	if o.MaxSize == 0 {
		o.MaxSize = 1 << 30
	}
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	if o.Strict {
		allow = nil
	}
	client := fetch.New(fetch.Options{Allow: allow, Retry: fetch.Retry{Tries: 2, First: time.Millisecond}})
	t.Cleanup(client.Close)
	if o.Engine == nil {
		o.Engine = filmtest.NewEngine(t, o.Stall)
	}
	log := slog.New(slog.DiscardHandler)
	here, err := os.Getwd()
	w.Must(err)
	scratch, err := filepath.Rel(here, w.Scratch) // as an operator may give it
	w.Must(err)
	mark, err := transform.Mark()
	w.Must(err)
	w.Handlers = map[string]job.Handler{}
	kept := blob.Store(w.Store)
	if local, ok := files.(blob.Local); ok && o.Folder {
		kept = Folder{w.Store, local}
	}
	w.Equip = func(engine *encode.Engine) {
		w.Ingest = ingest.New(ingest.Options{
			Mark: mark, Assets: w.Work, Store: kept, Fetch: client, Engine: engine,
			Library: ondemand.NewLibrary(Objects{Store: w.Store}, 1<<20),
			Scratch: scratch, MaxSize: o.MaxSize, Now: w.Now, Logger: log,
		})
		w.Track = track.New(track.Options{
			Assets: w.Work, Store: w.Store, Fetch: client, Engine: engine,
			Scratch: scratch, MaxSize: o.MaxSize, Now: w.Now,
		})
		for _, h := range []job.Handler{w.Ingest.Handler(), w.Track.Handler()} {
			w.Handlers[h.Kind] = h
		}
	}
	w.Equip(o.Engine)
	for _, h := range []job.Handler{
		(&finish.Worker{Assets: w.Work, Store: w.Store, Now: w.Now}).Handler(),
		(&purge.Worker{Assets: w.Work, Store: w.Store, Purged: db.Retention(w.DB).ForgetSize}).Handler(),
		(&expire.Worker{Assets: w.Work, Now: w.Now}).Handler(),
	} {
		w.Handlers[h.Kind] = h
	}
	return w
}

// Now is a second later each time.
func (w *World) Now() time.Time {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Clock = w.Clock.Add(time.Second)
	return w.Clock
}

// Ctx is the test's context.
func (w *World) Ctx() context.Context { return w.T.Context() }

// Must ends the test at an error.
func (w *World) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Do works a job as its n-th attempt.
func (w *World) Do(j job.Insert, attempt int) error {
	return w.DoAgain(j, job.Job{Attempt: attempt})
}

// DoAgain does a job with the past that it has.
func (w *World) DoAgain(j job.Insert, past job.Job) error {
	h := w.Handlers[j.Kind]
	past.Kind, past.Args, past.MaxAttempts = j.Kind, j.Args, h.MaxAttempts
	return h.Work(w.Ctx(), past)
}

// DoAll does every job there is, and those that they ask for; what is put off comes back. Errors are those of jobs that
// have ended.
func (w *World) DoAll() error {
	var errs []error
	queue := w.Jobs.Take()
	for n := 0; len(queue) > 0; n++ {
		if n > 1000 {
			w.T.Fatal("the jobs have no end")
		}
		j := queue[0]
		queue = queue[1:]
		err := w.Do(j, 1)
		for attempt := 2; err != nil && !final(err) && attempt <= w.Handlers[j.Kind].MaxAttempts; attempt++ {
			err = w.Do(j, attempt)
		}
		if _, snoozed := errors.AsType[*job.SnoozeError](err); snoozed {
			queue = append(queue, j)
		} else if err != nil {
			errs = append(errs, err)
		}
		queue = append(queue, w.Jobs.Take()...)
	}
	return errors.Join(errs...)
}

func final(err error) bool {
	_, snoozed := errors.AsType[*job.SnoozeError](err)
	return snoozed || fault.Permanent(err)
}

// Asset reads an asset.
func (w *World) Asset(a id.Asset) asset.Asset {
	w.T.Helper()
	got, err := w.Find(w.Ctx(), a)
	w.Must(err)
	return got
}

// NewAsset asks for an asset.
func (w *World) NewAsset(inputs ...assetopt.Input) asset.Asset {
	w.T.Helper()
	o := assetopt.Options{PlaybackPolicies: []playbackid.Policy{playbackid.Public}, Inputs: inputs}
	a, err := w.Create(w.Ctx(), Env, asset.CreateInput{Options: o}, w.Now())
	w.Must(err)
	return a
}

// ReadyAsset makes an asset of a file and wants it to be ready.
func (w *World) ReadyAsset(path string, more ...assetopt.Input) asset.Asset {
	w.T.Helper()
	a := w.NewAsset(append([]assetopt.Input{{URL: w.Site.Offer(path)}}, more...)...)
	w.Must(w.DoAll())
	a = w.Asset(a.ID)
	if a.Status != asset.Ready {
		w.T.Fatalf("asset is %s: %+v", a.Status, a.Errors)
	}
	return a
}

// Objects lists what is stored.
func (w *World) Objects() []string {
	w.T.Helper()
	var out []string
	for key, err := range w.Store.List(w.Ctx(), "") {
		w.Must(err)
		out = append(out, key)
	}
	return out
}

// NothingLeft wants an empty scratch folder.
func (w *World) NothingLeft() {
	w.T.Helper()
	files, err := os.ReadDir(w.Scratch)
	w.Must(err)
	for _, f := range files {
		w.T.Errorf("left in the scratch folder: %s", f.Name())
	}
}

// Site serves files under names that say nothing.
type Site struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string // path of URL to path of file
	gate  map[string]func(w http.ResponseWriter, r *http.Request)
}

func newSite(t testing.TB) *Site {
	t.Helper()
	s := &Site{files: map[string]string{}, gate: map[string]func(http.ResponseWriter, *http.Request){}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		path, gate := s.files[r.URL.Path], s.gate[r.URL.Path]
		s.mu.Unlock()
		switch {
		case gate != nil:
			gate(w, r)
		case path == "":
			http.NotFound(w, r)
		default:
			http.ServeFile(w, r, path)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// Offer serves a file and gives its URL.
func (s *Site) Offer(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := "/" + id.New()
	s.files[name] = path
	return s.URL + name
}

// Handle serves what f writes.
func (s *Site) Handle(f func(w http.ResponseWriter, r *http.Request)) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := "/" + id.New()
	s.gate[name] = f
	return s.URL + name
}
