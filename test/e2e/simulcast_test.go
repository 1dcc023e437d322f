package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// identity writes a certificate for 127.0.0.1 that vouches for itself.
func identity(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// sums gives the MD5 of every frame of one kind ("v" or "a") of a presentation, as it is stored.
func sums(t *testing.T, url, kind string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, rig.FFmpeg(t), "-v", "error", "-i", url, "-map", "0:"+kind, "-c", "copy", "-f",
		"framemd5", "-")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("read frames of %s: %v", url, err)
	}
	return frameSums(string(out))
}

// frameSums reads what ffmpeg's framemd5 writes.
func frameSums(list string) (all []string) {
	for line := range strings.Lines(list) {
		if f := strings.Split(strings.TrimSpace(line), ","); !strings.HasPrefix(line, "#") && len(f) >= 6 {
			all = append(all, strings.TrimSpace(f[5]))
		}
	}
	return all
}

// whole waits until the recording of a stream whose encoder has gone is finished, and gives its URL.
func whole(t *testing.T, s *rig.Server, stream string) string {
	t.Helper()
	s.Complete(t, stream)
	o := s.AwaitLive(t, stream, "end of the broadcast", patience, func(o rig.Object) bool {
		return o.Text("active_asset_id") == "" && len(o.Texts("recent_asset_ids")) > 0
	})
	a := s.AwaitAsset(t, o.Texts("recent_asset_ids")[0], "finished recording", patience, rig.Finished)
	return s.PlayURL(a.Text("playback_ids.0.id"))
}

// shows waits until the targets of a stream have these statuses.
func shows(t *testing.T, s *rig.Server, stream string, want ...string) {
	t.Helper()
	s.AwaitLive(t, stream, fmt.Sprint("targets ", want), patience, func(o rig.Object) bool {
		var got []string
		for _, target := range o.List("simulcast_targets") {
			got = append(got, strings.TrimSpace(target.Text("status")+" "+target.Text("error_severity")))
		}
		return slices.Equal(got, want)
	})
}

// TestSimulcast forwards from one service to another, over RTMP, RTMPS and SRT, beside a destination that is dead: what
// is recorded there is frame for frame what is recorded here.
func TestSimulcast(t *testing.T) {
	rig.Parallel(t)
	certFile, keyFile := identity(t)
	there := rig.Start(t, rig.Options{Args: []string{"--tls-cert", certFile, "--tls-key", keyFile}})
	here := rig.Start(t, rig.Options{Env: []string{"SSL_CERT_FILE=" + certFile}})
	t.Cleanup(func() { noSecrets(t, there) })
	for name, tt := range map[string]struct {
		targets  []string // schemes
		publish  func(t *testing.T, stream rig.Object, c rig.Clip) *rig.Encoder
		statuses []string
	}{
		"from RTMP": {
			targets: []string{"rtmp", "rtmps", "srt"},
			publish: func(t *testing.T, stream rig.Object, c rig.Clip) *rig.Encoder {
				t.Helper()
				return here.Publish(t, stream.Text("stream_key"), c)
			},
			statuses: []string{"broadcasting", "broadcasting", "errored fatal"},
		},
		"from SRT": {
			targets: []string{"srt", "rtmps"},
			publish: func(t *testing.T, stream rig.Object, c rig.Clip) *rig.Encoder {
				t.Helper()
				return rig.PublishTo(t, here.SRTURL(stream, ffmpegUnhurried), c)
			},
			statuses: []string{"broadcasting", "broadcasting"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			var targets []rig.Object
			var streams []string
			var secrets []string
			for _, scheme := range tt.targets {
				o := there.CreateLive(t, "standard", nil)
				key := o.Text("stream_key")
				streams, secrets = append(streams, o.Text("id")), append(secrets, key, o.Text("srt_passphrase"))
				target := rig.Object{"url": there.RTMP + "/app", "stream_key": key}
				switch scheme {
				case "rtmps":
					target["url"] = there.RTMPS + "/app"
				case "srt": // every packet has to arrive
					target = rig.Object{
						"url": fmt.Sprintf("srt://%s?streamid=%s&passphrase=%s&latency=2000", there.SRT, key,
							o.Text("srt_passphrase")),
					}
				}
				targets = append(targets, target)
			}
			targets = append(targets, rig.Object{"url": "rtmp://127.0.0.1:1/app", "stream_key": "dead"})
			stream := here.CreateLive(t, "standard", rig.Object{"simulcast_targets": targets})
			id := stream.Text("id")
			e := tt.publish(t, stream, rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 15})
			shows(t, here, id, append(slices.Clone(tt.statuses), "errored normal")...)
			if out, err := e.Wait(t, patience); err != nil {
				t.Fatalf("encoder: %v\n%s", err, out)
			}
			after := slices.Repeat([]string{"idle"}, len(targets))
			for i, s := range tt.statuses {
				if s == "errored fatal" {
					after[i] = s
				}
			}
			shows(t, here, id, after...)
			url := whole(t, here, id)
			shows(t, here, id, slices.Repeat([]string{"idle"}, len(targets))...)
			for i, other := range streams {
				if tt.statuses[i] != "broadcasting" {
					continue
				}
				there.AwaitLive(t, other, "end of the link", patience, func(o rig.Object) bool {
					return o.Text("active_ingest_protocol") == ""
				})
				copied := whole(t, there, other)
				if want, got := sums(t, url, "v"), sums(t, copied, "v"); len(want) < 14*30 || !slices.Equal(got, want) {
					t.Errorf("%s: %d pictures recorded there, %d here; equal: %v", tt.targets[i], len(got), len(want),
						slices.Equal(got, want))
				}
				// Which sound is the first beside the first picture, and which the last, is a matter of RTMP's
				// milliseconds.
				want, got := sums(t, url, "a"), sums(t, copied, "a")
				if n := len(want); n < 14*46 ||
					!strings.Contains(strings.Join(got, " "), strings.Join(want[1:n-1], " ")) {
					t.Errorf("%s: %d sounds recorded there, %d here, which are not the same", tt.targets[i], len(got),
						len(want))
				}
			}
			dead := here.Live(t, id).List("simulcast_targets")[len(targets)-1].Text("id")
			if got := events(t, here, dead); !slices.Equal(got, prefixed("created", "starting", "errored", "idle")) {
				t.Errorf("events of the dead target %v", got)
			}
			first := here.Live(t, id).List("simulcast_targets")[0].Text("id")
			if got := events(t, here, first); !slices.Equal(got,
				prefixed("created", "starting", "broadcasting", "idle")) {
				t.Errorf("events of the first target %v", got)
			}
			noSecrets(t, here, secrets...)
		})
	}
}

func prefixed(types ...string) (all []string) {
	for _, s := range types {
		all = append(all, "video.live_stream.simulcast_target."+s)
	}
	return all
}

// TestSimulcastStaysOutside asks for destinations that a service must not reach: each is given up with a reason, and
// nothing is sent.
func TestSimulcastStaysOutside(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{Closed: true})
	stream := s.CreateLive(t, "low", rig.Object{"simulcast_targets": []rig.Object{
		{"url": "rtmp://127.0.0.1:1935/app", "stream_key": "k"},
		{"url": "rtmp://169.254.169.254/app", "stream_key": "k"},
		{"url": "rtmps://localhost:1/app", "stream_key": "k"},
	}})
	s.Publish(t, stream.Text("stream_key"), small())
	shows(t, s, stream.Text("id"), "errored fatal", "errored fatal", "errored fatal")
	s.AwaitLog(t, patience, "simulcast is not possible", "add it with --fetch-allow")
}

// TestSimulcastToOthers forwards to ffmpeg as an RTMP server and to srt-live-transmit as an SRT listener.
func TestSimulcastToOthers(t *testing.T) {
	rig.Parallel(t)
	transmit, err := exec.LookPath("srt-live-transmit")
	if err != nil {
		rig.Missing(t, "srt-live-transmit is not installed")
	}
	s := rig.Start(t, rig.Options{})
	dir := t.TempDir()
	rtmp, srt := free(t), free(t)
	taken, stored := filepath.Join(dir, "rtmp.md5"), filepath.Join(dir, "srt.ts")
	server := serve(t, rig.FFmpeg(t), "-v", "error", "-listen", "1", "-i", "rtmp://"+rtmp+"/app/key", "-map", "0:v",
		"-c", "copy", "-f", "framemd5", taken)
	listener := serve(t, transmit, "-q", "-a:no", "srt://"+srt+"?mode=listener&passphrase=0123456789&pbkeylen=32",
		"file://con")
	file, err := os.Create(stored)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	listener.Stdout = file
	for _, cmd := range []*exec.Cmd{server, listener} {
		if err = cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	bound(t, "/proc/net/tcp", rtmp, server)
	bound(t, "/proc/net/udp", srt, listener)
	stream := s.CreateLive(t, "standard", rig.Object{"simulcast_targets": []rig.Object{
		{"url": "rtmp://" + rtmp + "/app", "stream_key": "key"},
		{"url": "srt://" + srt + "?passphrase=0123456789&pbkeylen=32"},
	}})
	id := stream.Text("id")
	e := rig.PublishTo(t, s.SRTURL(stream, ffmpegUnhurried), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 15})
	shows(t, s, id, "broadcasting", "broadcasting")
	if out, eerr := e.Wait(t, patience); eerr != nil {
		t.Fatalf("encoder: %v\n%s", eerr, out)
	}
	s.AwaitLive(t, id, "without encoder", patience, away) // what it sent last may still be on its way
	url := whole(t, s, id)
	if err = server.Wait(); err != nil { // it ends when it is told goodbye
		t.Errorf("ffmpeg: %v", err)
	}
	if err = listener.Wait(); err != nil {
		t.Errorf("srt-live-transmit: %v", err)
	}
	want := sums(t, url, "v")
	b, err := os.ReadFile(taken)
	if err != nil {
		t.Fatal(err)
	}
	got := frameSums(string(b))
	if len(got) < 10*30 || !slices.Equal(got, want[len(want)-len(got):]) { // it may have come a little later
		t.Errorf("ffmpeg took %d pictures, %d are recorded; the same: no", len(got), len(want))
	}
	if n := len(sums(t, stored, "v")); n < 10*30 || n > len(want) {
		t.Errorf("srt-live-transmit stored %d pictures, %d are recorded", n, len(want))
	}
}

// serve is a program that waits for one connection.
func serve(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...) //nolint:noctx // ended by the test's cleanup
	cmd.Stderr = os.Stderr
	return cmd
}

// free is an address that nobody listens on, and that nobody else is given: this part of the loopback network is not
// used otherwise.
func free(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.77.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// bound waits until a program has opened its socket on an address, which it must be there for. table is the kernel's
// list of sockets.
func bound(t *testing.T, table, address string, by *exec.Cmd) {
	t.Helper()
	at := netip.MustParseAddrPort(address)
	ip := at.Addr().As4()
	// Column 2 is the address, in the machine's order of bytes, and 3 another one, of nobody while there is no
	// connection.
	local := fmt.Sprintf(": %08X:%04X 00000000:0000 ", binary.NativeEndian.Uint32(ip[:]), at.Port())
	for end := time.Now().Add(patience); ; rig.Pause(50 * time.Millisecond) {
		list, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(list), local) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen on %s", by.Path, address)
		}
	}
}
