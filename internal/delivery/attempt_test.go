package delivery

import (
	"fmt"
	"strings"
	"testing"

	"millrace/internal/control/webhook"
)

// TestKept: of a response the first KiB is kept, as text that can be stored.
func TestKept(t *testing.T) {
	t.Parallel()
	x := strings.Repeat("x", 1024)
	for name, tt := range map[string]struct{ response, want string }{
		"none":                       {"", ""},
		"a KiB":                      {x, x},
		"more":                       {x + "y", x},
		"cut in a character":         {x[1:] + "ü", x[1:] + "\ufffd"},
		"what is no text":            {"a\xffb", "a\ufffdb"},
		"what PostgreSQL can't have": {"a\x00b", "a\ufffdb"},
	} {
		if got := kept([]byte(tt.response)); got != tt.want {
			t.Errorf("%s: kept %d bytes: %q", name, len(got), got)
		}
	}
}

// TestKeptHeaders: of a response with many or large headers, or such as can't be stored, a bounded part is kept.
func TestKeptHeaders(t *testing.T) {
	t.Parallel()
	many := map[string][]string{}
	for i := range 100 {
		many[fmt.Sprintf("X-%02d", i)] = []string{"v"}
	}
	if got := keptHeaders(many); len(got) != webhook.KeptHeaders || got["X-00"] != "v" || got["X-31"] != "v" {
		t.Errorf("of many: %v", got)
	}
	large := strings.Repeat("x", webhook.KeptHeaderBytes)
	got := keptHeaders(map[string][]string{
		"A": {large}, "B": {large[:1000]}, "C": {large[:1046]}, "D": {"1", "2"},
		"E": {"a\x00b\xff"},
	})
	size := 0
	for name, value := range got {
		size += len(name) + len(value)
	}
	if len(got) != 2 || got["A"] != "" || got["C"] != large[:1046] || got["E"] != "" || size > webhook.KeptHeaderBytes {
		t.Errorf("of large ones: %d of %d bytes: %v", len(got), size, got)
	}
	if got = keptHeaders(map[string][]string{"D": {"1", "2"}, "E": {"a\x00b\xff"}}); got["D"] != "1, 2" ||
		got["E"] != "a\ufffdb\ufffd" {
		t.Errorf("got %q", got)
	}
	if got = keptHeaders(nil); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}
