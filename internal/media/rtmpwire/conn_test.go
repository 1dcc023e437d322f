package rtmpwire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"reflect"
	"testing"
	"time"
)

// TestConn: two ends shake hands, and what one sends the other reads, in chunks of the size that was said before.
func TestConn(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	connect := Command{
		Name: "connect", Transaction: 1, Args: []any{Object{{"app", "live"}, {"long", string(body(1000))}}},
	}
	shaken := make(chan error, 1)
	go func() {
		br := bufio.NewReader(client)
		err := ClientHandshake(br, client)
		if err == nil {
			c := NewConn(br, Timed(client, time.Minute), nil)
			err = c.Send(connect.Message(ChunkCommand, 0), Control(TypeSetChunkSize, 500),
				connect.Message(ChunkCommand, 0))
		}
		shaken <- err
	}()
	br := bufio.NewReader(server)
	if err := ServerHandshake(br, server); err != nil {
		t.Fatal(err)
	}
	c := NewConn(br, server, nil)
	for range 2 {
		p, err := c.Next()
		got, ok := ParseCommand(p)
		if err != nil || !ok || !reflect.DeepEqual(got, connect) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := <-shaken; err != nil {
		t.Error(err)
	}
}

// TestControlMessages: pings and windows are responded to, what makes no sense ends the connection.
func TestControlMessages(t *testing.T) {
	t.Parallel()
	ping := Out{ChunkStream: ChunkControl, Kind: TypeUserControl, Body: []byte{0, 6, 1, 2, 3, 4}}
	abort := Control(TypeAbort, ChunkVideo)
	for name, tt := range map[string]struct {
		in   []Out
		want []Out
		err  error
	}{
		"ping": {
			[]Out{ping},
			[]Out{{ChunkStream: ChunkControl, Kind: TypeUserControl, Body: []byte{0, 7, 1, 2, 3, 4}}},
			io.EOF,
		},
		"other user control": {
			[]Out{{ChunkStream: ChunkControl, Kind: TypeUserControl, Body: []byte{0, 3, 0, 0, 0, 1}}}, nil, io.EOF,
		},
		"window":              {[]Out{Control(TypeWindowAckSize, 1), abort}, []Out{Control(TypeAck, 1<<20)}, io.EOF},
		"chunk size 0":        {[]Out{Control(TypeSetChunkSize, 1<<31)}, nil, ErrChunk},
		"short control":       {[]Out{{ChunkStream: ChunkControl, Kind: TypeAck, Body: []byte{1}}}, nil, ErrChunk},
		"media not allowed":   {[]Out{{ChunkStream: ChunkVideo, Kind: TypeVideo, Body: body(100)}}, nil, io.EOF},
		"acknowledgement":     {[]Out{Control(TypeAck, 7)}, nil, io.EOF},
		"bandwidth of a peer": {[]Out{Control(TypePeerBandwidth, 7)}, nil, io.EOF},
	} {
		var in, want []byte
		for _, m := range tt.in {
			in = AppendMessage(in, m, 128)
		}
		for _, m := range tt.want {
			want = AppendMessage(want, m, 128)
		}
		var out bytes.Buffer
		c := NewConn(bufio.NewReader(bytes.NewReader(in)), &out, func() uint64 { return 1 << 20 })
		if _, err := c.Next(); !errors.Is(err, tt.err) {
			t.Errorf("%s: ends with %v", name, err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s: %x is sent, want %x", name, out.Bytes(), want)
		}
	}
}

// TestNotRTMP: what speaks something else is told from RTMP by its first byte.
func TestNotRTMP(t *testing.T) {
	t.Parallel()
	for _, first := range []byte{6, 0x16, 'G'} {
		said := append([]byte{first}, make([]byte, 2*HandshakeSize)...)
		if err := ServerHandshake(bufio.NewReader(bytes.NewReader(said)), io.Discard); !errors.Is(err, ErrNotRTMP) {
			t.Errorf("%#x from a client: %v", first, err)
		}
		if err := ClientHandshake(bufio.NewReader(bytes.NewReader(said)), io.Discard); !errors.Is(err, ErrNotRTMP) {
			t.Errorf("%#x from a server: %v", first, err)
		}
	}
}
