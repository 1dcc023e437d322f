package broadcast_test

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/media/ingest"
)

func TestPassphrase(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n := w.start("a")
		s := w.stream()
		if got, err := n.Passphrase(w.ctx, s.StreamKey); got != s.SRTPassphrase || len(got) < 10 || len(got) > 64 ||
			err != nil {
			t.Errorf("%d characters, %v", len(got), err)
		}
		if got, err := n.Passphrase(w.ctx, s.StreamKey+"x"); got != "" || !errors.Is(err, ingest.ErrUnknownKey) {
			t.Errorf("unknown key: %v", err)
		}
		w.must(w.streams.Disable(w.ctx, env, s.ID, time.Now())) // which the gate says, to those who know the passphrase
		if got, err := n.Passphrase(w.ctx, s.StreamKey); got != s.SRTPassphrase || err != nil {
			t.Errorf("disabled: %v", err)
		}
		n.end()
	})
}
