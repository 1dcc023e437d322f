package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTargetsAreFound(t *testing.T) {
	t.Parallel()
	all, err := packages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := targets(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][2]string{
		{"millrace/internal/media/ingest/rtmp", "FuzzConnection"},
		{"millrace/internal/media/rtmpwire", "FuzzAMF0"},
		{"millrace/internal/media/container/mpegts", "FuzzDemuxer"},
		{"millrace/internal/media/codec/h264", "FuzzInfo"},
		{"millrace/internal/web/express", "FuzzConversation"},
	} {
		if !slices.ContainsFunc(list, func(x target) bool { return x.pkg == want[0] && x.name == want[1] }) {
			t.Errorf("%s of %s is not among %v", want[1], want[0], list)
		}
	}
	if slices.ContainsFunc(list, func(x target) bool { return strings.Contains(x.pkg, "sketch") }) {
		t.Error("a package that faces no network is among them")
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{
		1: 20 * time.Second, 18: 20 * time.Second, 36: 10 * time.Second, 500: 5 * time.Second,
	} {
		if got := share(20*time.Second, n); got != want {
			t.Errorf("%d targets: %v each, want %v", n, got, want)
		}
	}
	if got := share(2*time.Second, 500); got != 2*time.Second {
		t.Errorf("asked for 2s: %v", got)
	}
}

func TestFuzzedCountsAsATest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "testdata", "fuzz", "FuzzX"), 0o700); err != nil {
		t.Fatal(err)
	}
	found := filepath.Join("testdata", "fuzz", "FuzzX", "0123")
	if err := os.WriteFile(filepath.Join(dir, found), []byte("go test fuzz v1\n[]byte(\"boom\")\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	x := target{"millrace/internal/media/ingest/x", dir, "FuzzX"}
	crash := "--- FAIL: FuzzX (1.00s)\n    panic: boom\n    Failing input written to " + found + "\n"
	var out strings.Builder
	r := newReport(&out)
	r.fuzzed(fuzzed{target: x, took: time.Minute, output: "fuzz: elapsed: 1m0s, execs: 12345 (200/sec)\nPASS\n"})
	r.fuzzed(fuzzed{target: x, took: time.Second, output: crash + x.input(crash), failed: true})
	if code := r.close(true); code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"1 passed, 1 failed, 0 skipped", "fuzzed with 12345 inputs", `[]byte("boom")`,
		"internal/media/ingest/x/" + found,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestJustEnded(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]bool{
		"--- FAIL: FuzzX (60.05s)\n    context deadline exceeded\nFAIL\n": true,
		"--- FAIL: FuzzX (9.05s)\n    x_test.go:3: context deadline exceeded\n    Failing input written to " +
			"testdata/fuzz/x\n": false,
		"panic: boom\ncontext deadline exceeded": false,
		"--- FAIL: FuzzX\n    x_test.go:1: bad":  false,
	} {
		if got := justEnded(output); got != want {
			t.Errorf("%q: %v", output, got)
		}
	}
}
