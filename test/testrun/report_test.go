package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		events string
		strict bool
		want   string // last line
		also   string // somewhere in the output
		code   int
	}{
		"leaves are counted": {
			events: `{"Action":"run","Package":"millrace/a","Test":"T"}
{"Action":"run","Package":"millrace/a","Test":"T/x"}
{"Action":"pass","Package":"millrace/a","Test":"T/x"}
{"Action":"run","Package":"millrace/a","Test":"T/y"}
{"Action":"pass","Package":"millrace/a","Test":"T/y"}
{"Action":"pass","Package":"millrace/a","Test":"T"}
{"Action":"pass","Package":"millrace/a"}`,
			want: "2 passed, 0 failed, 0 skipped", also: "ok    a: 2 passed",
		},
		"a failing leaf fails its parents once": {
			events: `{"Action":"run","Package":"p","Test":"T"}
{"Action":"run","Package":"p","Test":"T/x"}
{"Action":"output","Package":"p","Test":"T/x","Output":"    x_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"T/x"}
{"Action":"fail","Package":"p","Test":"T"}
{"Action":"fail","Package":"p"}`,
			want: "0 passed, 1 failed, 0 skipped", also: "got 1, want 2", code: 1,
		},
		"why is told at once": {
			events: `{"Action":"run","Package":"p","Test":"T"}
{"Action":"output","Package":"p","Test":"T","Output":"=== RUN   T\n"}
{"Action":"output","Package":"p","Test":"T","Output":"    x_test.go:1: waits for its turn\n"}
{"Action":"output","Package":"p","Test":"T","Output":"    x_test.go:1: waited 2.1s for its turn\n"}
{"Action":"output","Package":"p","Test":"T","Output":"    x_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"T"}
{"Action":"fail","Package":"p"}`,
			want: "0 passed, 1 failed, 0 skipped", also: "FAIL  p T\n      x_test.go:3: got 1, want 2\nFAIL  p: ",
			code: 1,
		},
		"so is where the race was": {
			events: `{"Action":"run","Package":"p","Test":"T"}
{"Action":"output","Package":"p","Test":"T","Output":"WARNING: DATA RACE\n"}
{"Action":"output","Package":"p","Test":"T","Output":"==================\n"}
{"Action":"fail","Package":"p","Test":"T"}
{"Action":"fail","Package":"p"}`,
			want: "0 passed, 1 failed, 0 skipped", also: "FAIL  p T\n      WARNING: DATA RACE\n", code: 1,
		},
		"a parent that fails by itself": {
			events: `{"Action":"run","Package":"p","Test":"T"}
{"Action":"run","Package":"p","Test":"T/x"}
{"Action":"pass","Package":"p","Test":"T/x"}
{"Action":"fail","Package":"p","Test":"T"}
{"Action":"fail","Package":"p"}`,
			want: "1 passed, 1 failed, 0 skipped", code: 1,
		},
		"skips are named": {
			events: `{"Action":"run","Package":"p","Test":"T"}
{"Action":"output","Package":"p","Test":"T","Output":"    x_test.go:3: no ffmpeg\n"}
{"Action":"skip","Package":"p","Test":"T"}
{"Action":"run","Package":"p","Test":"U"}
{"Action":"pass","Package":"p","Test":"U"}
{"Action":"pass","Package":"p"}`,
			want: "1 passed, 0 failed, 1 skipped", also: "p T: no ffmpeg",
		},
		"skips fail a strict run": {
			events: `{"Action":"run","Package":"p","Test":"T"}
{"Action":"skip","Package":"p","Test":"T"}
{"Action":"run","Package":"p","Test":"U"}
{"Action":"pass","Package":"p","Test":"U"}
{"Action":"pass","Package":"p"}`,
			strict: true, want: "1 passed, 0 failed, 1 skipped", also: "nothing may be skipped", code: 1,
		},
		"a build that fails": {
			events: `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1: undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			want: "0 passed, 1 failed, 0 skipped", also: "undefined: x", code: 1,
		},
		"a test that never ends": {
			events: `{"Action":"run","Package":"p","Test":"T"}
{"Action":"output","Package":"p","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"p"}`,
			want: "0 passed, 1 failed, 0 skipped", also: "test timed out", code: 1,
		},
		"a panic while a test waits for its turn": {
			events: `{"Action":"run","Package":"p","Test":"Waits"}
{"Action":"pause","Package":"p","Test":"Waits"}
{"Action":"run","Package":"p","Test":"Runs"}
{"Action":"pause","Package":"p","Test":"Runs"}
{"Action":"cont","Package":"p","Test":"Runs"}
{"Action":"run","Package":"p","Test":"IsNotNext"}
{"Action":"pause","Package":"p","Test":"IsNotNext"}
{"Action":"cont","Package":"p","Test":"IsNotNext"}
{"Action":"output","Package":"p","Test":"IsNotNext","Output":"    x_test.go:3: waits for its turn\n"}
{"Action":"output","Package":"p","Test":"Runs","Output":"    x_test.go:3: waits for its turn\n"}
{"Action":"output","Package":"p","Test":"Runs","Output":"    x_test.go:3: waited 0.1s for its turn\n"}
{"Action":"output","Package":"p","Test":"Runs","Output":"panic: nil map\n"}
{"Action":"fail","Package":"p"}`,
			want: "0 passed, 1 failed, 0 skipped", also: "p Runs", code: 1,
		},
		"a turn that was waited for": {
			events: `{"Action":"run","Package":"p","Test":"T"}
{"Action":"output","Package":"p","Test":"T","Output":"    x_test.go:3: waited 31.5s for its turn\n"}
{"Action":"pass","Package":"p","Test":"T","Elapsed":52.5}
{"Action":"pass","Package":"p","Elapsed":60}`,
			want: "1 passed, 0 failed, 0 skipped", also: "  ok  p T (21s)",
		},
		"a data race in the middle of a test that passes": {
			events: `{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"A","Output":"==================\n"}
{"Action":"output","Package":"p","Test":"A","Output":"WARNING: DATA RACE\n"}
{"Action":"output","Package":"p","Test":"A","Output":"Write at 0x00c000012345 by goroutine 7:\n"}
{"Action":"output","Package":"p","Test":"A","Output":"==================\n"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Test":"B"}
{"Action":"fail","Package":"p"}`,
			want: "1 passed, 1 failed, 0 skipped", also: "Write at 0x00c000012345", code: 1,
		},
		"a stream cut off": {
			events: `{"Action":"run","Package":"p","Test":"T"}`,
			want:   "0 passed, 1 failed, 0 skipped", also: "(never ended)", code: 1,
		},
		"nothing ran": {
			events: `{"Action":"skip","Package":"p"}`,
			want:   "0 passed, 0 failed, 0 skipped", also: "no test ran", code: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(tt.events)); err != nil {
				t.Fatal(err)
			}
			code := r.close(tt.strict)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if got := lines[len(lines)-1]; got != tt.want {
				t.Errorf("closing line %q, want %q", got, tt.want)
			}
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(out.String(), tt.also) {
				t.Errorf("output lacks %q:\n%s", tt.also, out.String())
			}
		})
	}
}
