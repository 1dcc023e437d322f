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

// door is a listener that hangs up on who would be one too many: pion's TCP side takes everybody.
type door struct {
	net.Listener
	crowd ingest.Crowd
}

func newDoor(ln net.Listener, total, perIP int) *door {
	return &door{Listener: ln, crowd: ingest.Crowd{Max: 2 * total, PerOrigin: 2 * perIP}}
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if counted, ok := c.(*socket.Counted); ok {
			counted.Busy() // pion does not tell whether it is of use
		}
		remote := addrPort(c.RemoteAddr())
		if d.crowd.Enter(remote) {
			return &guest{Conn: c, leave: sync.OnceFunc(func() { d.crowd.Leave(remote) })}, nil
		}
		_ = c.Close()
	}
}

// guest is a connection that counts until it is closed.
type guest struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.leave()
	return g.Conn.Close()
}

// loggers make pion's loggers: what it warns of is about one peer and tells nobody else anything.
type loggers struct{ log *slog.Logger }

// NewLogger implements logging.LoggerFactory.
func (l loggers) NewLogger(scope string) logging.LeveledLogger {
	return &leveled{log: l.log.With("protocol", "whip", "scope", scope)}
}

type leveled struct{ log *slog.Logger }

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
	if l.log.Enabled(context.Background(), slog.LevelDebug) { //nolint:forbidigo // pion has none to pass
		l.log.Debug("connection", "message", clip(fmt.Sprintf(format, a...)))
	}
}
