package rtmp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/bluenviron/gortmplib/pkg/amf0"
	"github.com/bluenviron/gortmplib/pkg/bytecounter"
	"github.com/bluenviron/gortmplib/pkg/message"

	"millrace/internal/media/rtmpwire"
)

// chunk is one format 0 chunk with a whole message on chunk stream 4, message stream 1.
func chunk(kind byte, timestamp uint32, body ...byte) []byte {
	b := []byte{4, 0xff, 0xff, 0xff, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body)), kind, 1, 0, 0, 0}
	return append(binary.BigEndian.AppendUint32(b, timestamp), body...)
}

// opening is what a publisher says before its media: everything at once, as it need not wait.
func opening(app, tcURL, name string, fields ...amf0.ObjectEntry) []byte {
	var b bytes.Buffer
	b.WriteByte(3)
	b.Write(make([]byte, 2*rtmpwire.HandshakeSize))
	w := message.NewWriter(&b, bytecounter.NewWriter(&b), false)
	connect := append(amf0.Object{
		{Key: "app", Value: app}, {Key: "tcUrl", Value: tcURL}, {Key: "flashVer", Value: "test/1.0"},
	}, fields...)
	for _, m := range []message.Message{
		&message.SetChunkSize{Value: 1 << 20},
		&message.CommandAMF0{ChunkStreamID: 3, Name: "connect", CommandID: 1, Arguments: amf0.Data{connect}},
		&message.CommandAMF0{ChunkStreamID: 3, Name: "releaseStream", CommandID: 2, Arguments: amf0.Data{nil, name}},
		&message.CommandAMF0{ChunkStreamID: 3, Name: "createStream", CommandID: 3, Arguments: amf0.Data{nil}},
		&message.CommandAMF0{
			ChunkStreamID: 8, MessageStreamID: 0x1000000, Name: "publish", CommandID: 4,
			Arguments: amf0.Data{nil, name, "live"},
		},
	} {
		if err := w.Write(m); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func opened() []byte { return opening("app", "rtmp://host/app", key) }

// command is a whole command message.
func commandBytes(name string, args ...any) []byte {
	body, err := append(amf0.Data{name, 0.0, nil}, args...).Marshal()
	if err != nil {
		panic(err)
	}
	return chunk(rtmpwire.TypeCommandAMF0, 0, body...)
}

var (
	testSPS = []byte{
		0x67, 0x42, 0xc0, 0x28, 0xd9, 0x00, 0x78, 0x02, 0x27, 0xe5, 0x84, 0x00, 0x00, 0x03, 0x00, 0x04, 0x00, 0x00,
		0x03, 0x00, 0xf0, 0x3c, 0x60, 0xc9, 0x20,
	}
	testPPS  = []byte{0x68, 0xce, 0x38, 0x80}
	testAvcC = avcC(testSPS, 4)
	testIDR  = []byte{0, 0, 0, 5, 0x65, 0x88, 0x84, 0, 0x4f}
	testP    = []byte{0, 0, 0, 5, 0x41, 1, 2, 3, 4}
	testASC  = []byte{0x11, 0x90}
)

func avcC(sps []byte, lengthSize byte) []byte {
	b := append([]byte{1, sps[1], sps[2], sps[3], 0xfc | (lengthSize - 1), 0xe1, 0, byte(len(sps))}, sps...)
	return append(append(b, 1, 0, byte(len(testPPS))), testPPS...)
}

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func videoConfig(avcC []byte) []byte {
	return chunk(rtmpwire.TypeVideo, 0, cat([]byte{0x17, 0, 0, 0, 0}, avcC)...)
}
func audioConfig() []byte { return chunk(rtmpwire.TypeAudio, 0, cat([]byte{0xaf, 0}, testASC)...) }
func videoFrame(t uint32) []byte {
	return chunk(rtmpwire.TypeVideo, t, cat([]byte{0x17, 1, 0, 0, 0}, testIDR)...)
}
func audioFrame(t uint32) []byte { return chunk(rtmpwire.TypeAudio, t, 0xaf, 1, 0x21, 0x22) }

// pipeListener hands out one side of net.Pipe.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects and reads away whatever the server says; closed is closed when it hangs up.
func (p *pipeListener) dial() (c net.Conn, closed chan struct{}) {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	closed = make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, ours)
		close(closed)
	}()
	return ours, closed
}

// publish sends b over a fresh loopback connection, ends it as a dying encoder does, and gives back what the server
// said.
func send(t *testing.T, addr string, b []byte) []byte {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	said := make(chan []byte)
	go func() {
		r, _ := io.ReadAll(c)
		said <- r
	}()
	if _, err := c.Write(b); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("write: %v", err) // the server may hang up first
	}
	_ = c.(*net.TCPConn).CloseWrite()
	return <-said
}
