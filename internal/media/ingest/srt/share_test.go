package srt

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gosrt "github.com/datarhei/gosrt"
	"github.com/datarhei/gosrt/packet"

	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// slowSecrets look the keys of a flood up until they are released, and each other one at once.
type slowSecrets struct {
	secrets
	asked   chan struct{} // by the flood
	release chan struct{}
}

func (s slowSecrets) Passphrase(ctx context.Context, k string) (string, error) {
	if k == "sk-guessed" {
		s.asked <- struct{}{}
		<-s.release
	}
	return s.secrets.Passphrase(ctx, k)
}

// TestFloodOfConclusions: an address that floods the listener with conclusions (true cookies, wrong keys) takes no
// place from others, and no flood takes one from an encoder whose key was right before.
func TestFloodOfConclusions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from     []string
		each     int
		pending  int
		refusing bool // of an encoder at 127.0.0.1
		before   bool // it was connected before
	}{
		"one address":     {[]string{"127.0.0.2"}, 80, 16, false, false},
		"two addresses":   {[]string{"127.0.0.2", "127.0.0.3"}, 40, 32, false, false},
		"its own":         {[]string{"127.0.0.1"}, 20, 16, true, false},
		"its own, before": {[]string{"127.0.0.1"}, 20, 16, false, true},
		"too many": {
			[]string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}, 17, 64, true, false,
		},
		"too many, before": {
			[]string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}, 17, 64, false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := slowSecrets{asked: make(chan struct{}), release: make(chan struct{})}
			s := start(t, Options{Gate: &gate{sink: ingesttest.NewRecorder()}, Secrets: slow})
			if tt.before {
				_ = connect(t, s.addr).Close()
			}
			refused := make(chan struct{})
			var all sync.WaitGroup
			for a, from := range tt.from {
				for n := range tt.each {
					conn, c := induce(t, from, s.addr)
					five(c)
					c.EncryptionField, c.HasKM, c.SRTKM = 2, true, keyMaterial()
					c.StreamId, c.SRTSocketId = "sk-guessed", uint32(1000*a+n+1)
					all.Go(func() {
						if exchange(t, conn, c, 0, ingesttest.Patience) != nil {
							refused <- struct{}{}
						}
					})
				}
			}
			pending := 0
			for range tt.each * len(tt.from) { // each has its response, or waits for it
				select {
				case <-slow.asked:
					pending++
				case <-refused:
				}
			}
			if pending != tt.pending {
				t.Errorf("%d wait for their response, want %d", pending, tt.pending)
			}
			for range 8 {
				_, err := dial(t, s.addr, nil)
				code := strconv.FormatUint(uint64(gosrt.REJX_OVERLOAD), 32)
				overload := err != nil && strings.Contains(err.Error(), code)
				if overload != tt.refusing || err != nil && !overload {
					t.Errorf("an encoder at 127.0.0.1: %v", err)
				}
			}
			close(slow.release)
			go func() {
				all.Wait()
				close(refused)
			}()
			for range refused {
				// those that waited
			}
			s.stop()
		})
	}
}

// keyMaterial is that of a caller who encrypts with AES-128.
func keyMaterial() *packet.CIFKeyMaterialExtension {
	return &packet.CIFKeyMaterialExtension{
		Version: 1, PacketType: 2, Sign: 0x2029, KeyBasedEncryption: packet.EvenKeyEncrypted, Cipher: 2,
		StreamEncapsulation: 2, SLen: 16, KLen: 16, Salt: make([]byte, 16), Wrap: make([]byte, 24),
	}
}

// TestRefusalsAreLoggedSparsely has strangers call many times a second: each reason has a line a second, with the
// number of those that it does not have.
func TestRefusalsAreLoggedSparsely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &ingesttest.Log{}
		s := &Server{opts: Options{Logger: log.Logger()}, refusals: ingest.SparseLog{Logger: log.Logger()}}
		c := &conn{server: s, opts: &s.opts, remote: netip.MustParseAddrPort("127.0.0.2:1"), log: s.opts.Logger}
		const refused = 3000
		for range refused {
			s.report(t.Context(), c, &refusal{gosrt.REJ_BADSECRET, errPassphrase, errPassphrase.Error(), false})
			s.report(t.Context(), c, &refusal{gosrt.REJX_ISE, errors.New("on fire"), "internal", true})
			s.drop("too many callers at a time", c.remote)
			time.Sleep(time.Millisecond)
		}
		s.refusals.Flush()
		for _, about := range []string{errPassphrase.Error(), "on fire", "too many callers"} {
			if lines, told := log.Refusals(about); lines != 4 || told != refused {
				t.Errorf("%d lines about %q tell of %d refusals, want 4 and %d", lines, about, told, refused)
			}
		}
		if n := len(log.Lines(slog.LevelError.String())); n != 4 {
			t.Errorf("%d errors", n)
		}
	})
}
