package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
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
		"is skipped":      {first: fails, second: skips, suspects: 1, want: "0 passed, 1 failed", code: 1},
		"can't be run":    {first: fails, err: errors.New("no go"), suspects: 1, want: "0 passed, 1 failed", also: "no go", code: 1},
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
			list := r.suspects()
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
	if err := r.read(strings.NewReader(begun + fell + strings.ReplaceAll(begun+fell, `"T"`, `"U"`) + ends)); err != nil {
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
	for _, name := range []string{"TestA/sqlite+folder/x", "TestA/sqlite+folder/y", "TestA/postgres+s3/x", "TestB/x", "TestB"} {
		r.failures = append(r.failures, failure{pkg: "p", test: name, again: true})
	}
	var got []string
	for _, a := range r.suspects() {
		got = append(got, pattern(a.test))
	}
	if want := []string{`^TestA$/^sqlite\+folder$`, `^TestA$/^postgres\+s3$`, `^TestB$`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
