package whip

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtcp"

	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// TestRefusalsAreLoggedSparsely has strangers ask many times a minute: the log has a line a minute of those without a
// key, and of the others, with the number of those that it does not have.
func TestRefusalsAreLoggedSparsely(t *testing.T) {
	t.Parallel()
	for name, auth := range map[string]string{"no key": "", "any key": "Bearer guessed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &ingesttest.Log{}
				s := New(Options{Logger: log.Logger()})
				for range 10 {
					for range 1000 {
						r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/whip",
							strings.NewReader("v=0"))
						r.Header.Set("Content-Type", typeSDP)
						r.Header.Set("Authorization", auth)
						w := httptest.NewRecorder()
						s.ServeHTTP(w, r)
						if w.Code < 400 || w.Header().Get("Connection") != "close" {
							t.Fatalf("%d %v", w.Code, w.Header())
						}
					}
					time.Sleep(time.Minute)
				}
				s.refusals.Flush()
				if lines, told := log.Refusals("publish refused"); lines != 11 || told != 10_000 {
					t.Errorf("%d lines tell of %d refusals, want the first one and one a minute", lines, told)
				}
			})
		})
	}
}

// TestEveryRefusalHasItsLine asks for each kind of refusal fifty times a second, for eight seconds: each has its line,
// and those that follow within a minute are counted.
func TestEveryRefusalHasItsLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &ingesttest.Log{}
		s := New(Options{Logger: log.Logger()}) // that does not serve
		asked := 0
		for range 8 * 50 {
			for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
				for _, path := range []string{"/whip", "/whip/x"} {
					for _, auth := range []string{"", "Bearer guessed"} {
						for _, kind := range []string{"", typeSDP} {
							for _, body := range []string{"", "v=0", crlf(chromium), strings.Repeat("x", maxOffer+1)} {
								r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
								r.Header.Set("Content-Type", kind)
								r.Header.Set("Authorization", auth)
								w := httptest.NewRecorder()
								s.ServeHTTP(w, r)
								if w.Code < 400 {
									t.Fatalf("%s %s: %d", method, path, w.Code)
								}
								asked++
							}
						}
					}
				}
			}
			time.Sleep(time.Second / 50)
		}
		s.refusals.Flush()
		causes := map[string]bool{}
		for _, line := range log.Lines("publish refused") {
			_, status, _ := strings.Cut(line, " status=")
			causes[strings.Fields(status)[0]] = true
		}
		lines, told := log.Refusals("publish refused")
		if told != asked || len(causes) < 6 || lines > 4*len(causes) { // with a key and without, at once and at the end
			t.Errorf("%d lines tell of %d of %d refusals of %d statuses", lines, told, asked, len(causes))
		}
		t.Logf("%d lines, %v", lines, causes)
	})
}

// TestLogStaysShort has one address do again and again what it may: the log has a line for each cause, and not for each
// time. Encoders whose key is right have five lines of each kind.
func TestLogStaysShort(t *testing.T) {
	t.Parallel()
	const times = 50
	post := func(auth, kind, body string) func(*testing.T, *server) {
		return func(t *testing.T, s *server) {
			t.Helper()
			for range times {
				ask(t, http.MethodPost, s.url, body, "Authorization", auth, "Content-Type", kind)
			}
		}
	}
	offer, right := crlf(chromium), "Bearer "+key
	unsupported := strings.NewReplacer("H264/", "H263/", "AV1/", "AV0/", "VP9/", "VP7/").Replace(offer)
	for name, tt := range map[string]struct {
		play  func(*testing.T, *server)
		lines int // at most: the first, and the newest at the end
	}{
		"unknown key":        {post("Bearer guessed", typeSDP, offer), 2},
		"no key":             {post("", typeSDP, offer), 2},
		"another body":       {post(right, "text/plain", "x"), 2},
		"no SDP":             {post(right, typeSDP, "x"), 2},
		"large body":         {post(right, typeSDP, strings.Repeat("x", maxOffer+1)), 2},
		"unsupported codecs": {post(right, typeSDP, unsupported), 2},
		"sessions that are not there": {func(t *testing.T, s *server) {
			for i := range times {
				ask(t, http.MethodDelete, s.url+"/"+fmt.Sprint(i), "", "Authorization", right)
			}
		}, 2},
		"every status": {func(t *testing.T, s *server) {
			for range times {
				ask(t, http.MethodPut, s.url, "")
				ask(t, http.MethodPut, s.url+"/x", "")
				ask(t, http.MethodPost, s.url, offer)
				ask(t, http.MethodPost, s.url, offer, "Authorization", right)
				ask(t, http.MethodPost, s.url, offer, "Authorization", "Bearer guessed", "Content-Type", typeSDP)
				ask(t, http.MethodPatch, s.url+"/x", "", "Authorization", right)
			}
		}, 10},
		"a session that is no connection": {func(t *testing.T, s *server) {
			for range times {
				a := ask(t, http.MethodPost, s.url, offer, "Authorization", right, "Content-Type", typeSDP)
				session := strings.TrimSuffix(s.url, "/whip") + a.head.Get("Location")
				ask(t, http.MethodDelete, session, "", "Authorization", right)
			}
		}, 12},
		"an encoder that comes and goes": {func(t *testing.T, s *server) {
			for range times / 2 {
				p := newPublisher(t, wants{})
				p.publish(s.url)
				p.connected()
				p.hangUp()
				ask(t, http.MethodDelete, p.url, "", "Authorization", right) // it may be over already
			}
		}, 14},
		"ICE restarts that are none": {func(t *testing.T, s *server) {
			p := newPublisher(t, wants{})
			p.publish(s.url)
			for range times {
				ask(t, http.MethodPatch, p.url, "a=ice-ufrag:x", "Authorization", right, "Content-Type", typeFragment)
				ask(t, http.MethodPatch, p.url, "", "Authorization", "Bearer guessed", "Content-Type", typeFragment)
			}
		}, 8},
		"garbage by UDP": {func(t *testing.T, s *server) {
			s.garbage(t, "udp", s.sockets.udpAddr.String())
		}, 0},
		"garbage by TCP": {func(t *testing.T, s *server) {
			for range times {
				s.garbage(t, "tcp", s.sockets.tcpAddr.String())
			}
		}, 0},
		"garbage of a publisher": {func(t *testing.T, s *server) {
			p := newPublisher(t, wants{})
			p.publish(s.url)
			p.connected()
			for range 20 * times {
				raw := make(rtcp.RawPacket, 64)
				_, _ = rand.NewChaCha8([32]byte{}).Read(raw)
				raw[0], raw[1] = 0x81, 200+raw[1]%8
				binary.BigEndian.PutUint16(raw[2:], 15)
				_ = p.pc.WriteRTCP([]rtcp.Packet{&raw, &rtcp.PictureLossIndication{MediaSSRC: 1}})
			}
			p.delete()
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{Gate: ingesttest.Gate(admitAgain)})
			tt.play(t, s)
			s.stop()
			var lines int
			for _, level := range []string{"level=INFO", "level=WARN", "level=ERROR"} {
				lines += len(s.log.Lines(level))
			}
			if lines > tt.lines {
				t.Errorf("%d lines, want %d at most:\n%s", lines, tt.lines, s.log)
			}
			if pion := len(s.log.Lines("msg=connection ")); pion > 30 {
				t.Errorf("pion has %d lines:\n%s", pion, s.log)
			}
		})
	}
}

// admitAgain admits who has the key as often as it comes.
func admitAgain(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	if p.Key != key {
		return nil, nil, ingest.ErrUnknownKey
	}
	return ctx, ingesttest.NewRecorder(), nil
}

// garbage sends what looks like packets of WebRTC, or like nothing.
func (s *server) garbage(t *testing.T, network, to string) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), network, to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	random := rand.NewChaCha8([32]byte{1})
	for i := range 1000 {
		p := make([]byte, 2+i)
		_, _ = random.Read(p)
		switch i % 4 {
		case 0: // STUN, RFC 8489 section 5
			p = append([]byte{0, 1, 0, byte(i &^ 3), 0x21, 0x12, 0xa4, 0x42}, p...)
		case 1: // DTLS
			p = append([]byte{22, 254, 253}, p...)
		case 2: // RTP
			p = append([]byte{0x80, 96}, p...)
		}
		if network == "tcp" {
			p = append(binary.BigEndian.AppendUint16(nil, uint16(len(p))), p...)
		}
		if _, err = c.Write(p); err != nil {
			return
		}
	}
}
