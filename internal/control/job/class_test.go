package job

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPlaces has the places of each class on nodes of different sizes.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		queue Queue
		want  map[int]int // by workers
	}{
		{Prompt, map[int]int{1: 4, 2: 4, 8: 16, 1024: 2048}},
		{Clips, map[int]int{1: 2, 2: 2, 8: 8, 1024: 1024}},
		{Fetching, map[int]int{1: 16, 2: 32, 8: 128, 16: 256, 32: 256, 1024: 1024}},
		{Background, map[int]int{1: 1, 2: 2, 8: 8, 1024: 1024}},
		{Speech, map[int]int{1: 4, 2: 8, 8: 32, 32: 64, 1024: 1024}},
		{Cleanup, map[int]int{1: 2, 2: 2, 8: 8, 1024: 1024}},
	} {
		for _, c := range AllClasses() {
			for workers, want := range tt.want {
				if got := c.Places(workers); c.Queue == tt.queue && got != want {
					t.Errorf("%s has %d places on %d workers, want %d", c.Queue, got, workers, want)
				}
			}
		}
	}
}

// TestClassesAreApart says that no queue has both, what somebody waits for and what nobody does, and that each job
// stands in one of its own kind.
func TestClassesAreApart(t *testing.T) {
	t.Parallel()
	all, awaited := AllClasses(), map[string]bool{}
	queues := map[Queue]bool{}
	for _, c := range all {
		if queues[c.Queue] {
			t.Errorf("queue %s is there twice", c.Queue)
		}
		queues[c.Queue] = true
		for _, kind := range c.Kinds {
			if before, known := awaited[kind]; known && before != c.Awaited {
				t.Errorf("%s stands in a queue that somebody waits for, and in one that nobody does", kind)
			}
			awaited[kind] = c.Awaited
			if got := all.Proper(kind, c.Queue); got != c.Queue {
				t.Errorf("%s in %s belongs into %s", kind, c.Queue, got)
			}
		}
	}
	for _, tt := range []struct {
		kind     string
		in, want Queue
	}{
		{"asset.static", Prompt, Background},
		{"asset.ingest", Prompt, Clips},
		{"track.speech", Fetching, Speech},
		{"media.purge", Prompt, Cleanup},
	} {
		if got := all.Proper(tt.kind, tt.in); got != tt.want {
			t.Errorf("%s of an older version, in %s, belongs into %s, want %s", tt.kind, tt.in, got, tt.want)
		}
	}
	if j := New("asset.static", "a", nil); j.Queue != Background {
		t.Errorf("a new download stands in %q", j.Queue)
	}
}

// TestClassesAreWrittenDown compares the table for operators.
func TestClassesAreWrittenDown(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range AllClasses() {
		waits := "nobody"
		if c.Awaited {
			waits = "viewers, clients"
		}
		row := fmt.Sprintf("| `%s` | %s | `%s` | %d, %d, %d |",
			c.Queue, waits, strings.Join(c.Kinds, "`, `"), c.Places(1), c.Places(2), c.Places(16))
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/monitoring.md has no row that begins with\n%s", row)
		}
	}
}
