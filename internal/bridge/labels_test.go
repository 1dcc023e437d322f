package bridge_test

import (
	"log/slog"
	"strings"
	"testing"

	"millrace/internal/media/ingest"
)

// TestLabelsOfAPublication: what a protocol logs about an encoder names the live stream.
func TestLabelsOfAPublication(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		s := w.stream()
		e := w.start("a").publish(s.StreamKey)
		var out strings.Builder
		ingest.Logger(slog.New(slog.NewTextHandler(&out, nil)), e.sink).Info("encoder connected")
		if want := "live_stream_id=" + string(s.ID) + " asset_id="; !strings.Contains(out.String(), want) {
			t.Errorf("%s, want %s", out.String(), want)
		}
		e.stop()
	})
}
