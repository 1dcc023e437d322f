package rtmp

import (
	"bytes"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// TestRefusalsAreLoggedSparsely has strangers try keys many times a second: the log has a line a second, with the
// number of those that it does not have.
func TestRefusalsAreLoggedSparsely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &ingesttest.Log{}
		s := New(Options{Logger: log.Logger(), Gate: ingesttest.Admit("another", ingesttest.NewRecorder())})
		const refused = 300
		for range refused {
			ours, theirs := net.Pipe()
			go func() { _, _ = theirs.Write(opened()) }()
			go func() { // hangs up when it has read why it is refused
				defer func() { _ = theirs.Close() }()
				var said []byte
				for b := make([]byte, 4096); !bytes.Contains(said, []byte("BadName")); {
					n, err := theirs.Read(b)
					if err != nil {
						return
					}
					said = append(said, b[:n]...)
				}
			}()
			s.serve(context.WithoutCancel(t.Context()), ours, remoteAddr(ours), nil)
			time.Sleep(10 * time.Millisecond)
		}
		s.refusals.Flush()
		if lines, told := log.Refusals(ingest.ErrUnknownKey.Error()); lines != 4 || told != refused {
			t.Errorf("%d lines tell of %d refusals, want 4 and %d:\n%s", lines, told, refused, log)
		}
	})
}
