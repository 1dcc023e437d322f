package metrics

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/job"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/blob"
)

type encoders []live.Health

func (e encoders) Encoders() []live.Health { return e }
func (e encoders) Broadcasts() int         { return 3 }
func (e encoders) Panics() int64           { return 2 }
func (e encoders) Adoptions() broadcast.Adoptions {
	return broadcast.Adoptions{Own: 4, Ended: 5, Expired: 6}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func expect(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, "\n"+l+"\n") {
			t.Errorf("no line %s", l)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "millrace_") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

func TestDatabaseLog(t *testing.T) {
	t.Parallel()
	m := New("1.2.3")
	if text := scrape(t, m); strings.Contains(text, "millrace_database_log_bytes") {
		t.Error("shows the log of a database that has none")
	}
	m.DatabaseLog(func() int64 { return 4711 })
	expect(t, scrape(t, m), "millrace_database_log_bytes 4711")
}

func TestEncoders(t *testing.T) {
	t.Parallel()
	m := New("1.2.3")
	m.Watch(encoders{
		{
			Stream: "s1", Status: live.HealthLive,
			Encoder: &live.Encoder{
				Protocol: "srt", Remote: "192.0.2.77:4711", Name: "secret name", Bytes: 5000,
				Counts: live.Counts{PacketsLost: 7, ClockJumps: 2},
			},
			Samples: []live.Sample{{}, {
				GOP: 2 * time.Second, Pace: 1, Video: live.Flow{Bitrate: 3e6, Rate: 30, Jitter: 5 * time.Millisecond},
				Audio: live.Flow{Drift: -time.Second},
			}},
			Trouble: []live.Trouble{{Warning: live.Warning{Type: "audio_missing"}}},
		},
		{Stream: "s2", Status: live.HealthSilent, Encoder: &live.Encoder{Protocol: "srt"}},
	})
	text := scrape(t, m)
	expect(t, text,
		`millrace_build_info{version="1.2.3"} 1`, `millrace_broadcasts 3`, `millrace_broadcast_panics_total 2`,
		`millrace_broadcasts_recovered_total{from="own"} 4`, `millrace_broadcasts_recovered_total{from="ended"} 5`,
		`millrace_broadcasts_recovered_total{from="lost"} 6`,
		`millrace_encoders{protocol="srt"} 2`,
		`millrace_ingest_bitrate{live_stream_id="s1",track="video"} 3e+06`,
		`millrace_ingest_frame_rate{live_stream_id="s1",track="video"} 30`,
		`millrace_ingest_keyframe_interval_seconds{live_stream_id="s1"} 2`,
		`millrace_ingest_jitter_seconds{live_stream_id="s1",track="video"} 0.005`,
		`millrace_ingest_drift_seconds{live_stream_id="s1",track="audio"} -1`,
		`millrace_ingest_packets_lost_total{live_stream_id="s1"} 7`,
		`millrace_ingest_clock_jumps_total{live_stream_id="s1"} 2`,
		`millrace_ingest_bytes_total{live_stream_id="s1"} 5000`,
		`millrace_ingest_warning{live_stream_id="s1",type="audio_missing"} 1`,
		`millrace_ingest_silent{live_stream_id="s1"} 0`,
		`millrace_ingest_silent{live_stream_id="s2"} 1`,
	)
	for _, never := range []string{"192.0.2.77", "secret name"} {
		if strings.Contains(text, never) {
			t.Errorf("shows %q", never)
		}
	}
	if !strings.Contains(text, "go_goroutines") || !strings.Contains(text, "process_resident_memory_bytes") {
		t.Error("nothing of the process")
	}
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	m := New("")
	var result error
	h := m.Handlers([]job.Handler{{Kind: "x.y", MaxAttempts: 3, Work: func(context.Context, job.Job) error {
		if result == nil {
			expect(t, scrape(t, m), `millrace_jobs_running{kind="x.y"} 1`)
		}
		return result
	}}, {Kind: "x.panics", Work: func(context.Context, job.Job) error { panic("boo") }}})
	dead := fault.New(fault.Unavailable, "the host refuses connections")
	dead.Remote = true
	for _, err := range []error{
		nil, job.Snooze(time.Second), errors.New("again"), dead, fault.New(fault.Invalid, "never"),
	} {
		result = err
		if got := h[0].Work(t.Context(), job.Job{Attempt: 1, MaxAttempts: 3}); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, err := range []error{
		dead, errors.New("in vain"), fault.Ours(fault.New(fault.Unavailable, "the storage is away")),
	} {
		result = err
		_ = h[0].Work(t.Context(), job.Job{Attempt: 3, MaxAttempts: 3})
	}
	result = fault.New(fault.Invalid, "the service ended each time it tried")
	_ = h[0].Work(t.Context(), job.Job{Attempt: 1, MaxAttempts: 3, Crashes: job.MaxCrashes})
	func() {
		defer func() { _ = recover() }()
		_ = h[1].Work(t.Context(), job.Job{})
	}()
	expect(t, scrape(t, m),
		`millrace_jobs_total{kind="x.y",outcome="done"} 1`, `millrace_jobs_total{kind="x.y",outcome="put_off"} 2`,
		`millrace_jobs_total{kind="x.y",outcome="tried_again"} 2`, `millrace_jobs_total{kind="x.y",outcome="failed"} 2`,
		`millrace_jobs_total{kind="x.y",outcome="refused"} 2`,
		`millrace_jobs_total{kind="x.panics",outcome="panicked"} 1`, `millrace_jobs_running{kind="x.y"} 0`,
	)
}

func TestStore(t *testing.T) {
	t.Parallel()
	m := New("")
	files, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	s := m.Store(files)
	if _, ok := s.(blob.Local); !ok {
		t.Error("a folder's files are no files any more")
	}
	if err = s.Put(t.Context(), "a/b", bytes.NewReader([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	r, err := s.Get(t.Context(), "a/b", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	_, err = s.Stat(t.Context(), "absent")
	if fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	_ = s.Delete(t.Context(), "a/b")
	_ = s.Adopt(t.Context(), "a/c", "/nowhere/at/all")
	expect(t, scrape(t, m),
		`millrace_storage_seconds_count{operation="put",outcome="ok"} 1`,
		`millrace_storage_seconds_count{operation="get",outcome="ok"} 1`,
		`millrace_storage_seconds_count{operation="stat",outcome="absent"} 1`,
		`millrace_storage_seconds_count{operation="delete",outcome="ok"} 1`,
	)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// links is a live service to which some facts are stale.
type links struct{ live.Broadcasts }

func (links) Target(
	_ context.Context, _ id.LiveStream, _ live.Writer, t id.SimulcastTarget, _ live.TargetFact, _ time.Time,
) error {
	if t == "stale" {
		return fault.New(fault.Conflict, "means nothing")
	}
	return nil
}

func TestSimulcast(t *testing.T) {
	t.Parallel()
	m := New("1.2.3")
	b := m.Broadcasts(links{})
	for _, tt := range []struct {
		target id.SimulcastTarget
		fact   live.TargetFact
	}{
		{"one", live.LinkUp},
		{"two", live.LinkUp},
		{"one", live.LinkDown},
		{"three", live.LinkImpossible},
		{"stale", live.LinkDown},
	} {
		_ = b.Target(t.Context(), "s1", live.Writer{Epoch: 1}, tt.target, tt.fact, time.Time{}) // counted or not
	}
	expect(t, scrape(t, m), `millrace_simulcast_links_total{state="broadcasting"} 2`,
		`millrace_simulcast_links_total{state="errored"} 1`,
		`millrace_simulcast_links_total{state="fatal"} 1`)
}
