package delivery

import (
	"fmt"
	"strings"
	"testing"

	"millrace/internal/control/webhook"
)

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
