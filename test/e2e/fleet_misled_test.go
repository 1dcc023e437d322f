package e2e

import (
	"net/http"
	"testing"

	"millrace/test/rig"
)

// TestFleetMisled: while the URL that a node advertises leads nowhere, its streams play at it alone, and are 412 at
// others; they play there from when it leads to it. The encoder's connection stays.
func TestFleetMisled(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	a := rig.Start(t, rig.Options{Pair: rig.Scaled, Args: []string{"--internal-addr", "127.0.0.1:0"}})
	nowhere := free(t)
	b := rig.Start(t, rig.Options{
		Beside: a, Pair: rig.Scaled,
		Args: []string{"--internal-addr", "127.0.0.1:0", "--advertise-url", "http://" + nowhere},
	})
	l := b.CreateLive(t, "low", nil)
	id := l.Text("playback_ids.0.id")
	b.Publish(t, l.Text("stream_key"), small())
	b.AwaitPlayable(t, b.PlayURL(id), patience)
	if code, _, body := a.Get(t, a.PlayURL(id)); code != http.StatusPreconditionFailed {
		t.Errorf("at a node that can't reach the encoder's: %d: %.300s", code, body)
	}
	relay(t, nowhere, internalAddress(t, b))
	a.AwaitPlayable(t, a.PlayURL(id), patience)
	if got := b.Live(t, l.Text("id")); away(got) {
		t.Errorf("the encoder was disconnected: %v", got)
	}
}
