package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/disk"
	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/storage/blob"
	"millrace/test/services"
)

// fake is a check with a set outcome.
type fake struct {
	name string
	f    Finding
}

func (f fake) Name() string                { return f.name }
func (f fake) Run(context.Context) Finding { return f.f }

func TestRunPrintsEachFinding(t *testing.T) {
	t.Parallel()
	checks := []Check{fake{"a", ok("fine")}, fake{"longer", warning("look", "so so")}}
	var b bytes.Buffer
	healthy, err := Run(t.Context(), checks, &b, false)
	if err != nil || !healthy {
		t.Fatalf("got %v, %v", healthy, err)
	}
	if want := "✓ a       fine\n! longer  so so\n          → look\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	healthy, err = Run(t.Context(), append(checks, fake{"c", problem("mend it", "broken")}), &b, false)
	if err != nil || healthy || !strings.Contains(b.String(), "✗ c       broken\n          → mend it\n") {
		t.Errorf("got %v, %v\n%s", healthy, err, b.String())
	}
}

func TestRunAsJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if _, err := Run(t.Context(), []Check{fake{"a", problem("m", "<t>")}}, &b, true); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Healthy  bool                `json:"healthy"`
		Findings []map[string]string `json:"findings"`
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	f := doc.Findings[0]
	if doc.Healthy || f["name"] != "a" || f["level"] != "problem" || f["finding"] != "<t>" || f["mend"] != "m" {
		t.Errorf("got %s", b.String())
	}
}

func TestRunStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, []Check{fake{"a", ok("")}}, &bytes.Buffer{}, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// expect runs a check and compares level and a part of the text.
func expect(t *testing.T, c Check, level Level, text string) {
	t.Helper()
	f := c.Run(t.Context())
	if f.Level != level || !strings.Contains(f.Text, text) {
		t.Errorf("%s: got %s %q, want %s with %q", c.Name(), f.Level, f.Text, level, text)
	}
	if (f.Mend == "") != (f.Level == OK) {
		t.Errorf("%s: %s with the advice %q", c.Name(), f.Level, f.Mend)
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, Settings{}, OK, "without a file")
	expect(t, Settings{Warnings: []string{"MILLRACE_X is odd"}}, Warning, "MILLRACE_X is odd")
	expect(t, DataFolder{filepath.Join(dir, "a/b")}, OK, "will be made")
	expect(t, DataFolder{file}, Problem, "is a file")
	inFile := filepath.Join(file, "data") // as unreachable as a folder of another user's is, also for root
	expect(t, DataFolder{inFile}, Problem, "can't be reached")
	expect(t, DiskSpace{inFile, disk.SpaceOf}, Warning, "can't be reached")
	expect(t, SQLite{filepath.Join(inFile, "millrace.db")}, Problem, "can't be reached")
	expect(t, Storage{Where: config.Storage{Kind: config.Folder, Path: inFile}}, Problem, "can't be reached")
	expect(t, DiskSpace{"/proc/sys", disk.SpaceOf}, Problem, "is not on a disk")
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if f := (DataFolder{open}).Run(t.Context()); f.Level == Problem {
		t.Errorf("got %+v", f)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	expect(t, DataFolder{open}, Warning, "every user")
	if entries, err := os.ReadDir(open); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	space := func(free, files uint64) func(string) (disk.Space, error) {
		return func(string) (disk.Space, error) {
			return disk.Space{Free: free, Total: 1 << 50, FreeFiles: files, TotalFiles: 1 << 30}, nil
		}
	}
	expect(t, DiskSpace{dir, space(100<<30, 1<<20)}, OK, "100 GiB free, enough for about 95 hours")
	expect(t, DiskSpace{dir, space(5<<30, 1<<20)}, Warning, "5.0 GiB")
	expect(t, DiskSpace{dir, space(1<<20, 1<<20)}, Problem, "only 0.0 GiB")
	expect(t, DiskSpace{dir, space(100<<30, 3)}, Problem, "3 more files")
	limit := func(n uint64) func() (uint64, error) { return func() (uint64, error) { return n, nil } }
	expect(t, Confinement{encode.Confined}, OK, "can keep ffmpeg to its own files")
	offers := func(c encode.Confinement) Check { return Confinement{func() encode.Confinement { return c }} }
	expect(t, offers(encode.Confinement{NewRight: true, Calls: true}), Warning, "Landlock")
	expect(t, offers(encode.Confinement{NewRight: true, Files: true}), Warning, "seccomp")
	expect(t, Priorities{func() bool { return true }}, OK, "least share")
	expect(t, Priorities{func() bool { return false }}, Warning, "may not raise")
	expect(t, OpenFiles{limit(65536)}, OK, "65536")
	expect(t, OpenFiles{limit(1024)}, Warning, "1024")
	expect(t, OpenFiles{limit(64)}, Problem, "64")
	if n, err := openFiles(); err != nil || n == 0 {
		t.Errorf("real limit: %d %v", n, err)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := func() (bool, bool) { return true, true }
	at := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	expect(t, Clock{dir, time.Now, good}, OK, "UTC")
	expect(t, Clock{dir, time.Now, func() (bool, bool) { return false, true }}, Warning, "nothing keeps it right")
	expect(t, Clock{dir, time.Now, func() (bool, bool) { return false, false }}, OK, "UTC")
	expect(t, Clock{dir, at(time.Hour), good}, Warning, "off this machine's")
	expect(t, Clock{dir, func() time.Time { return time.Unix(0, 0).UTC() }, good}, Problem, "1970")
	calls := 0
	expect(t, Clock{
		dir, func() time.Time { calls--; return time.Now().Add(time.Duration(calls) * time.Minute) }, good,
	}, Problem, "backwards")
}

func TestFFmpeg(t *testing.T) {
	t.Parallel()
	busy := func() (float64, int) { return 15.2, 2 }
	reports := func(r encode.Report) FFmpeg {
		return FFmpeg{Inspect: func(context.Context, string, string) encode.Report { return r }, Load: busy}
	}
	expect(t, reports(encode.Report{Version: "5.1.9"}), OK, "version 5.1.9, with every encoder")
	two := reports(encode.Report{
		Problems: []string{"ffmpeg lacks the encoder aac. Install it", "ffmpeg lacks the muxer mp4. Install it"},
	})
	expect(t, two, Problem, "ffmpeg lacks the encoder aac; ffmpeg lacks the muxer mp4")
	if f := two.Run(t.Context()); f.Mend != "Install it" {
		t.Errorf("got %+v", f)
	}
	some := reports(encode.Report{
		Version: "5.1.9", Limits: []string{"ffmpeg lacks libaom-av1, so clips can't be cut. Install it"},
	})
	expect(t, some, Warning, "version 5.1.9: ffmpeg lacks libaom-av1, so clips can't be cut")
	if f := some.Run(t.Context()); f.Mend != "Install it" {
		t.Errorf("got %+v", f)
	}
	expect(t, reports(encode.Report{Problems: []string{"ffmpeg can't list its encoders (exit status 1)"}}), Problem,
		"can't list")
	slow := reports(encode.Report{FFmpeg: "/usr/bin/ffmpeg", Late: []string{"/usr/bin/ffmpeg"}})
	expect(t, slow, Warning,
		"/usr/bin/ffmpeg could not be checked, as it did not respond in time: this machine is busy")
	for _, l := range []Load{nil, func() (float64, int) { return 1.5, 2 }, func() (float64, int) { return 0, 0 }} {
		slow.Load = l
		expect(t, slow, Problem, "/usr/bin/ffmpeg did not respond in time")
	}
	expect(t, FFmpeg{Inspect: func(ctx context.Context, _, _ string) encode.Report {
		return encode.Check(ctx, "/no/such/ffmpeg", "/no/such/ffprobe")
	}}, Problem, "ffmpeg is not found at /no/such/ffmpeg")
}

func TestH264Encoder(t *testing.T) {
	t.Parallel()
	works := func(list ...encode.H264) func(context.Context, encode.H264) error {
		return func(_ context.Context, h encode.H264) error {
			if slices.Contains(list, h) {
				return nil
			}
			return fmt.Errorf("%s does not encode: Cannot load libcuda.so.1", h)
		}
	}
	expect(t, H264Encoder{Chosen: encode.X264, Try: works(encode.X264)}, OK,
		"x264 encodes; there is no hardware here that would")
	expect(t, H264Encoder{Chosen: encode.X264, Try: works(encode.X264, encode.QSV, encode.VAAPI)}, OK,
		"x264 encodes; so would, with --h264-encoder: qsv, vaapi")
	expect(t, H264Encoder{Chosen: encode.NVENC, Try: works(encode.X264, encode.NVENC)}, OK, "nvenc encodes")
	expect(t, H264Encoder{Chosen: encode.NVENC, Try: works(encode.X264)}, Problem,
		"nvenc does not encode: Cannot load libcuda.so.1")
	slow := func(context.Context, encode.H264) error {
		return fmt.Errorf("nvenc does not encode: %w", context.DeadlineExceeded)
	}
	busy := func() (float64, int) { return 15.2, 2 }
	expect(t, H264Encoder{encode.NVENC, slow, busy}, Warning, "nvenc could not be checked")
	missing := func(context.Context, encode.H264) error { return fmt.Errorf("find ffmpeg: %w", exec.ErrNotFound) }
	expect(t, H264Encoder{Chosen: encode.X264, Try: missing}, Problem, "x264 could not be tried: ffmpeg is not found")
}

func TestPorts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go hangUp(l)
	busy := l.Addr().String()
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/openapi.json" {
			_, _ = w.Write([]byte(`{"openapi":"3.1.0","info":{"title":"Millrace API","version":"1"}}`))
		}
	}))
	defer running.Close()
	ours := running.Listener.Addr().String()
	_, oursPort, _ := net.SplitHostPort(ours)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	elsewhere := "0.0.0.0:" + oursPort
	has := func(all map[string]Holder) func(string, bool) []Holder {
		return func(port string, _ bool) []Holder {
			if h, known := all[port]; known {
				return []Holder{h}
			}
			return nil
		}
	}
	port := portOf(busy)
	hidden := has(nil)
	alike := has(map[string]Holder{port: {User: 7}, oursPort: {User: 7}})
	unlike := has(map[string]Holder{port: {User: 8}, oursPort: {User: 7}})
	own := has(map[string]Holder{port: {User: 7, PID: 42, Program: "millrace", Millrace: true}})
	foreign := has(map[string]Holder{port: {User: 7, PID: 42, Program: "nginx"}, oursPort: {User: 7}})
	expect(t, FreePort{"http-addr", "127.0.0.1:0", "", false, hidden}, OK, "a free port is taken")
	expect(t, FreePort{"http-addr", ours, ours, false, hidden}, Warning, "is in use by a running millrace")
	expect(t, FreePort{"rtmp-addr", busy, elsewhere, false, own}, Warning,
		"is in use by a running millrace (process 42)")
	expect(t, FreePort{"rtmp-addr", busy, elsewhere, false, foreign}, Problem, "nginx (process 42) uses")
	expect(t, FreePort{"rtmp-addr", busy, elsewhere, false, alike}, Warning, "of the same user as the millrace")
	expect(t, FreePort{"rtmp-addr", busy, elsewhere, false, unlike}, Problem, "another program uses")
	expect(t, FreePort{"rtmp-addr", busy, elsewhere, false, hidden}, Problem, "another program uses")
	expect(t, FreePort{
		"rtmp-addr", busy, other.Listener.Addr().String(), false, alike,
	}, Problem, "another program uses")
	expect(t, FreePort{"rtmp-addr", busy, elsewhere, false, nil}, OK, "is this service's own")
	expect(t, FreePort{"http-addr", "192.0.2.1:8080", "", false, nil}, Problem, "this machine has no address")
	expect(t, FreePort{"http-addr", "127.0.0.1:65536", "", false, nil}, Problem, "cannot listen")
}

// hangUp is a program that says nothing: to one that only keeps silent, each check would listen for three seconds.
func hangUp(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.Close() // nothing was sent
	}
}

// TestHolders finds this process behind sockets of its own, over either protocol, and nobody behind a port that is
// free.
func TestHolders(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		addr string
		udp  bool
	}{{tcp.Addr().String(), false}, {udp.LocalAddr().String(), true}} {
		all := holders(portOf(tt.addr), tt.udp)
		if len(all) != 1 || all[0].PID != os.Getpid() || !all[0].Millrace || all[0].Program == "" ||
			all[0].User != uint64(os.Getuid()) {
			t.Errorf("%s: %+v", tt.addr, all)
		}
	}
	_, _ = tcp.Close(), udp.Close()
	if all := holders(portOf(tcp.Addr().String()), false); len(all) > 0 && all[0].PID == os.Getpid() {
		t.Errorf("a closed socket is of %+v", all)
	}
}

func TestCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	expect(t, Certificate{filepath.Join(dir, "c"), filepath.Join(dir, "k"), time.Now}, Problem, "no such file")
	cert, key, until := selfSigned(t, dir)
	at := func(x time.Time) func() time.Time { return func() time.Time { return x } }
	expect(t, Certificate{cert, key, at(until.Add(-100 * 24 * time.Hour))}, OK, "video.example.org")
	expect(t, Certificate{cert, key, at(until.Add(-time.Hour))}, Warning, "it ends on")
	expect(t, Certificate{cert, key, at(until.Add(time.Hour))}, Problem, "it ended on")
	expect(t, Certificate{cert, key, at(until.Add(-400 * 24 * time.Hour))}, Problem, "it is valid from")
}

func TestACME(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, until := selfSigned(t, dir)
	a := ACME{
		Domain: "video.example.org", Folder: dir, HTTP: ":8080", HTTPS: ":8443",
		Now:    func() time.Time { return until.Add(-100 * 24 * time.Hour) },
		LookUp: func(context.Context, string) ([]string, error) { return []string{"192.0.2.7"}, nil },
	}
	with := func(change func(*ACME)) ACME { b := a; change(&b); return b }
	expect(t, a, Warning, "port 80 or 443 of 192.0.2.7")
	expect(t, with(func(a *ACME) { a.HTTP = ":80" }), OK, "is asked for at the start")
	expect(t, with(func(a *ACME) {
		a.LookUp = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	}), Problem, "has no address")
	data, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, a.Domain), append(data, chain...), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, a, OK, "video.example.org")
	expect(t, with(func(a *ACME) { a.Now = func() time.Time { return until.Add(-20 * 24 * time.Hour) } }), Warning,
		"it ends on")
	expect(t, with(func(a *ACME) { a.Now = func() time.Time { return until.Add(time.Hour) } }), Problem, "it ended on")
	if err := os.WriteFile(filepath.Join(dir, a.Domain), data, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, a, Problem, "no certificate in it")
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "with space#and?more%20")
	expect(t, SQLite{filepath.Join(dir, "m.db")}, OK, "will be made at the first start")
	if exists(dir) {
		t.Error("the check made the folder")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, SQLite{path}, OK, "can be written")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, SQLite{path}, Problem, "damaged or no SQLite file")
	expect(t, SQLite{dir}, Problem, "cannot be used")
}

// standing is a clock by which nothing takes long: a busy machine is no slow storage.
func standing() time.Time { return time.Unix(1e9, 0) }

// timeless is the time of day, but that nothing has passed between the first two looks.
func timeless() func() time.Time {
	begun, looks := time.Now(), 0
	return func() time.Time {
		if looks++; looks <= 2 {
			return begun
		}
		return time.Now()
	}
}

// server is the address of a server that a full test run starts.
func server(t *testing.T, variable string) string {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		missing := variable + " holds no URL; make test starts a server and sets it"
		if os.Getenv("MILLRACE_TEST_REQUIRE") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	return url
}

func TestBucket(t *testing.T) {
	t.Parallel()
	url := server(t, "MILLRACE_TEST_S3")
	s := Storage{config.Storage{Kind: config.S3, URL: config.Secret(url + "&create=true")}, openBlob, standing}
	expect(t, s, OK, "256 KiB put in")
	url = strings.ReplaceAll(url, "create=true", "create=false")
	s.Where.URL = config.Secret(strings.Replace(url, "s3://", "s3://no-such-", 1))
	expect(t, s, Problem, "s3://no-such-")
	if f := s.Run(t.Context()); !strings.Contains(f.Mend, "Make the bucket") {
		t.Errorf("without the bucket: %+v", f)
	}
	s.Where.URL = config.Secret(strings.Replace(url, "secret_access_key=", "secret_access_key=x", 1))
	expect(t, s, Problem, "s3://")
	if f := s.Run(t.Context()); !strings.Contains(f.Mend, "AWS_ACCESS_KEY_ID") {
		t.Errorf("with a wrong secret: %+v", f)
	}
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	expect(t, PostgreSQL{
		"postgres://u:hunter2@127.0.0.1:1/m?connect_timeout=2", time.Now,
	}, Problem, "127.0.0.1:1 cannot be reached")
	expect(t, PostgreSQL{
		"postgres://u:hunter2@[::1]:1,[::1]:2/m?connect_timeout=2", time.Now,
	}, Problem, "[::1]:1,[::1]:2 cannot be reached")
	expect(t, PostgreSQL{"postgres://u:hunter2@no.such.host.invalid/m", time.Now}, Problem, "no.such.host.invalid")
	url := server(t, "MILLRACE_TEST_POSTGRES")
	expect(t, PostgreSQL{config.Secret(url), timeless()}, OK, "tables can be made and rows written")
	ahead := func() time.Time { return time.Now().Add(time.Minute) }
	expect(t, PostgreSQL{config.Secret(url), ahead}, Problem, "off this machine's")
	if f := (PostgreSQL{config.Secret(url + "x"), time.Now}).Run(t.Context()); f.Level != Problem ||
		strings.Contains(f.Text, "password=") {
		t.Errorf("got %+v", f)
	}
}

// TestSessions: a pooler of transactions is told from a server, and the setting that mends it is named.
func TestSessions(t *testing.T) {
	t.Parallel()
	at := func(url, direct string) Sessions {
		return Sessions{config.Database{
			Engine: config.Postgres, URL: config.Secret(url), Direct: config.Secret(direct),
		}}
	}
	server := server(t, "MILLRACE_TEST_POSTGRES")
	required := os.Getenv("MILLRACE_TEST_REQUIRE") != ""
	if _, err := services.PgbouncerPath(); err != nil && !required {
		t.Skip(err)
	}
	s, err := services.Pgbouncer(context.WithoutCancel(t.Context()), server, "transaction")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	expect(t, at(server, ""), OK, "keep their sessions")
	expect(t, at(s.URL, ""), Problem, "database-url leads to a pooler")
	expect(t, at(s.URL, s.URL), Problem, "database-direct-url leads to a pooler")
	expect(t, at(s.URL, server), OK, "through a pooler")
	if f := at(s.URL, "").Run(t.Context()); !strings.Contains(f.Mend, "database-direct-url") {
		t.Errorf("behind a pooler: %+v", f)
	}
	nowhere := "postgres://u:hunter2@127.0.0.1:1/m?connect_timeout=2"
	expect(t, at(nowhere, ""), Problem, "127.0.0.1:1 cannot be reached")
	expect(t, at(nowhere, server), Problem, "127.0.0.1:1 cannot be reached")
}

func openBlob(ctx context.Context, url config.Secret) (blob.Store, error) {
	return blob.OpenURL(ctx, url.Reveal())
}

func TestStorage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "media")
	where := config.Storage{Kind: config.Folder, Path: dir, URL: config.Secret(dir)}
	expect(t, Storage{where, openBlob, standing}, OK, "will be made at the first start")
	if exists(dir) {
		t.Error("the check made the folder")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	expect(t, Storage{where, openBlob, standing}, OK, "256 KiB put in")
	if found, err := filepath.Glob(filepath.Join(dir, "doctor*")); err != nil || len(found) > 0 {
		t.Errorf("left behind: %v %v", found, err)
	}
	slow := time.Now()
	expect(t, Storage{
		where, openBlob, func() time.Time { slow = slow.Add(2 * time.Second); return slow },
	}, Warning, "256 KiB put in 2s")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, Storage{
		config.Storage{Kind: config.Folder, Path: file, URL: config.Secret(file)}, openBlob, time.Now,
	}, Problem, file)
	no := errors.New("no")
	for mend, cause := range map[string]error{
		"a role that may":     fault.Wrap(fault.Unavailable, blob.ErrNoCredentials, "no"),
		"AWS_ACCESS_KEY_ID":   fault.Wrap(fault.Unavailable, blob.ErrRefused, "no"),
		"Make the bucket":     fault.Wrap(fault.Unavailable, blob.ErrNoBucket, "no"),
		"Start the storage":   fault.Wrap(fault.Unavailable, no, "no"),
		"Correct storage-url": fault.Wrap(fault.Invalid, no, "no"),
	} {
		broken := func(context.Context, config.Secret) (blob.Store, error) { return nil, cause }
		s := Storage{config.Storage{Kind: config.S3, URL: "s3://b?secret_access_key=hunter2"}, broken, time.Now}
		expect(t, s, Problem, "s3://b: open: no")
		if f := s.Run(t.Context()); !strings.Contains(f.Mend, mend) || strings.Contains(f.Text+f.Mend, "hunter2") {
			t.Errorf("%v: got %+v, want %q", cause, f, mend)
		}
	}
}

// forgetful is a folder that gives back other bytes than it was given.
type forgetful struct{ blob.Store }

func (f forgetful) Get(ctx context.Context, key string, off, n int64) (*blob.Reader, error) {
	return f.Store.Get(ctx, key, off+1, n)
}

func TestStorageThatLies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(ctx context.Context, url config.Secret) (blob.Store, error) {
		s, err := openBlob(ctx, url)
		return forgetful{s}, err
	}
	expect(t, Storage{
		config.Storage{Kind: config.Folder, Path: dir, URL: config.Secret(dir)}, open, time.Now,
	}, Problem, "other bytes came back")
	if found, err := filepath.Glob(filepath.Join(dir, "doctor*")); err != nil || len(found) > 0 {
		t.Errorf("left behind: %v %v", found, err)
	}
}

func TestChecksOfAWholeConfiguration(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse([]string{
		"--data-dir", t.TempDir() + "/data", "--http-addr=127.0.0.1:0", "--rtmp-addr=127.0.0.1:0",
		"--srt-addr=127.0.0.1:0",
		"--webrtc-udp-addr=127.0.0.1:0", "--webrtc-tcp-addr=127.0.0.1:0",
	}, nil, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := Run(t.Context(), Checks(Options{Config: cfg, OpenStorage: openBlob}), &b, false); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"settings", "roles", "data folder", "disk space", "open files", "clock", "ffmpeg", "http-addr", "rtmp-addr",
		"srt-addr",
		"webrtc-udp-addr", "webrtc-tcp-addr", "database", "storage",
	} {
		if !strings.Contains(b.String(), " "+name+" ") {
			t.Errorf("no line for %s in\n%s", name, b.String())
		}
	}
	if exists(cfg.DataDir) {
		t.Error("doctor made the data folder")
	}
	t.Log("\n" + b.String())
}

// TestChecksByRole: ports for encoders are those of nodes that take encoders.
func TestChecksByRole(t *testing.T) {
	t.Parallel()
	for roles, ports := range map[string]bool{"all": true, "ingest": true, "api,playback,worker": false} {
		cfg, err := config.Parse([]string{
			"--roles", roles, "--database-url=postgres://u:p@h/d", "--internal-addr=10.0.0.5:9465",
		}, nil, os.ReadFile)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, c := range Checks(Options{Config: cfg, OpenStorage: openBlob}) {
			found[c.Name()] = true
			if r, is := c.(Roles); is && !strings.HasPrefix(r.Run(t.Context()).Text, roles) {
				t.Errorf("%s: %q", roles, r.Run(t.Context()).Text)
			}
		}
		for _, port := range []string{"rtmp-addr", "srt-addr", "webrtc-udp-addr", "webrtc-tcp-addr"} {
			if found[port] != ports {
				t.Errorf("with the roles %s %s is looked at: %v", roles, port, found[port])
			}
		}
		if !found["http-addr"] {
			t.Errorf("with the roles %s http-addr is not looked at", roles)
		}
	}
}
