// Package e2e holds the tests of the whole: the real binary with real encoders, players and browsers, on both pairs of
// database and storage. It knows the service from outside, but for the events, which are read from the database until
// something tells them.
package e2e

import (
	"context"
	"database/sql"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// patience is for what takes a second or two on a machine that has nothing else to do. It is long, for the ones that
// have.
const patience = 3 * time.Minute

// TestMain lets more tests run side by side than there are CPUs: most of their time is real time passing by. With three
// for each, browsers and encoders that begin at once kept others from the processors for seconds.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU())); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// small is a clip that costs the machine little.
func small() rig.Clip { return rig.Clip{Size: "320x180", Kbit: 300, GOP: 1} }

// check watches a presentation and fails the test for every departure from the rules; those named must have been
// applied.
func check(t *testing.T, what string, o hlscheck.Options, must ...string) *hlscheck.Report {
	t.Helper()
	return checkBut(t, what, nil, o, must...)
}

// checkBut is check, but departures from some rules are left out.
func checkBut(t *testing.T, what string, but []string, o hlscheck.Options, must ...string) *hlscheck.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), o.Follow+patience)
	defer cancel()
	r, err := hlscheck.Check(ctx, o)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return r
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f hlscheck.Finding) bool { return slices.Contains(but, f.Rule) })
	if len(r.Findings) > 0 {
		t.Errorf("%s:\n%s", what, r)
	}
	applied(t, what, r, must)
	return r
}

// applied fails the test for a rule that a report never had occasion to apply.
func applied(t *testing.T, what string, r *hlscheck.Report, must []string) {
	t.Helper()
	if u := r.Unchecked(must...); len(u) > 0 {
		t.Errorf("%s: rules never applied: %v\n%s", what, u, r)
	}
}

// events lists the types of the events of a resource, oldest first.
func events(t *testing.T, s *rig.Server, object string) []string {
	t.Helper()
	driver, source := "sqlite", "file:"+filepath.Join(s.Dir, "millrace.db")+"?mode=ro&_pragma=busy_timeout(10000)"
	if u := s.Setting("MILLRACE_DATABASE_URL"); u != "" {
		driver, source = "pgx", u
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatalf("read events: %v", err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(t.Context(), "SELECT type FROM events WHERE object_id = $1 ORDER BY at, position",
		object)
	if err != nil {
		t.Fatalf("read events: %v", err)
	}
	defer func() { _ = rows.Close() }()
	var types []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatalf("read events: %v", err)
		}
		types = append(types, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("read events: %v", err)
	}
	return types
}

// awaitEvents waits until a resource has these events among others, in this order: a job may tell of the last one.
func awaitEvents(t *testing.T, s *rig.Server, object string, want ...string) {
	t.Helper()
	for end := time.Now().Add(patience); ; rig.Pause(100 * time.Millisecond) {
		got := events(t, s, object)
		if inOrder(got, want) {
			return
		}
		if time.Now().After(end) {
			t.Errorf("events: %v, want %v among them", got, want)
			return
		}
	}
}

// inOrder reports whether want is there in this order, other things in between or not.
func inOrder(have, want []string) bool {
	for _, h := range have {
		if len(want) > 0 && h == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// host is the authority of a URL.
func host(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// cleanLog fails the test for secrets and warnings in the log.
func cleanLog(t *testing.T, s *rig.Server, keys ...string) {
	t.Helper()
	noSecrets(t, s, keys...)
	for _, a := range alarms(s) {
		t.Errorf("log: %s", a)
	}
}

// noSecrets fails the test for secrets in the log.
func noSecrets(t *testing.T, s *rig.Server, more ...string) {
	t.Helper()
	log := s.Log()
	for _, secret := range append(more, s.Secrets()...) {
		if strings.Contains(log, secret) {
			t.Errorf("the log shows a secret that begins with %.4s", secret)
		}
	}
}

// alarms lists log lines of level WARN and ERROR. Warnings about what an encoder sends are none: a busy machine's
// encoder falls behind.
func alarms(s *rig.Server) []string {
	var out []string
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, `"msg":"ingest warning"`) {
			continue
		}
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) ||
			strings.Contains(line, "panic") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}
