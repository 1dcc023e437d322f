package whip

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/pion/logging"

	"millrace/internal/media/ingest"
	"millrace/internal/socket"
)

// limitedListener closes connections over a limit: pion's TCP side takes all of them.
type limitedListener struct {
	net.Listener
	limit ingest.Limiter
}

func newLimitedListener(ln net.Listener, total, perIP int) *limitedListener {
	return &limitedListener{Listener: ln, limit: ingest.Limiter{Max: 2 * total, PerOrigin: 2 * perIP}}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if counted, ok := c.(*socket.Counted); ok {
			counted.Busy() // pion does not tell whether it is of use
		}
		remote := addrPort(c.RemoteAddr())
		if l.limit.Acquire(remote) {
			return &limitedConn{Conn: c, release: sync.OnceFunc(func() { l.limit.Release(remote) })}, nil
		}
		_ = c.Close()
	}
}

// limitedConn is a connection that counts until it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (l *limitedConn) Close() error {
	l.release()
	return l.Conn.Close()
}

// loggers make pion's loggers: what it warns of is about one peer alone, and a line for each packet would be as many as
// strangers send.
type loggers struct{ log *ingest.SparseLog }

// NewLogger implements logging.LoggerFactory.
func (l loggers) NewLogger(scope string) logging.LeveledLogger {
	return &leveled{log: l.log, scope: scope}
}

type leveled struct {
	log   *ingest.SparseLog
	scope string
}

func (*leveled) Trace(string)          {}
func (*leveled) Tracef(string, ...any) {}
func (*leveled) Debug(string)          {}
func (*leveled) Debugf(string, ...any) {}
func (*leveled) Info(string)           {}
func (*leveled) Infof(string, ...any)  {}

func (l *leveled) Warn(msg string)                { l.say("%s", msg) }
func (l *leveled) Warnf(format string, a ...any)  { l.say(format, a...) }
func (l *leveled) Error(msg string)               { l.say("%s", msg) }
func (l *leveled) Errorf(format string, a ...any) { l.say(format, a...) }

func (l *leveled) say(format string, a ...any) {
	if !l.log.Logger.Enabled(context.Background(), slog.LevelDebug) { //nolint:forbidigo // pion has none to pass
		return
	}
	message := clip(fmt.Sprintf(format, a...)) // now: what it is about may change
	l.log.Log(l.scope+" "+format, func(log *slog.Logger) {
		log.Debug("connection", "protocol", "whip", "scope", l.scope, "message", message)
	})
}
