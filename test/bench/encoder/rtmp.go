package encoder

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strings"
	"time"
)

const (
	chunkSize = 65536
	patience  = 10 * time.Second
)

// Publisher is a connection whose publish command was accepted.
type Publisher struct {
	nc   net.Conn
	head [12]byte
	out  net.Buffers
}

// Dial connects to rtmp://host:port/app/key and asks to publish.
func Dial(ctx context.Context, target string) (*Publisher, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("read RTMP URL: %w", err)
	}
	app, key, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, fmt.Errorf("connect encoder: %w", err)
	}
	p := &Publisher{nc: nc}
	if err := p.negotiate(app, "rtmp://"+u.Host+"/"+app, key); err != nil {
		return nil, errors.Join(fmt.Errorf("publish: %w", err), nc.Close())
	}
	go func() { _, _ = io.Copy(io.Discard, nc) }() // acknowledgements; ends with the connection
	return p, nil
}

// Close ends the publication without a goodbye.
func (p *Publisher) Close() { _ = p.nc.Close() }

// negotiate does the handshake and the commands up to publish, RTMP 1.0 sections 5.2 and 7.2. The server's responses
// are looked for by the words in them.
func (p *Publisher) negotiate(app, tcURL, key string) error {
	if err := p.nc.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	hello := make([]byte, 1+1536)
	hello[0] = 3
	if _, err := p.nc.Write(hello); err != nil {
		return err
	}
	response := make([]byte, 1+2*1536)
	if _, err := io.ReadFull(p.nc, response); err != nil {
		return err
	}
	if _, err := p.nc.Write(response[1 : 1+1536]); err != nil {
		return err
	}
	connect := appendNumber(appendString(nil, "connect"), 1)
	connect = append(connect, 3)
	connect = appendString(appendName(connect, "app"), app)
	connect = appendString(appendName(connect, "tcUrl"), tcURL)
	connect = appendString(appendName(connect, "flashVer"), "FMLE/3.0 (compatible; bench)")
	connect = append(connect, 0, 0, 9)
	size := binary.BigEndian.AppendUint32(nil, chunkSize)
	steps := []struct {
		messages [][]byte
		response string
	}{
		{[][]byte{message(2, 1, 0, size), message(3, 20, 0, connect)}, "NetConnection.Connect.Success"},
		{[][]byte{message(3, 20, 0, append(appendNumber(appendString(nil, "createStream"), 2), 5))}, "_result"},
		{
			[][]byte{
				message(3, 20, 1,
					appendString(appendString(append(appendNumber(appendString(nil, "publish"), 3), 5), key), "live")),
			}, "NetStream.Publish.Start",
		},
	}
	for _, s := range steps {
		if _, err := p.nc.Write(bytes.Join(s.messages, nil)); err != nil {
			return err
		}
		if err := p.await(s.response); err != nil {
			return err
		}
	}
	return p.nc.SetReadDeadline(time.Time{})
}

func (p *Publisher) await(word string) error {
	var got []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(got, []byte(word)) {
		n, err := p.nc.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			return fmt.Errorf("no %s in the response %q: %w", word, got, err)
		}
		if bytes.Contains(got, []byte("error")) {
			return fmt.Errorf("refused: %q", got)
		}
	}
	return nil
}

// message is a short message with a header of type 0.
func message(chunkStream, kind byte, stream uint32, body []byte) []byte {
	var h [12]byte
	putHeader(&h, chunkStream, kind, stream, 0, len(body))
	return append(h[:], body...) // none is longer than a chunk
}

func putHeader(h *[12]byte, chunkStream, kind byte, stream uint32, at time.Duration, size int) {
	ms := uint32(at.Milliseconds())
	h[0] = chunkStream
	h[1], h[2], h[3] = byte(ms>>16), byte(ms>>8), byte(ms)
	h[4], h[5], h[6] = byte(size>>16), byte(size>>8), byte(size)
	h[7] = kind
	binary.LittleEndian.PutUint32(h[8:], stream)
}

// send writes a media message with one system call.
func (p *Publisher) send(kind byte, at time.Duration, body []byte) error {
	stream := 4 + kind - typeAudio
	if kind == typeData {
		stream = 7
	}
	putHeader(&p.head, stream, kind, 1, at, len(body))
	p.out = append(p.out[:0], p.head[:])
	for ; len(body) > chunkSize; body = body[chunkSize:] {
		p.out = append(p.out, body[:chunkSize], []byte{0xc0 | stream})
	}
	p.out = append(p.out, body)
	b := p.out
	_, err := b.WriteTo(p.nc)
	return err
}

// AMF 0, as far as the commands above need it.
func appendString(b []byte, s string) []byte { return appendName(append(b, 2), s) }

func appendName(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func appendNumber(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0), math.Float64bits(v))
}
