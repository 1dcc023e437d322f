package encoder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	gosrt "github.com/datarhei/gosrt"
)

// Stream is a transport stream, cut where its clock is told.
type Stream struct {
	Pieces []Piece
}

// Piece is what is sent at a time of the clock.
type Piece struct {
	At    time.Duration
	Bytes []byte
}

const tsPacket = 188

// ReadStream reads a transport stream and its program clock references, ISO 13818-1 section 2.4.3.5.
func ReadStream(path string) (*Stream, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read transport stream: %w", err)
	}
	s := &Stream{}
	first, sent := int64(-1), 0
	for at := 0; at+tsPacket <= len(b); at += tsPacket {
		p := b[at : at+tsPacket]
		if p[0] != 0x47 {
			return nil, errors.New("not the transport stream that was expected")
		}
		if p[3]&0x20 == 0 || p[4] < 7 || p[5]&0x10 == 0 {
			continue
		}
		clock := int64(p[6])<<25 | int64(p[7])<<17 | int64(p[8])<<9 | int64(p[9])<<1 | int64(p[10])>>7
		if first < 0 {
			first = clock
		}
		if at > sent {
			s.Pieces = append(s.Pieces, Piece{At: time.Duration(clock-first) * time.Second / 90000, Bytes: b[sent:at]})
			sent = at
		}
	}
	return s, nil
}

// Caller publishes over SRT.
type Caller struct{ conn gosrt.Conn }

// Call connects; with a passphrase it encrypts.
func Call(ctx context.Context, addr, streamID, passphrase string) (*Caller, error) {
	c := gosrt.DefaultConfig()
	c.StreamId, c.Passphrase = streamID, passphrase
	var conn gosrt.Conn
	var err error
	for range 3 { // it says everything once only, and one lost datagram is enough to fail
		if conn, err = gosrt.DialWithContext(ctx, "srt", addr, c); err == nil {
			return &Caller{conn}, nil
		}
	}
	return nil, fmt.Errorf("call %s: %w", addr, err)
}

// Close hangs up.
func (c *Caller) Close() { _ = c.conn.Close() }

// Play sends the stream in time until ctx ends; one that is too short for that is an error.
func (c *Caller) Play(ctx context.Context, s *Stream) error {
	begin := time.Now()
	t := time.NewTimer(0)
	defer t.Stop()
	for _, p := range s.Pieces {
		t.Reset(time.Until(begin.Add(p.At)))
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		for b := p.Bytes; len(b) > 0; {
			n := min(len(b), 7*tsPacket)
			if _, err := c.conn.Write(b[:n]); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("send: %w", err)
			}
			b = b[n:]
		}
	}
	return errors.New("the transport stream is too short")
}
