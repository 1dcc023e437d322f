package relay

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bluenviron/gortmplib/pkg/amf0"

	"millrace/internal/media/frame"
	"millrace/internal/media/rtmpwire"
)

const (
	handshakeSize = 1536 // bytes of C1, C2, S1 and S2, RTMP 1.0 section 5.2
	sendChunkSize = 65536
	sendBuffer    = 256 << 10 // of the kernel: a larger one hides for a long time that nobody reads
	maxCommands   = 64        // messages of a destination before it has admitted us
	goodbyeTime   = time.Second

	chunkControl, chunkCommand, chunkAudio, chunkVideo = 2, 3, 4, 6
)

var errRefused = errors.New("the destination refuses the stream")

// rtmpLink publishes to an RTMP or RTMPS server.
type rtmpLink struct {
	nc     net.Conn
	addr   address
	chunks *rtmpwire.Reader
	br     *bufio.Reader
	stream uint32

	configs [2]*frame.Config
	untold  [2]bool // of configs

	mu  sync.Mutex // writers: the target's goroutine and answers to pings
	buf []byte

	once  sync.Once
	ended chan struct{} // the reader's
	why   error         // before ended is closed
}

// dialRTMP connects and asks to publish. The context bounds all of it.
func dialRTMP(ctx context.Context, t *target, configs []frame.Config) (link, error) {
	for _, c := range configs {
		if err := flvCarries(c); err != nil {
			return nil, err
		}
	}
	nc, err := t.group.opt.Dial.DialContext(ctx, "tcp", t.addr.hostPort())
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if b, ok := nc.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = b.SetWriteBuffer(sendBuffer) // where it can't be set a dead destination is noticed later
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	conn := nc
	if t.addr.scheme == "rtmps" {
		secure := tls.Client(nc, &tls.Config{ServerName: t.addr.host, RootCAs: t.group.opt.Roots, MinVersion: tls.VersionTLS12})
		if err = secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("shake hands over TLS: %w", err), nc.Close())
		}
		conn = secure
	}
	l := &rtmpLink{nc: conn, addr: t.addr, br: bufio.NewReaderSize(conn, 4<<10), ended: make(chan struct{})}
	l.chunks = rtmpwire.NewReader(l.br)
	if err = l.negotiate(enhanced(configs)); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("the destination did not admit the stream within %v", openTime)
		}
		return nil, errors.Join(err, conn.Close())
	}
	go l.listen()
	return l, nil
}

// negotiate leads from the handshake to the publish command, sections 5.2 and 7.2.
func (l *rtmpLink) negotiate(enhanced bool) error {
	if err := l.handshake(); err != nil {
		return err
	}
	connect := amf0.Object{
		{Key: "app", Value: l.addr.app},
		{Key: "type", Value: "nonprivate"},
		{Key: "flashVer", Value: "FMLE/3.0 (compatible; millrace)"},
		{Key: "tcUrl", Value: l.addr.tcURL},
	}
	if enhanced { // a server that knows none of it has no use for the rest of the stream either
		connect = append(connect, amf0.ObjectEntry{Key: "fourCcList", Value: fourCCs()})
	}
	size := rtmpwire.Out{ChunkStream: chunkControl, Kind: rtmpwire.TypeSetChunkSize, Body: binary.BigEndian.AppendUint32(nil, sendChunkSize)}
	if err := l.send(size, command(0, "connect", 1, connect)); err != nil {
		return err
	}
	if _, err := l.result(1); err != nil {
		return fmt.Errorf("connect to application: %w", err)
	}
	name := l.addr.name
	if err := l.send(command(0, "releaseStream", 2, nil, name), command(0, "FCPublish", 3, nil, name), command(0, "createStream", 4, nil)); err != nil {
		return err
	}
	made, err := l.result(4)
	if err != nil {
		return fmt.Errorf("create stream: %w", err)
	}
	id, _ := made.(float64)
	if id < 1 || id >= 1<<32 {
		return fmt.Errorf("%w: it gives no message stream", errRefused)
	}
	l.stream = uint32(id)
	if err := l.send(command(l.stream, "publish", 5, nil, name, "live")); err != nil {
		return err
	}
	return l.admitted()
}

func (l *rtmpLink) handshake() error {
	hello := make([]byte, 1+handshakeSize) // C0, C1
	hello[0] = 3
	_, _ = rand.Read(hello[9:]) // never fails
	if err := l.raw(hello); err != nil {
		return fmt.Errorf("write C0 and C1: %w", err)
	}
	answer := make([]byte, 1+2*handshakeSize) // S0, S1, S2
	if err := rtmpwire.ReadFull(l.br, answer); err != nil {
		return fmt.Errorf("read S0 to S2: %w", err)
	}
	if answer[0] != 3 {
		return errors.New("the destination does not speak RTMP")
	}
	if err := l.raw(answer[1 : 1+handshakeSize]); err != nil {
		return fmt.Errorf("write C2: %w", err)
	}
	return nil
}

// result waits for the answer to a command and gives its last value.
func (l *rtmpLink) result(transaction float64) (any, error) {
	for range maxCommands {
		v, err := l.next()
		if err != nil {
			return nil, err
		}
		if len(v) < 2 || v[1] != transaction {
			if err := l.refusal(v); err != nil {
				return nil, err
			}
			continue
		}
		switch v[0] {
		case "_result":
			return v[len(v)-1], nil
		case "_error":
			return nil, l.no(v)
		}
	}
	return nil, errors.New("no answer among many messages")
}

// admitted waits for NetStream.Publish.Start.
func (l *rtmpLink) admitted() error {
	for range maxCommands {
		v, err := l.next()
		if err != nil {
			return err
		}
		if err := l.refusal(v); err != nil {
			return err
		}
		for _, a := range v {
			if o, ok := a.(rtmpwire.Object); ok && o.Text("code") == "NetStream.Publish.Start" {
				return nil
			}
		}
	}
	return errors.New("no answer among many messages")
}

// refusal is the error that a command tells, if it does.
func (l *rtmpLink) refusal(v []any) error {
	if len(v) == 0 || v[0] != "onStatus" && v[0] != "_error" && v[0] != "close" {
		return nil
	}
	for _, a := range v {
		if o, ok := a.(rtmpwire.Object); ok && o.Text("level") == "error" {
			return l.no(v)
		}
	}
	if v[0] == "close" {
		return l.no(v)
	}
	return nil
}

// no is a refusal in the destination's words, without what is secret in them.
func (l *rtmpLink) no(v []any) error {
	for _, a := range v {
		o, ok := a.(rtmpwire.Object)
		if !ok {
			continue
		}
		said := o.Text("code") + " " + o.Text("description")
		_, query, _ := strings.Cut(l.addr.app, "?")
		for _, secret := range []string{l.addr.name, query} {
			if secret != "" {
				said = strings.ReplaceAll(said, secret, "…")
			}
		}
		said = strings.TrimSpace(strings.Map(func(c rune) rune {
			if c < ' ' {
				return -1
			}
			return c
		}, said))
		return fmt.Errorf("%w: %.200s", errRefused, said)
	}
	return errRefused
}

// next gives the values of the next command and serves the protocol control messages before it, sections 5.4 and 7.1.7.
func (l *rtmpLink) next() ([]any, error) {
	for {
		p, err := l.chunks.Read()
		if err != nil {
			return nil, err
		}
		switch p.Kind {
		case rtmpwire.TypeCommandAMF0:
			return rtmpwire.DecodeAMF0(p.Body), nil
		case rtmpwire.TypeSetChunkSize:
			if len(p.Body) < 4 || binary.BigEndian.Uint32(p.Body)&0x7fffffff == 0 {
				return nil, rtmpwire.ErrChunk
			}
			l.chunks.ChunkSize = binary.BigEndian.Uint32(p.Body) & 0x7fffffff
		case rtmpwire.TypeAbort:
			if len(p.Body) >= 4 {
				l.chunks.Abort(binary.BigEndian.Uint32(p.Body))
			}
		case rtmpwire.TypeUserControl:
			const pingRequest, pingResponse = 6, 7
			if len(p.Body) >= 6 && binary.BigEndian.Uint16(p.Body) == pingRequest {
				pong := append([]byte{0, pingResponse}, p.Body[2:6]...)
				if err := l.send(rtmpwire.Out{ChunkStream: chunkControl, Kind: rtmpwire.TypeUserControl, Body: pong}); err != nil {
					return nil, err
				}
			}
		}
	}
}

// listen reads what the destination says until it hangs up or says no. Its acknowledgements are not needed: TCP has them.
func (l *rtmpLink) listen() {
	defer close(l.ended)
	for {
		v, err := l.next()
		if err == nil {
			err = l.refusal(v)
		}
		if err != nil {
			l.why = err
			return
		}
	}
}

func (l *rtmpLink) broken() <-chan struct{} { return l.ended }

func (l *rtmpLink) cause() error { return fmt.Errorf("the destination hung up: %w", l.why) }

// command is a command message, section 7.2. Its values are of kinds that AMF0 has.
func command(stream uint32, name string, transaction float64, args ...any) rtmpwire.Out {
	body, err := append(amf0.Data{name, transaction}, args...).Marshal()
	if err != nil {
		panic("command " + name + ": " + err.Error())
	}
	return rtmpwire.Out{ChunkStream: chunkCommand, Stream: stream, Kind: rtmpwire.TypeCommandAMF0, Body: body}
}

// send writes messages together.
func (l *rtmpLink) send(all ...rtmpwire.Out) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = l.buf[:0]
	for _, m := range all {
		l.buf = rtmpwire.AppendMessage(l.buf, m, sendChunkSize)
	}
	return l.flush(l.buf)
}

func (l *rtmpLink) raw(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flush(b)
}

// flush writes with the lock held.
func (l *rtmpLink) flush(b []byte) error {
	if err := l.nc.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	_, err := l.nc.Write(b)
	return err
}

// configure keeps a track's parameters; they are sent before the next frame, together.
func (l *rtmpLink) configure(c frame.Config) error {
	if err := flvCarries(c); err != nil {
		return err
	}
	l.configs[c.Kind], l.untold[c.Kind] = &c, true
	return nil
}

func (l *rtmpLink) write(f frame.Frame) error {
	at := stamp(f.DTS)
	if slices.Contains(l.untold[:], true) {
		if err := l.headers(at); err != nil {
			return err
		}
	}
	c := l.configs[f.Kind]
	if c == nil {
		return nil
	}
	m := rtmpwire.Out{ChunkStream: chunkVideo, Stream: l.stream, Kind: rtmpwire.TypeVideo, Timestamp: at, Body: f.Data}
	if f.Kind == frame.Audio {
		m.ChunkStream, m.Kind = chunkAudio, rtmpwire.TypeAudio
	}
	var head [16]byte
	m.Head = appendTagHead(head[:0], *c, f)
	if err := l.send(m); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// headers sends metadata and the sequence headers that are not told yet.
func (l *rtmpLink) headers(at uint32) error {
	meta, err := metadata(l.configs)
	if err != nil {
		return err
	}
	if err := l.send(rtmpwire.Out{ChunkStream: chunkAudio, Stream: l.stream, Kind: rtmpwire.TypeDataAMF0, Timestamp: at, Body: meta}); err != nil {
		return fmt.Errorf("write metadata: %w", err)
	}
	for k, untold := range l.untold {
		if !untold {
			continue
		}
		l.untold[k] = false
		body, err := sequenceHeader(*l.configs[k])
		if err != nil {
			return err
		}
		if body == nil {
			continue
		}
		m := rtmpwire.Out{ChunkStream: chunkVideo, Stream: l.stream, Kind: rtmpwire.TypeVideo, Timestamp: at, Body: body}
		if frame.Kind(k) == frame.Audio {
			m.ChunkStream, m.Kind = chunkAudio, rtmpwire.TypeAudio
		}
		if err := l.send(m); err != nil {
			return fmt.Errorf("write sequence header: %w", err)
		}
	}
	return nil
}

// close says goodbye, if it is clean, and waits for a moment until the destination has read it and hung up by itself: closing a
// connection at once would cut off what is on its way.
func (l *rtmpLink) close(clean bool) {
	l.once.Do(func() {
		if clean {
			err := l.send(command(0, "FCUnpublish", 6, nil, l.addr.name), command(0, "deleteStream", 7, nil, float64(l.stream)))
			if half, ok := l.nc.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
				timer := time.NewTimer(goodbyeTime)
				defer timer.Stop()
				select {
				case <-l.ended:
				case <-timer.C:
				}
			}
		}
		_ = l.nc.Close()
	})
	<-l.ended
}
