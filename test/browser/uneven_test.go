package browser_test

import (
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestPlayersAtAVariableRate plays pictures of which nobody knows how long they last when their part is published: live
// without a stall, and to the end when the stream is over. No player has a hole, or leaves a picture out.
func TestPlayersAtAVariableRate(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	b := browser.Start(t)
	s := newStream(t, c[0], 20*time.Second, 0, func(s *stream) { s.uneven = true })
	p := players(t, b, s)
	for _, x := range await(t, p, "play 10 s", func(x player) bool { return x.Played >= 10 && x.AudioBytes > 0 }) {
		t.Logf("%+v", x)
		x.unharmed(t, p)
		x.keepsUp(t)
	}
	p.Close(t)
	s.end()
	if err := s.out.Close(nil); err != nil {
		t.Fatal(err)
	}
	s.writer.Stop()
	s.edge.Close()
	p = players(t, b, s)
	for _, x := range await(t, p, "play 10 s of what is over", func(x player) bool { return x.Played >= 10 }) {
		t.Logf("%+v", x)
		x.unharmed(t, p)
		x.keepsUp(t)
	}
	p.Close(t)
}

// keepsUp wants a player to have shown nearly all pictures of what it has played.
func (pl player) keepsUp(t *testing.T) {
	t.Helper()
	if want := int(pl.Played * 30 * 0.9); pl.Frames < want {
		t.Errorf("%s has decoded %d pictures in %.1f s", pl.Name, pl.Frames, pl.Played)
	}
}
