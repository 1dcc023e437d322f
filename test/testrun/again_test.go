package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	begun  = `{"Action":"run","Package":"millrace/test/e2e","Test":"T"}` + "\n"
	why    = `{"Action":"output","Package":"millrace/test/e2e","Test":"T","Output":"    x_test.go:3: late\n"}` + "\n"
	fell   = `{"Action":"fail","Package":"millrace/test/e2e","Test":"T"}` + "\n"
	ends   = `{"Action":"fail","Package":"millrace/test/e2e"}` + "\n"
	fails  = begun + why + fell + ends
	passes = begun + `{"Action":"pass","Package":"millrace/test/e2e","Test":"T"}` + "\n" + good
	skips  = begun + `{"Action":"skip","Package":"millrace/test/e2e","Test":"T"}` + "\n" + good
	good   = `{"Action":"pass","Package":"millrace/test/e2e"}` + "\n"
	panics = `{"Action":"output","Package":"millrace/test/e2e","Output":"panic: x\n"}` + "\n"
	races  = `{"Action":"output","Package":"millrace/test/e2e","Test":"T","Output":"WARNING: DATA RACE\n"}` + "\n"
)

// TestSecondRun: what failed end to end and passes alone is named as flaky, and only that.
func TestSecondRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second string
		err           error
		units         bool
		suspects      int
		want, also    string
		code          int
	}{
		"passes alone": {
			first: fails, second: passes, suspects: 1,
			want: "1 passed, 0 failed", also: "flaky, passed when run again, alone: 1\n  test/e2e T: x_test.go:3: late",
		},
		"fails twice": {
			first: fails, second: fails, suspects: 1,
			want: "0 passed, 1 failed", also: "test/e2e T (again, alone)", code: 1,
		},
		"is skipped": {first: fails, second: skips, suspects: 1, want: "0 passed, 1 failed", code: 1},
		"can't be run": {
			first: fails, err: errors.New("no go"), suspects: 1, want: "0 passed, 1 failed", also: "no go", code: 1,
		},
		"a unit":          {first: fails, units: true, want: "0 passed, 1 failed", code: 1},
		"never ended":     {first: begun + why + ends, want: "0 passed, 1 failed", code: 1},
		"beside a panic":  {first: begun + fell + panics + ends, want: "0 passed, 1 failed", code: 1},
		"beside a race":   {first: begun + races + fell + ends, want: "0 passed, 1 failed", code: 1},
		"a whole package": {first: ends, want: "0 passed, 1 failed", code: 1},
		"passes at once":  {first: passes, want: "1 passed, 0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := newReport(&out)
			r.pace = !tt.units
			if err := r.read(strings.NewReader(tt.first)); err != nil {
				t.Fatal(err)
			}
			list := r.suspects(nil, time.Now())
			if len(list) != tt.suspects {
				t.Fatalf("%d are run again, want %d", len(list), tt.suspects)
			}
			for _, a := range list {
				second := newReport(io.Discard)
				if err := second.read(strings.NewReader(tt.second)); err != nil {
					t.Fatal(err)
				}
				r.second(a, second, tt.err)
			}
			if code := r.close(true); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if got := out.String(); !strings.Contains(got, tt.want) || !strings.Contains(got, tt.also) {
				t.Errorf("%s\nhas no %q or no %q", got, tt.want, tt.also)
			}
		})
	}
}

// TestRunAgainBound: more than the bound are no accident.
func TestRunAgainBound(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := newReport(&out)
	r.pace = true
	if err := r.read(strings.NewReader(begun + fell + strings.ReplaceAll(begun+fell, `"T"`, `"U"`) +
		ends)); err != nil {
		t.Fatal(err)
	}
	options{again: 1}.runAgain(t.Context(), nil, r)
	if r.failed != 2 || len(r.flaky) > 0 || !strings.Contains(out.String(), "none is run again") {
		t.Errorf("%d failed, %d flaky\n%s", r.failed, len(r.flaky), out.String())
	}
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	r := newReport(io.Discard)
	for _, name := range []string{
		"TestA/sqlite+folder/x", "TestA/sqlite+folder/y", "TestA/postgres+s3/x", "TestB/x", "TestB",
	} {
		r.failures = append(r.failures, failure{pkg: "p", test: name, again: true})
	}
	var got []string
	for _, a := range r.suspects(nil, time.Now()) {
		got = append(got, pattern(a.test))
	}
	if want := []string{`^TestA$/^sqlite\+folder$`, `^TestA$/^postgres\+s3$`, `^TestB$`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKnownFlaky: a test that has been known to be flaky for two weeks gets no second run; others still do.
func TestKnownFlaky(t *testing.T) {
	t.Parallel()
	flaky := []known{{"test/e2e", "TestA/x", "2026-03-01", "a reason"}}
	for name, tt := range map[string]struct {
		test, day string
		suspects  int
		said      string
	}{
		"is young":          {"TestA/x", "2026-03-15", 1, "run again until 2026-03-15: a reason"},
		"is old":            {"TestA/x", "2026-03-16", 0, "no longer run again: a reason"},
		"below it":          {"TestA/x/y", "2026-03-16", 0, "TestA/x, found on 2026-03-01"},
		"around it":         {"TestA", "2026-03-16", 1, ""},
		"beside it":         {"TestA/xy", "2026-03-16", 1, ""},
		"of another folder": {"TestA/x", "2026-03-16", 1, ""},
	} {
		now, err := time.Parse(time.DateOnly, tt.day)
		if err != nil {
			t.Fatal(err)
		}
		pkg := "millrace/test/e2e"
		if name == "of another folder" {
			pkg = "millrace/test/browser"
		}
		r := newReport(io.Discard)
		r.failures = []failure{{pkg: pkg, test: tt.test, again: true}}
		if n := len(r.suspects(flaky, now)); n != tt.suspects {
			t.Errorf("%s: %d are run again, want %d", name, n, tt.suspects)
		}
		var out strings.Builder
		if printKnown(&out, flaky, now); !strings.Contains(out.String(), tt.said) {
			t.Errorf("%s: %q is not said:\n%s", name, tt.said, out.String())
		}
	}
}

// TestKnownFlakyNamesTests: an entry names a test that is there, a day and a cause.
func TestKnownFlakyNamesTests(t *testing.T) {
	t.Parallel()
	for _, k := range knownFlaky {
		if k.until().IsZero() || k.cause == "" || !isSlow("millrace/"+k.pkg) {
			t.Errorf("%+v has no day or no cause, or its package is one of units, which are never run again", k)
		}
		files, err := filepath.Glob(filepath.Join("../..", k.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		function, _, _ := strings.Cut(k.test, "/")
		if !slices.ContainsFunc(files, func(name string) bool {
			source, err := os.ReadFile(name)
			return err == nil && strings.Contains(string(source), "\nfunc "+function+"(t *testing.T)")
		}) {
			t.Errorf("%s has no %s", k.pkg, function)
		}
	}
}
