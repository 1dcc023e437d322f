package worker_test

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
	"runtime"
	"slices"
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
	"millrace/internal/programtest"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/worker/expire"
	"millrace/internal/worker/finish"
	"millrace/internal/worker/ingest"
	"millrace/internal/worker/purge"
	"millrace/internal/worker/track"
)

const env = id.Environment("env")

// jobs notes the jobs of the changes that were committed.
type jobs struct {
	asset.Store
	save func() error // nil: all goes well
	mu   sync.Mutex
	all  []job.Insert
	warn []asset.Warning // that were told
	grew []asset.Change  // those that changed a timeline
}

func (j *jobs) note(c asset.Change, err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.all = append(j.all, c.Jobs...)
		if len(c.Entries) > 0 || c.Forget {
			j.grew = append(j.grew, c)
		}
		for _, e := range c.Events {
			if e.Type == asset.EventWarning {
				var warned asset.Warned
				err = json.Unmarshal(e.Data, &warned)
				j.warn = append(j.warn, warned.Warning)
			}
		}
	}
	return err
}

func (j *jobs) Insert(ctx context.Context, c asset.Change) error {
	return j.note(c, j.Store.Insert(ctx, c))
}

func (j *jobs) Save(ctx context.Context, c asset.Change) error {
	if j.save != nil {
		if err := j.save(); err != nil {
			return err
		}
	}
	return j.note(c, j.Store.Save(ctx, c))
}

func (j *jobs) Delete(ctx context.Context, c asset.Change) error {
	return j.note(c, j.Store.Delete(ctx, c))
}

func (j *jobs) take() []job.Insert {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.all
	j.all = nil
	return out
}

// store can be made to fail, and tells of what is put.
type store struct {
	blob.Store
	put func(key string) error // nil: all goes well
}

func (s *store) Put(ctx context.Context, key string, r io.Reader) error {
	if s.put != nil {
		if err := s.put(key); err != nil {
			return err
		}
	}
	return s.Store.Put(ctx, key, r)
}

func (s *store) PutNew(ctx context.Context, key string, data []byte) (bool, error) {
	if s.put != nil {
		if err := s.put(key); err != nil {
			return false, err
		}
	}
	return s.Store.PutNew(ctx, key, data)
}

func (s *store) Adopt(ctx context.Context, key, path string) error {
	if s.put != nil {
		if err := s.put(key); err != nil {
			return err
		}
	}
	return s.Store.Adopt(ctx, key, path)
}

// world is everything that workers stand on, with a clock that goes on by a second each time it is read.
type world struct {
	*asset.Service
	*asset.Work
	t       testing.TB
	db      *db.DB
	jobs    *jobs
	store   *store
	scratch string
	site    *site
	ingest  *ingest.Worker
	track   *track.Worker
	handle  map[string]job.Handler
	equip   func(*encode.Engine) // gives workers another one

	mu    sync.Mutex
	clock time.Time

	aired sync.Once
	init  []byte   // of what recordings are made of
	live  [][]byte // its segments
}

type options struct {
	maxSize int64
	strict  bool // nothing of this machine may be fetched
	stall   time.Duration
	engine  *encode.Engine // nil: this machine's
	folder  bool           // files are stored in a folder, and workers know
}

// folder is a store whose objects are files here.
type folder struct {
	*store
	blob.Local
}

func newWorld(t testing.TB, o options) *world {
	t.Helper()
	files, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	d := dbtest.Open(t, dbtest.SQLite(t))
	w := &world{
		t: t, db: d, jobs: &jobs{Store: d.Assets()}, store: &store{Store: files}, scratch: t.TempDir(), site: newSite(t),
		clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	w.Service, w.Work = asset.New(asset.Options{Store: w.jobs}), asset.NewWork(asset.Options{Store: w.jobs})
	if o.maxSize == 0 {
		o.maxSize = 1 << 30
	}
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	if o.strict {
		allow = nil
	}
	client := fetch.New(fetch.Options{Allow: allow, Retry: fetch.Retry{Tries: 2, First: time.Millisecond}})
	t.Cleanup(client.Close)
	if o.engine == nil {
		o.engine = newEngine(t, o.stall)
	}
	log := slog.New(slog.DiscardHandler)
	here, err := os.Getwd()
	w.must(err)
	scratch, err := filepath.Rel(here, w.scratch) // as an operator may give it
	w.must(err)
	mark, err := transform.Mark()
	w.must(err)
	w.handle = map[string]job.Handler{}
	kept := blob.Store(w.store)
	if local, ok := files.(blob.Local); ok && o.folder {
		kept = folder{w.store, local}
	}
	w.equip = func(engine *encode.Engine) {
		w.ingest = ingest.New(ingest.Options{
			Mark: mark, Assets: w.Work, Store: kept, Fetch: client, Engine: engine,
			Library: ondemand.NewLibrary(objects{w.store}, 1<<20),
			Scratch: scratch, MaxSize: o.maxSize, Now: w.now, Logger: log,
		})
		w.track = track.New(track.Options{
			Assets: w.Work, Store: w.store, Fetch: client, Engine: engine,
			Scratch: scratch, MaxSize: o.maxSize, Now: w.now,
		})
		for _, h := range []job.Handler{w.ingest.Handler(), w.track.Handler()} {
			w.handle[h.Kind] = h
		}
	}
	w.equip(o.engine)
	for _, h := range []job.Handler{
		(&finish.Worker{Assets: w.Work, Store: w.store, Now: w.now}).Handler(), (&purge.Worker{Assets: w.Work, Store: w.store}).Handler(),
		(&expire.Worker{Assets: w.Work, Now: w.now}).Handler(),
	} {
		w.handle[h.Kind] = h
	}
	return w
}

// newEngine shares the processor with the other tests.
var budget = encode.NewBudget(encode.BudgetOptions{Cores: runtime.NumCPU()})

func newEngine(t testing.TB, stall time.Duration) *encode.Engine {
	t.Helper()
	e, err := encode.NewEngine(encode.Options{FFmpeg: programtest.Path(t, "ffmpeg"), FFprobe: programtest.Path(t, "ffprobe"), Budget: budget, Stall: stall})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(time.Second)
	return w.clock
}

func (w *world) ctx() context.Context { return w.t.Context() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// do works a job as its n-th attempt.
func (w *world) do(j job.Insert, attempt int) error {
	return w.doJob(j, job.Job{Attempt: attempt})
}

// doJob does a job with the past that it has.
func (w *world) doJob(j job.Insert, past job.Job) error {
	h := w.handle[j.Kind]
	past.Kind, past.Args, past.MaxAttempts = j.Kind, j.Args, h.MaxAttempts
	return h.Work(w.ctx(), past)
}

// work does every job there is, and those that they ask for; what is put off comes back. Errors are those of jobs that have ended.
func (w *world) work() error {
	var errs []error
	queue := w.jobs.take()
	for n := 0; len(queue) > 0; n++ {
		if n > 1000 {
			w.t.Fatal("the jobs have no end")
		}
		j := queue[0]
		queue = queue[1:]
		err := w.do(j, 1)
		for attempt := 2; err != nil && !final(err) && attempt <= w.handle[j.Kind].MaxAttempts; attempt++ {
			err = w.do(j, attempt)
		}
		if _, snoozed := errors.AsType[*job.SnoozeError](err); snoozed {
			queue = append(queue, j)
		} else if err != nil {
			errs = append(errs, err)
		}
		queue = append(queue, w.jobs.take()...)
	}
	return errors.Join(errs...)
}

func final(err error) bool {
	_, snoozed := errors.AsType[*job.SnoozeError](err)
	return snoozed || fault.Permanent(err)
}

func (w *world) find(a id.Asset) asset.Asset {
	w.t.Helper()
	got, err := w.Find(w.ctx(), a)
	w.must(err)
	return got
}

// create asks for an asset.
func (w *world) create(inputs ...assetopt.Input) asset.Asset {
	w.t.Helper()
	o := assetopt.Options{PlaybackPolicies: []playbackid.Policy{playbackid.Public}, Inputs: inputs}
	a, err := w.Create(w.ctx(), env, asset.CreateInput{Options: o}, w.now())
	w.must(err)
	return a
}

// ready makes an asset of a file and wants it to be ready.
func (w *world) ready(path string, more ...assetopt.Input) asset.Asset {
	w.t.Helper()
	a := w.create(append([]assetopt.Input{{URL: w.site.offer(path)}}, more...)...)
	w.must(w.work())
	a = w.find(a.ID)
	if a.Status != asset.Ready {
		w.t.Fatalf("asset is %s: %+v", a.Status, a.Errors)
	}
	return a
}

// objects lists what is stored.
func (w *world) objects() []string {
	w.t.Helper()
	var out []string
	for key, err := range w.store.List(w.ctx(), "") {
		w.must(err)
		out = append(out, key)
	}
	return out
}

// nothingLeft wants an empty scratch folder.
func (w *world) nothingLeft() {
	w.t.Helper()
	files, err := os.ReadDir(w.scratch)
	w.must(err)
	for _, f := range files {
		w.t.Errorf("left in the scratch folder: %s", f.Name())
	}
}

// site serves files under names that say nothing.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string // path of URL to path of file
	gate  map[string]func(w http.ResponseWriter, r *http.Request)
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{files: map[string]string{}, gate: map[string]func(http.ResponseWriter, *http.Request){}}
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

// offer serves a file and gives its URL.
func (s *site) offer(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := "/" + id.New()
	s.files[name] = path
	return s.URL + name
}

// handle serves what f writes.
func (s *site) handle(f func(w http.ResponseWriter, r *http.Request)) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := "/" + id.New()
	s.gate[name] = f
	return s.URL + name
}

// ffmpeg makes a file of this name and returns its path.
func ffmpeg(t testing.TB, name string, args ...string) string {
	t.Helper()
	return programtest.Media(t, name, append([]string{"-threads", "1"}, args...)...)
}

func args(parts ...[]string) []string { return slices.Concat(parts...) }

func picture(seconds string) []string {
	return []string{"-f", "lavfi", "-i", "testsrc2=size=160x90:rate=30:duration=" + seconds}
}

func sound(seconds string) []string {
	return []string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=" + seconds}
}

// h264 has a key frame every two seconds.
var h264 = []string{"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "60", "-bf", "2", "-threads", "1", "-c:a", "aac"}

// video is what makes a usual one of 13 seconds.
func video(more ...string) []string { return args(picture("13"), sound("13"), h264, more) }

func clip(t testing.TB, name string) string {
	t.Helper()
	return ffmpeg(t, name, video()...)
}

// text writes a file.
func text(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
