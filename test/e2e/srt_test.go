package e2e

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// x265 is a picture in HEVC.
func x265(c rig.Clip) rig.Clip {
	c.Video = "libx265"
	c.More = append(c.More, "-preset", "ultrafast", "-x265-params", "log-level=none:bframes=0:pools=1:frame-threads=1")
	return c
}

// srtClip is what SRT encoders send in these tests.
func srtClip(seconds float64) rig.Clip {
	return rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Flash: true, Seconds: seconds}
}

// The latency of peers whose every packet has to arrive: a machine that is short of time makes them give none up.
// ffmpeg counts in microseconds, srt-live-transmit in milliseconds.
const (
	ffmpegUnhurried   = "&latency=2000000"
	transmitUnhurried = "&latency=2000"
)

// TestSRT publishes every codec that comes in a transport stream.
func TestSRT(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	const length = 12
	with := func(audio string, more ...string) rig.Clip {
		c := srtClip(length)
		c.Audio, c.More = audio, more
		return c
	}
	for name, tt := range map[string]struct {
		clip   rig.Clip
		query  string
		codecs string // in the playlist
	}{
		"H.264 and AAC": {with("aac"), "", "mp4a.40.2"},
		"HEVC and AAC":  {x265(with("aac")), "", "hvc1."},
		"AAC in LATM":   {with("aac", "-mpegts_flags", "latm"), "&pbkeylen=24", "mp4a.40.2"},
		"MP3":           {with("libmp3lame"), "&pbkeylen=32", "mp4a.40.34"},
		"AC-3":          {with("ac3"), "", "ac-3"},
		"Opus":          {with("libopus"), "&pbkeylen=16", "opus"},
		"clock at its wrap": {func() rig.Clip {
			c := with("aac")
			c.Offset = float64(1<<33)/90000 - 6.5
			return c
		}(), "", "mp4a.40.2"},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			l := s.CreateLive(t, "low", nil)
			e := rig.PublishTo(t, s.SRTURL(l, ffmpegUnhurried+tt.query), tt.clip)
			// It sends for a while only. What is asked for here stays so afterwards, or is so before anything is to be
			// played.
			now := s.AwaitLive(t, l.Text("id"), "with encoder and asset", patience, func(o rig.Object) bool {
				return !away(o) && o.Text("active_asset_id") != ""
			})
			if got := now.Text("active_ingest_protocol"); got != "srt" {
				t.Errorf("active_ingest_protocol %q", got)
			}
			s.AwaitPlayable(t, s.PlayURL(l.Text("playback_ids.0.id")), patience)
			a := s.AwaitAsset(t, now.Text("active_asset_id"), "playable", patience, rig.Ready)
			_, _, master := s.Get(t, s.PlayURL(l.Text("playback_ids.0.id")))
			if !strings.Contains(string(master), tt.codecs) {
				t.Errorf("no %s in\n%s", tt.codecs, master)
			}
			if said, err := e.Wait(t, patience); err != nil {
				t.Errorf("encoder: %v: %s", err, said)
			}
			a = s.AwaitAsset(t, a.Text("id"), "finished", patience, rig.Finished)
			if a.Text("ingest_type") != "live_srt" {
				t.Errorf("ingest_type %q", a.Text("ingest_type"))
			}
			srtWhole(t, s, a, tt.clip, 0)
		})
	}
	t.Cleanup(func() {
		for _, line := range s.LogLines("encoder disconnected") {
			if line.Number("malformed")+line.Number("packets_dropped")+line.Number("broken_units")+
				line.Number("undecodable") > 0 {
				t.Errorf("%v", line)
			}
		}
	})
}

// srtWhole holds a recording against what was sent: every frame but so many that were lost is there, without a hole,
// picture and sound in step.
func srtWhole(t *testing.T, s *rig.Server, a rig.Object, c rig.Clip, lost int, torn ...string) {
	t.Helper()
	url := s.PlayURL(a.Text("playback_ids.0.id"))
	if lost > 0 { // fewer pictures were counted than the encoder's rate says
		torn = append(torn, "frame-rate")
	}
	checkBut(t, "finished", torn, hlscheck.Options{URL: url}, "tfdt", "segment-duration")
	have := read(t, url, false)
	fps, _ := c.FPS()
	if want := int(math.Round(fps * c.Seconds)); have["video"].count < want-lost-1 || have["video"].count > want+1 {
		t.Errorf("%d pictures, %d were sent and at most %d were lost", have["video"].count, want, lost)
	}
	for kind, p := range have {
		if lost == 0 && p.gap > 0.1 || math.Abs(p.last-p.first-c.Seconds) > 0.25+float64(lost)/fps {
			t.Errorf("%s from %.3f to %.3f s with a hole of %.3f s, sent were %.0f s", kind, p.first, p.last, p.gap,
				c.Seconds)
		}
	}
	if lost == 0 { // else a flash may be among what was lost
		inStep(t, url, int(c.Seconds)-2)
	}
}

// TestSRTTransmit publishes with libsrt's own program: each length of key, a stream whose programs, tracks and
// parameters change, garbage at the port.
func TestSRTTransmit(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	clip := srtClip(8)
	file := rig.File(t, "clip.ts", clip)
	for _, bits := range []string{"16", "24", "32"} {
		t.Run("AES-"+map[string]string{"16": "128", "24": "192", "32": "256"}[bits], func(t *testing.T) {
			rig.Parallel(t)
			l := s.CreateLive(t, "low", nil)
			url := rig.SRTURL(s.SRT, "#!::u=transmitter "+bits+",r="+l.Text("stream_key")+",m=publish",
				l.Text("srt_passphrase"), transmitUnhurried+"&pbkeylen="+bits)
			if said, ok := rig.Transmit(t, file, url); !ok {
				t.Fatalf("srt-live-transmit: %s", said)
			}
			srtWhole(t, s, srtRecorded(t, s, l), clip, 0)
		})
	}
	t.Run("program map changes", func(t *testing.T) {
		rig.Parallel(t)
		// The second part has other PIDs, another size and a clock of its own, as when an encoder's scene is set up
		// again.
		other := clip
		other.Size, other.Offset = "426x240", 5000
		other.More = []string{"-streamid", "0:0x200", "-streamid", "1:0x201", "-mpegts_pmt_start_pid", "0x300"}
		both := filepath.Join(t.TempDir(), "both.ts")
		if err := os.WriteFile(both, slices.Concat(content(t, "one.ts", clip), content(t, "two.ts", other)),
			0o600); err != nil {
			t.Fatal(err)
		}
		l := s.CreateLive(t, "low", nil)
		through := rig.Weather{Seed: 7, Junk: true}.Through(t, s.SRT)
		if said, ok := rig.Transmit(t, both,
			rig.SRTURL(through, l.Text("stream_key"), l.Text("srt_passphrase"), transmitUnhurried)); !ok {
			t.Fatalf("srt-live-transmit: %s", said)
		}
		a := srtRecorded(t, s, l)
		url := s.PlayURL(a.Text("playback_ids.0.id"))
		r := check(t, "finished", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "tfdt", "decodes")
		for _, v := range r.Renditions {
			if v.Discontinuities != 1 {
				t.Errorf("%s has %d discontinuities, want 1", v.URL, v.Discontinuities)
			}
		}
		have := read(t, url, true)
		if have["video"].count != 2*8*30 || math.Abs(a.Number("duration")-16) > 0.3 {
			t.Errorf("%d pictures in %.3f s, sent were 480 in 16", have["video"].count, a.Number("duration"))
		}
		inStep(t, url, 14)
	})
	t.Cleanup(func() { noSecrets(t, s) })
}

// srtRecorded waits for the recording of a stream whose encoder has gone.
func srtRecorded(t *testing.T, s *rig.Server, l rig.Object) rig.Object {
	t.Helper()
	id := l.Text("id")
	l = s.AwaitLive(t, id, "recorded", patience, func(o rig.Object) bool {
		return len(o.Texts("recent_asset_ids")) > 0
	})
	return s.AwaitAsset(t, l.Texts("recent_asset_ids")[0], "finished", patience, rig.Finished)
}

// TestSRTRefusals: each refusal is shown to the peer as what it is.
func TestSRTRefusals(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	// the program is ended after it, and may take long to begin
	file := rig.File(t, "clip.ts", rig.Clip{Size: "160x90", Kbit: 100, GOP: 1, Seconds: 30})
	open, off, busy := s.CreateLive(t, "low", nil), s.CreateLive(t, "low", nil), s.CreateLive(t, "low", nil)
	if code, response := s.Do(t, http.MethodPut, "/video/v1/live-streams/"+off.Text("id")+"/disable",
		nil); code != http.StatusOK {
		t.Fatalf("disable: %d %v", code, response)
	}
	rig.PublishTo(t, s.SRTURL(busy, ""), small())
	playing(t, s, busy)
	const other = "Unknown or erroneous" // what libsrt 1.5 calls codes from 1400 on
	for name, tt := range map[string]struct {
		url  string
		code float64
		want string // in what libsrt says
	}{
		"unknown key": {rig.SRTURL(s.SRT, "sk-wrong-stream-key", open.Text("srt_passphrase"), ""), 1401, other},
		"wrong passphrase": {
			rig.SRTURL(s.SRT, open.Text("stream_key"), "not the passphrase", ""), 1010, "Incorrect passphrase",
		},
		"no passphrase": {
			"srt://" + s.SRT + "?streamid=" + open.Text("stream_key"), 1011, "Password required or unexpected",
		},
		"player": {
			rig.SRTURL(s.SRT, "#!::r="+open.Text("stream_key")+",m=request", open.Text("srt_passphrase"), ""), 1405,
			other,
		},
		"disabled": {s.SRTURL(off, ""), 1403, other},
		"busy":     {s.SRTURL(busy, ""), 1407, other},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			said, ok := rig.Transmit(t, file, tt.url)
			if ok || !strings.Contains(said, "REJECT reported from HS processing: "+tt.want) {
				t.Errorf("srt-live-transmit: %s", said)
			}
			// it is written behind the response
			s.AwaitLog(t, patience, `"publish refused"`, fmt.Sprintf(`"code":%.0f`, tt.code))
			callers := map[string]bool{} // one that gets a late response has asked again, and is refused again
			for _, line := range s.LogLines("publish refused") {
				if line.Number("code") == tt.code {
					callers[line.Text("remote")] = true
				}
			}
			if len(callers) != 1 {
				t.Errorf("refusals of %v with code %.0f in the log", callers, tt.code)
			}
		})
	}
	t.Cleanup(func() {
		noSecrets(t, s, open.Text("stream_key"), open.Text("srt_passphrase"), "sk-wrong-stream-key",
			"not the passphrase")
	})
}

// TestSRTInBadWeather: with 5 % loss, 50 ms of jitter and 120 ms of latency nothing is missing in the recording but
// what SRT itself gave up.
func TestSRTInBadWeather(t *testing.T) {
	rig.Paced(t)
	s := rig.Start(t, rig.Options{})
	clip := srtClip(15)
	clip.Kbit = 1500
	l := s.CreateLive(t, "low", nil)
	through := rig.Weather{Loss: 0.05, Jitter: 50 * time.Millisecond, Seed: 42, Junk: true}.Through(t, s.SRT)
	e := rig.PublishTo(t, rig.SRTURL(through, l.Text("stream_key"), l.Text("srt_passphrase"), "&latency=120000"), clip)
	s.AwaitPlayable(t, s.PlayURL(l.Text("playback_ids.0.id")), patience) // as it is for a while after the end, too
	if said, err := e.Wait(t, patience); err != nil {
		t.Errorf("encoder: %v: %s", err, said)
	}
	a := srtRecorded(t, s, l)
	link := s.AwaitLogLine(t, "encoder disconnected", patience)
	t.Logf("%v", link)
	if link.Number("packets_lost") < 50 || link.Number("packets_retransmitted") < 50 {
		t.Errorf("there was no loss to mend: %v", link)
	}
	given := int(link.Number("broken_units") + link.Number("undecodable"))
	if link.Number("packets_dropped") == 0 && given > 0 {
		t.Errorf("%d access units were dropped though every packet came: %v", given, link)
	}
	if link.Number("packets_dropped") > link.Number("packets")/20 { // a busy machine is late itself
		t.Errorf("SRT gave up %.0f packets: %v", link.Number("packets_dropped"), link)
	}
	// A hole of one packet may hide a whole small picture, of which nothing came that could be counted.
	srtWhole(t, s, a, clip, given+int(link.Number("packets_dropped")))
	if log := s.Log(); bytes.Contains([]byte(log), []byte("panic")) {
		t.Error("something panicked")
	}
}

// TestSRTGivesUp: of every hundred packets one never comes. Of the recording only those pictures are missing that lost
// bytes of their own, also where B-frames are references; no key frame is, so that the rules for whole streams hold;
// sound is missing for no longer than a packet's, and Chromium plays it.
func TestSRTGivesUp(t *testing.T) {
	rig.Parallel(t)
	for name, pyramid := range map[string]bool{"without B-frames": false, "with a pyramid": true} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			s := rig.Start(t, rig.Options{})
			clip := srtClip(12)
			clip.Kbit, clip.Flash, clip.NoB = 1500, false, !pyramid
			l := s.CreateLive(t, "low", nil)
			through := rig.Weather{Never: 101}.Through(t, s.SRT)
			e := rig.PublishTo(t,
				rig.SRTURL(through, l.Text("stream_key"), l.Text("srt_passphrase"), "&latency=1000000"), clip)
			if said, err := e.Wait(t, patience); err != nil {
				t.Errorf("encoder: %v: %s", err, said)
			}
			a := srtRecorded(t, s, l)
			link := s.AwaitLogLine(t, "encoder disconnected", patience)
			t.Logf("%v", link)
			gone := int(link.Number("broken_units") + link.Number("undecodable"))
			// Whether a key frame is among those that lost a packet is chance: mpegts.TestLostKeyFrames loses them.
			replaced := link.Number("key_frames_replaced") + link.Number("references_replaced")
			if link.Number("packets_dropped") < 10 || replaced < 1 || link.Number("undecodable") > 0 {
				t.Errorf("%v", link)
			}
			srtWhole(t, s, a, clip, gone+int(link.Number("packets_dropped"))/2)
			url := s.PlayURL(a.Text("playback_ids.0.id"))
			for kind, p := range read(t, url, false) {
				if p.gap > 0.2 { // a packet may hold as much sound
					t.Errorf("a hole of %.3f s in the %s", p.gap, kind)
				}
			}
			page := browser.Start(t).Open(t, s.WatchURL(a.Text("playback_ids.0.id")))
			page.FirstPicture(t, patience)
			// a busy machine stalls by itself
			if p := page.Plays(t, clip.Seconds/2, patience); p.Restarts > 0 || p.Error != "" || p.Stalls > 5 {
				t.Errorf("played: %+v", p)
			}
		})
	}
}
