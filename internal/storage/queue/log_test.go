package queue

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestLibraryLog(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		log  func(*slog.Logger)
		want string
	}{
		"first attempt": {
			func(l *slog.Logger) { l.Error("leadership.Elector: Error attempting reelection", "attempt", 1) }, "INFO",
		},
		"fourth attempt": {
			func(l *slog.Logger) { l.Error("leadership.Elector: Error attempting reelection", "attempt", 4) }, "WARN",
		},
		"with attributes": {func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").Error("leadership.Elector: Error attempting election", "attempt", 2)
		}, "INFO"},
		"something else": {func(l *slog.Logger) { l.Error("jobExecutor: it failed", "attempt", 1) }, "ERROR"},
	} {
		var b bytes.Buffer
		tt.log(slog.New(libraryLog{slog.NewTextHandler(&b, nil)}))
		if !strings.Contains(b.String(), "level="+tt.want+" ") {
			t.Errorf("%s: %s", name, b.String())
		}
	}
	var b bytes.Buffer
	slog.New(libraryLog{
		slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn}),
	}).Error("leadership.Elector: Error", "attempt", 1)
	if b.Len() > 0 {
		t.Errorf("a logger of warnings has %s", b.String())
	}
}
