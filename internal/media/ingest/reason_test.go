package ingest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"syscall"
	"testing"

	"millrace/internal/media/ingest"
)

// TestReason: whatever ends a publication, its owner reads a sentence, and nothing of Go's or of a library's.
func TestReason(t *testing.T) {
	t.Parallel()
	const lost, odd = "the connection was lost", "the connection failed"
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"encoder ended":    {fmt.Errorf("read chunk header: %w", ingest.ErrEncoderEnded), "encoder ended the stream"},
		"silent":           {fmt.Errorf("%w: no bytes for 30s", ingest.ErrSilent), "encoder sent nothing for too long"},
		"deadline":         {fmt.Errorf("read chunk: %w", os.ErrDeadlineExceeded), "encoder sent nothing for too long"},
		"end of file":      {fmt.Errorf("read chunk header: %w", io.EOF), lost},
		"in the middle":    {fmt.Errorf("read chunk: %w", io.ErrUnexpectedEOF), lost},
		"reset":            {fmt.Errorf("read chunk: %w", reset), lost},
		"closed":           {fmt.Errorf("accept: %w", net.ErrClosed), lost},
		"of a library":     {errors.New("srt: 0x7f: dial tcp 10.0.0.1:1: connect: nonsense"), odd},
		"of media":         {ingest.Unsupported("codec vp6 can't be recorded"), "codec vp6 can't be recorded"},
		"of a protocol":    {fmt.Errorf("serve: %w", ingest.Ended("wrong passphrase")), "wrong passphrase"},
		"stopped by owner": {ingest.ErrEnded, "stream was ended by its owner"},
	} {
		got := ingest.Reason(tt.err)
		if !regexp.MustCompile("^" + regexp.QuoteMeta(tt.want)).MatchString(got) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if regexp.MustCompile(`EOF|dial|tcp|0x|chunk|[a-z]+: [a-z]+: `).MatchString(got) {
			t.Errorf("%s: %q is not for people", name, got)
		}
	}
}
