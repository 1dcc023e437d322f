package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
)

// TestDurationsInLogs: a duration has its unit, in both formats.
func TestDurationsInLogs(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"json": `"duration":"1m30.5s"`, "text": "duration=1m30.5s"} {
		var out bytes.Buffer
		logger(config.Config{LogFormat: format, LogLevel: slog.LevelInfo}, &out).Info("encoder disconnected",
			"duration", 90500*time.Millisecond)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
