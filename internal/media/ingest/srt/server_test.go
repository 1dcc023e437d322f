package srt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gosrt "github.com/datarhei/gosrt"
	"github.com/datarhei/gosrt/circular"
	"github.com/datarhei/gosrt/packet"

	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// send writes a stream in packets as encoders do, one each millisecond: a caller's queue is short. It gives how many
// there were; a caller who is hung up on meanwhile has sent fewer.
func send(c gosrt.Conn, b []byte) (packets uint64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p := range slices.Chunk(b, 7*mpegts.PacketSize) {
		if _, err := c.Write(p); err != nil {
			break
		}
		packets++
		<-tick.C
	}
	return packets
}

// leave hangs up once so many packets are sent: a caller throws away what is in its queue.
func leave(t *testing.T, c gosrt.Conn, packets uint64) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var s gosrt.Statistics
	for end := time.Now().Add(ingesttest.Patience); s.Accumulated.PktSentUnique < packets; c.Stats(&s) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d packets are sent", s.Accumulated.PktSentUnique, packets)
		}
		<-tick.C
	}
	_ = c.Close()
}

func TestPublishes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		id   string
		bits int
	}{
		"AES-128":       {key, 16},
		"AES-192":       {key, 24},
		"AES-256":       {key, 32},
		"standard form": {"#!::u=studio,r=" + key + ",m=publish", 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			g := &gate{sink: sink}
			s := start(t, Options{Gate: g, Latency: 500 * time.Millisecond})
			c, err := dial(t, s.addr, func(c *gosrt.Config) { c.StreamId, c.PBKeylen = tt.id, tt.bits })
			if err != nil {
				t.Fatalf("%v\n%s", err, s.log)
			}
			want := ingesttest.NewRecorder()
			d := mpegts.NewDemuxer(want)
			if err := errors.Join(d.Write(media(t), time.Time{}), d.Flush()); err != nil {
				t.Fatal(err)
			}
			leave(t, c, send(c, media(t))) // while the last half second is not due yet
			if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrEncoderEnded) {
				t.Errorf("cause %v\n%s", cause, s.log)
			}
			for _, k := range []frame.Kind{frame.Video, frame.Audio} {
				if !slices.EqualFunc(sink.Of(k), want.Of(k), func(a, b frame.Frame) bool {
					return a.DTS == b.DTS && a.PTS == b.PTS && a.Key == b.Key && bytes.Equal(a.Data, b.Data) &&
						!a.Received.IsZero()
				}) {
					t.Errorf("%v differs from what was sent", k)
				}
			}
			if p := g.asked(); len(p) != 1 || p[0].Protocol != "srt" || p[0].Key != key || p[0].Remote.Port() == 0 ||
				tt.id != key && p[0].Encoder != "studio" {
				t.Errorf("the gate saw %+v", p)
			}
			if l := g.asked()[0].Link(); l.Packets < int64(len(media(t))/1316) || l.RTT <= 0 || l.Dropped != 0 {
				t.Errorf("link %+v", l)
			}
			s.stop()
			checkSecrets(t, s)
			s.log.CheckLabels(t)
		})
	}
}

func checkSecrets(t *testing.T, s *server) {
	t.Helper()
	for _, secret := range []string{key, passphrase, "sk-other", "some other passphrase"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("a secret is in the log:\n%s", s.log)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		caller  func(*gosrt.Config)
		gate    error
		secrets secrets
		code    gosrt.RejectionReason
		asked   bool // the gate is
	}{
		"unknown key": {
			func(c *gosrt.Config) { c.StreamId = "sk-other" }, nil, secrets{}, gosrt.REJX_UNAUTHORIZED, false,
		},
		"wrong passphrase": {
			func(c *gosrt.Config) { c.Passphrase = "some other passphrase" }, nil,
			secrets{},
			gosrt.REJ_BADSECRET,
			false,
		},
		"no encryption": {func(c *gosrt.Config) { c.Passphrase = "" }, nil, secrets{}, gosrt.REJ_UNSECURE, false},
		"no stream id":  {func(c *gosrt.Config) { c.StreamId = "" }, nil, secrets{}, gosrt.REJX_BAD_REQUEST, false},
		"nested stream id": {
			func(c *gosrt.Config) { c.StreamId = "#!:{r=" + key + "}" }, nil, secrets{}, gosrt.REJX_BAD_REQUEST, false,
		},
		"player": {
			func(c *gosrt.Config) { c.StreamId = "#!::r=" + key + ",m=request" }, nil,
			secrets{},
			gosrt.REJX_BAD_MODE,
			false,
		},
		"disabled":        {nil, ingest.ErrDisabled, secrets{}, gosrt.REJX_FORBIDDEN, true},
		"busy":            {nil, ingest.ErrBusy, secrets{}, gosrt.REJX_CONFLICT, true},
		"shutting down":   {nil, ingest.ErrShutdown, secrets{}, gosrt.REJX_DOWN, true},
		"gate broken":     {nil, errors.New("on fire"), secrets{}, gosrt.REJX_ISE, true},
		"database broken": {nil, nil, secrets{errors.New("on fire")}, gosrt.REJX_ISE, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gate{err: tt.gate, sink: ingesttest.NewRecorder()}
			s := start(t, Options{Gate: g, Secrets: tt.secrets})
			_, err := dial(t, s.addr, tt.caller)
			// gosrt writes it so
			if err == nil || !strings.Contains(err.Error(), "REJECT ("+strconv.FormatUint(uint64(tt.code), 32)+")") {
				t.Fatalf("dial: %v", err)
			}
			s.stop()
			if n := strings.Count(s.log.String(), "publish refused"); n != 1 ||
				!strings.Contains(s.log.String(), fmt.Sprintf("code=%d ", tt.code)) {
				t.Errorf("%d refusals, want one with %d:\n%s", n, tt.code, s.log)
			}
			if level := strings.Contains(s.log.String(), "ERROR"); level != (tt.code == gosrt.REJX_ISE) {
				t.Errorf("log:\n%s", s.log)
			}
			if (len(g.asked()) > 0) != tt.asked {
				t.Errorf("the gate was asked %v", g.asked())
			}
			checkSecrets(t, s)
		})
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped by its owner")
	t.Run("by the publication", func(t *testing.T) {
		t.Parallel()
		sink := ingesttest.NewRecorder()
		var stop context.CancelCauseFunc
		g := &gate{sink: sink, ctx: func(ctx context.Context) context.Context {
			ctx, stop = context.WithCancelCause(ctx)
			return ctx
		}}
		s := start(t, Options{Gate: g})
		c := connect(t, s.addr)
		send(c, media(t))
		sink.Until(t, "the first frame", func() bool { return len(sink.Frames()) > 0 })
		stop(stopped)
		if cause := sink.Cause(t); !errors.Is(cause, stopped) {
			t.Errorf("cause %v", cause)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the caller reads %v", err)
		}
	})
	t.Run("by the service", func(t *testing.T) {
		t.Parallel()
		sink := ingesttest.NewRecorder()
		s := start(t, Options{Gate: &gate{sink: sink}})
		c := connect(t, s.addr)
		send(c, media(t))
		sink.Until(t, "the first frame", func() bool { return len(sink.Frames()) > 0 })
		s.stop()
		if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrShutdown) {
			t.Errorf("cause %v", cause)
		}
	})
	t.Run("by the sink", func(t *testing.T) {
		t.Parallel()
		sink := ingesttest.NewRecorder()
		sink.OnWrite = func(frame.Frame) error { return stopped }
		s := start(t, Options{Gate: &gate{sink: sink}})
		send(connect(t, s.addr), media(t))
		if cause := sink.Cause(t); !errors.Is(cause, stopped) {
			t.Errorf("cause %v", cause)
		}
	})
	t.Run("by a panic", func(t *testing.T) {
		t.Parallel()
		sink := ingesttest.NewRecorder()
		sink.OnWrite = func(frame.Frame) error { panic("at the disco") }
		s := start(t, Options{Gate: &gate{sink: sink}})
		send(connect(t, s.addr), media(t))
		if cause := sink.Cause(t); !strings.Contains(cause.Error(), "at the disco") {
			t.Errorf("cause %v", cause)
		}
		s.stop()
		if !strings.Contains(s.log.String(), "connection panicked") {
			t.Errorf("log:\n%s", s.log)
		}
	})
	t.Run("without media", func(t *testing.T) {
		t.Parallel()
		sink := ingesttest.NewRecorder()
		s := start(t, Options{Gate: &gate{sink: sink}, HandshakeTimeout: 2 * time.Second})
		connect(t, s.addr)
		if cause := sink.Cause(t); !errors.Is(cause, errNoAnswer) {
			t.Errorf("cause %v", cause)
		}
	})
	t.Run("garbage", func(t *testing.T) {
		t.Parallel()
		sink := ingesttest.NewRecorder()
		s := start(t, Options{Gate: &gate{sink: sink}})
		c := connect(t, s.addr)
		leave(t, c, send(c, bytes.Repeat([]byte{1}, 1316*30)))
		if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrEncoderEnded) {
			t.Errorf("cause %v", cause)
		}
	})
	t.Run("unknown codecs", func(t *testing.T) {
		t.Parallel()
		sink := ingesttest.NewRecorder()
		s := start(t, Options{Gate: &gate{sink: sink}})
		send(connect(t, s.addr), called(t, 2, 2))
		if cause := sink.Cause(t); !isUnsupported(cause) || !strings.Contains(cause.Error(), "MPEG-2 video") {
			t.Errorf("cause %v", cause)
		}
	})
	t.Run("dead peer", func(t *testing.T) {
		t.Parallel()
		sink := ingesttest.NewRecorder()
		// of which a busy machine may need some for the first frame
		s := start(t, Options{Gate: &gate{sink: sink}, IdleTimeout: 3 * time.Second})
		through, cut := between(t, s.addr)
		c := connect(t, through)
		send(c, media(t))
		sink.Until(t, "the first frame", func() bool { return len(sink.Frames()) > 0 })
		cut()
		if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrSilent) {
			t.Errorf("cause %v", cause)
		}
	})
}

func isUnsupported(err error) bool {
	_, ok := errors.AsType[ingest.Unsupported](err)
	return ok
}

// TestTellsWhatIsNotRecorded: anyone who wonders where the sound is finds it in the log while the encoder is connected.
func TestTellsWhatIsNotRecorded(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := start(t, Options{Gate: &gate{sink: sink}})
	c := connect(t, s.addr)
	send(c, called(t, 0x1b, 0x87))
	sink.Until(t, "the first frame", func() bool { return len(sink.Frames()) > 0 })
	s.stop() // a frame is taken before the line is written
	before, _, _ := strings.Cut(s.log.String(), "encoder disconnected")
	if n := strings.Count(before, `streams that are not recorded"`); n != 1 ||
		!strings.Contains(before, "streams=E-AC-3") {
		t.Errorf("%d lines:\n%s", n, s.log)
	}
}

// called is the stream of media with its tracks called by other types.
func called(t *testing.T, types ...byte) []byte {
	t.Helper()
	b := bytes.Clone(media(t))
	for p := range slices.Chunk(b, mpegts.PacketSize) {
		if p[4] != 0 || p[5] != 2 || p[1]&0x40 == 0 { // the map's section
			continue
		}
		n := 3 + int(p[6]&15)<<8 + int(p[7])
		s := p[5 : 5+n]
		for at, i := 12+int(s[11]), 0; at < n-4; at, i = at+5+int(s[at+4]), i+1 {
			s[at] = types[i]
		}
		c := crc(s[:n-4])
		s[n-4], s[n-3], s[n-2], s[n-1] = byte(c>>24), byte(c>>16), byte(c>>8), byte(c)
	}
	return b
}

// crc is CRC-32/MPEG-2.
func crc(b []byte) uint32 {
	c := ^uint32(0)
	for _, v := range b {
		c ^= uint32(v) << 24
		for range 8 {
			if c&0x80000000 != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
	}
	return c
}

// between passes datagrams on to addr and back until it is cut.
func between(t *testing.T, addr string) (through string, cut func()) {
	t.Helper()
	in, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	caller := make(chan net.Addr, 1)
	go func() {
		b := make([]byte, 2000)
		for first := true; ; first = false {
			n, from, err := in.ReadFrom(b)
			if err != nil {
				return
			}
			if first {
				caller <- from
			}
			_, _ = out.Write(b[:n])
		}
	}()
	go func() {
		b := make([]byte, 2000)
		var to net.Addr
		for {
			n, err := out.Read(b)
			if err != nil {
				return
			}
			if to == nil {
				to = <-caller
			}
			_, _ = in.WriteTo(b[:n], to)
		}
	}()
	cut = func() { _, _ = in.Close(), out.Close() }
	t.Cleanup(cut)
	return in.LocalAddr().String(), cut
}

// TestEndsAtOnce: a caller may say goodbye before it is listened for; that is not silence.
func TestEndsAtOnce(t *testing.T) {
	t.Parallel()
	opts := &Options{IdleTimeout: time.Hour}
	for ago, want := range map[time.Duration]error{0: ingest.ErrEncoderEnded, time.Hour: ingest.ErrSilent} {
		if err := (&conn{opts: opts, begun: time.Now().Add(-ago)}).ending(); !errors.Is(err, want) {
			t.Errorf("after %v: %v, want %v", ago, err, want)
		}
	}
}

// TestAddressInUse: a second server on the port would be given every packet of the first one's encoders.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Gate: &gate{sink: ingesttest.NewRecorder()}})
	second, err := Listen(t.Context(), s.addr, Options{})
	if err == nil {
		second.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second server on the port: %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Gate: &gate{sink: ingesttest.NewRecorder()}, MaxConnsPerIP: 2})
	connect(t, s.addr)
	connect(t, s.addr)
	if _, err := dial(t, s.addr, nil); err == nil {
		t.Error("a third connection is let in")
	}
	s.stop()
	if !strings.Contains(s.log.String(), "too many connections") {
		t.Errorf("log:\n%s", s.log)
	}
}

// TestFlood: packets that are due in an hour are not kept until then.
func TestFlood(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := start(t, Options{Gate: &gate{sink: sink}, MaxBuffer: 200_000, Latency: 60 * time.Second})
	c := connect(t, s.addr)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 20_000 {
		if _, err := c.Write(make([]byte, 1316)); err != nil {
			break
		}
		<-tick.C
		select {
		case <-sink.Closed:
		default:
			continue
		}
		break
	}
	if cause := sink.Cause(t); !errors.Is(cause, errFlood) {
		t.Errorf("cause %v", cause)
	}
}

// handshake sends a datagram of a handshake that was changed, after the one that gets the cookie, and gives the
// response.
func handshake(t *testing.T, addr string, change func(*packet.CIFHandshake), cut int) []byte {
	t.Helper()
	conn, c := induce(t, "", addr)
	change(c)
	return exchange(t, conn, c, cut, 20*time.Millisecond)
}

// induce gets a cookie at an address of this machine; "": any. What it gives is the conclusion that may be sent with
// it.
func induce(t *testing.T, from, addr string) (*net.UDPConn, *packet.CIFHandshake) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &packet.CIFHandshake{
		Version: 4, EncryptionField: 0, ExtensionField: 2,
		InitialPacketSequenceNumber: circular.New(1, packet.MAX_SEQUENCENUMBER),
		MaxTransmissionUnitSize:     1500, MaxFlowWindowSize: 8192, HandshakeType: packet.HSTYPE_INDUCTION,
		SRTSocketId: 4711,
	}
	first := exchange(t, conn.(*net.UDPConn), c, 0, 10*time.Second)
	if len(first) < 64 {
		t.Fatal("no response to the first handshake")
	}
	c.SynCookie = binary.BigEndian.Uint32(first[44:])
	c.HandshakeType = packet.HSTYPE_CONCLUSION
	return conn.(*net.UDPConn), c
}

// exchange sends a handshake without its last bytes, and gives what comes back in time.
func exchange(t *testing.T, conn *net.UDPConn, c *packet.CIFHandshake, cut int, patience time.Duration) []byte {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	p := packet.NewPacket(conn.RemoteAddr())
	h := p.Header()
	h.IsControlPacket, h.ControlType = true, packet.CTRLTYPE_HANDSHAKE
	if err := p.MarshalCIF(c); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Marshal(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(b.Bytes()[:b.Len()-cut]); err != nil {
		t.Fatal(err)
	}
	response := make([]byte, 1500)
	n, err := conn.Read(response)
	if err != nil {
		return nil
	}
	return response[:n]
}

// five makes the handshake one of version 5 with a stream id.
func five(c *packet.CIFHandshake) {
	c.Version, c.ExtensionField, c.EncryptionField = 5, 5, 0
	c.HasHS, c.SRTHS = true, &packet.CIFHandshakeExtension{
		SRTVersion: 0x010501,
		SRTFlags: packet.CIFHandshakeExtensionFlags{
			TSBPDSND: true, TSBPDRCV: true, CRYPT: true, TLPKTDROP: true, PERIODICNAK: true, REXMITFLG: true,
		},
		RecvTSBPDDelay: 120, SendTSBPDDelay: 120,
	}
	c.HasSID, c.StreamId = true, key
}

// TestHostileHandshakes: what would make gosrt panic, or allocate gigabytes, makes nothing.
func TestHostileHandshakes(t *testing.T) { //nolint:paralleltest // it measures memory
	s := start(t, Options{Gate: &gate{sink: ingesttest.NewRecorder()}})
	for _, tt := range []struct {
		name   string
		change func(*packet.CIFHandshake)
		cuts   int // how many bytes are cut off, up to
	}{
		{"extensions cut short", five, 60},
		{"tiny packets", func(c *packet.CIFHandshake) { five(c); c.MaxTransmissionUnitSize = 40 }, 1},
		{"no packets", func(c *packet.CIFHandshake) { five(c); c.MaxTransmissionUnitSize = 0 }, 1},
		{"version 4", func(*packet.CIFHandshake) {}, 1},
	} {
		for cut := range tt.cuts {
			handshake(t, s.addr, tt.change, cut)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapSys > 1<<30 {
		t.Errorf("heap of %d MiB", m.HeapSys>>20)
	}
	conn := connect(t, s.addr) // it still takes publishers
	_ = conn.Close()
	s.stop()
	for _, want := range []string{"too small", "before 1.3"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, s.log)
		}
	}
}

// FuzzWire feeds the parsers of gosrt that run on goroutines of its own, where a panic could not be caught.
func FuzzWire(f *testing.F) {
	f.Add([]byte("\x80\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x80\x00\x00\x01\x00\x00\x00\x05"))
	f.Add([]byte("\x80\x02\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x07"))
	f.Add(
		append(
			[]byte(
				"\xff\xff\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x12\x20\x29\x01\x00\x00\x00\x00\x02\x00\x02\x00\x00\x00\x04\x04"), make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := packet.NewPacketFromData(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, b)
		if err != nil {
			return
		}
		defer p.Decommission()
		for _, cif := range []packet.CIF{
			&packet.CIFACK{}, &packet.CIFNAK{}, &packet.CIFShutdown{}, &packet.CIFHandshakeExtension{},
			&packet.CIFKeyMaterialExtension{},
		} {
			_ = p.UnmarshalCIF(cif)
			if nak, ok := cif.(*packet.CIFNAK); ok && len(nak.LostPacketSequenceNumber) > 2*len(b) {
				t.Fatal("a list longer than its packet")
			}
		}
	})
}
