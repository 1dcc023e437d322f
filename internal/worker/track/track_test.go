package track_test

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// Whatever holds sound becomes an alternate audio track: AAC as it is, all else as AAC-LC.
func TestAudioTracks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("encodes fifteen files")
	}
	film := filmtest.Usual(t, "film.mp4")
	spans := []float64{0, 4, 8, 12, 13}
	for name, tt := range map[string]struct {
		args           []string
		rate, channels int
		same           string // codec whose packets are passed through
		seconds        float64
	}{
		"stereo.m4a":    {[]string{"-ac", "2", "-c:a", "aac"}, 48000, 2, "aac", 13},
		"faststart.m4a": {[]string{"-ac", "2", "-c:a", "aac", "-movflags", "+faststart"}, 48000, 2, "aac", 13},
		"low.m4a":       {[]string{"-ar", "22050", "-c:a", "aac"}, 22050, 1, "aac", 13},
		"surround.m4a":  {[]string{"-ac", "6", "-c:a", "aac"}, 48000, 2, "", 13},
		"a.aac":         {[]string{"-ar", "44100", "-ac", "2", "-c:a", "aac"}, 44100, 2, "aac", 13},
		"film.mp4": {
			[]string{
				"-f", "lavfi", "-i", "color=s=64x64:d=13", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac",
			}, 48000, 1, "aac", 13,
		},
		"film.mkv": {
			[]string{
				"-f", "lavfi", "-i", "color=s=64x64:d=13", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac",
			}, 48000, 1, "aac", 13,
		},
		"a.mp3":        {[]string{"-ac", "2"}, 48000, 2, "", 13},
		"mono.wav":     {nil, 48000, 1, "", 13},
		"low.wav":      {[]string{"-ar", "22050"}, 48000, 1, "", 13},
		"surround.wav": {[]string{"-ac", "6"}, 48000, 2, "", 13},
		"a.flac":       {[]string{"-ar", "44100"}, 44100, 1, "", 13},
		"a.opus":       {[]string{"-ac", "2"}, 48000, 2, "", 13},
		"a.webm":       {[]string{"-ac", "2", "-c:a", "libopus"}, 48000, 2, "", 13},
		"long.m4a":     {[]string{"-af", "apad", "-t", "600", "-c:a", "aac"}, 48000, 1, "aac", 600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workertest.New(t, workertest.Options{})
			a := w.ReadyAsset(film)
			path := filmtest.File(t, name, filmtest.Args(filmtest.Sound("13"), tt.args)...)
			tr := w.AddTrackFrom(a, asset.AudioTrack, w.Site.Offer(path))
			w.Must(w.DoAll())
			got, _ := w.FindTrack(a, tr)
			if got.Status != asset.TrackReady || got.MaxChannels != tt.channels ||
				math.Abs(got.Duration-tt.seconds) > 0.1 || got.Primary {
				t.Fatalf("track %+v %+v", got, got.Errors)
			}
			library := ondemand.NewLibrary(workertest.Objects{Store: w.Store}, 1<<20)
			f, err := library.File(w.Ctx(), got.Object)
			w.Must(err)
			if len(f.Tracks) != 1 || f.Tracks[0].Config.SampleRate != tt.rate {
				t.Fatalf("stored %d tracks", len(f.Tracks))
			}
			if tt.same != "" {
				if n := filmtest.Packets(t, path, tt.same); f.Tracks[0].Len() != n {
					t.Errorf("%d frames, the file has %d", f.Tracks[0].Len(), n)
				}
			}
			follow(w, library, f.Tracks[0], got, spans)
			w.NothingLeft()
			w.Must(w.DeleteTrack(w.Ctx(), workertest.Env, a.ID, tr.ID, w.Now()))
			w.Must(w.DoAll())
			if left := w.Objects(); len(left) != 2 {
				t.Errorf("the deleted track leaves %v", left)
			}
			if w.Asset(a.ID).Status != asset.Ready || w.Samples(a)["v"] != 390 {
				t.Error("the asset is not what it was")
			}
		})
	}
}

// follow plays a track beside an asset: its segments are as long as those of the asset, and nothing goes on behind.
func follow(w *workertest.World, library *ondemand.Library, tr *mp4.Track, row asset.Track, spans []float64) {
	w.T.Helper()
	l := ondemand.Follow(tr, row.Object, string(row.ID), spans, timeline.Origin)
	if tr.Kind != frame.Audio || len(l.Chunks) != len(spans)-1 {
		w.T.Fatalf("%d chunks of %s", len(l.Chunks), tr.Kind)
	}
	for i, c := range l.Chunks {
		if d := l.Seconds(i) - (spans[i+1] - spans[i]); c.Gap || math.Abs(d) > 0.1 {
			w.T.Errorf("chunk %d is %.3f s too long: %+v", i, d, c)
		}
		if _, err := library.Chunk(w.Ctx(), *l.Source, int64(i), c); err != nil {
			w.T.Error(err)
		}
	}
	if first := float64(l.Chunks[0].Time)/float64(l.Timescale) - timeline.Origin; first < -0.05 || first > 0.05 {
		w.T.Errorf("it begins at %.3f s", first)
	}
}

func TestTextTracks(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{})
	a := w.ReadyAsset(filmtest.Usual(t, "a.mp4"))
	for name, content := range map[string]string{
		"SRT":            "1\n00:00:01,000 --> 00:00:02,000\nGr\u00fc\u00dfe\n",
		"with BOM, CRLF": "\xef\xbb\xbf1\r\n00:00:01,000 --> 00:00:02,000\r\nGr\u00fc\u00dfe\r\n",
		"Latin-1":        "1\n00:00:01,000 --> 00:00:02,000\nGr\xfc\xdfe\n",
		"UTF-16":         "\xff\xfe" + utf16("1\n00:00:01,000 --> 00:00:02,000\nGr\u00fc\u00dfe\n"),
		"WebVTT":         "WEBVTT\n\n00:01.000 --> 00:02.000 align:start\nGr\u00fc\u00dfe\n",
		"unordered": "2\n00:00:05,000 --> 00:00:06,000\nlater\n\n1\n00:00:01,000 --> " +
			"00:00:02,000\nGr\u00fc\u00dfe\n",
	} {
		tr := w.AddTrackFrom(a, asset.TextTrack, w.Site.Offer(filmtest.Text(t, "x", content)))
		w.Must(w.DoAll())
		got, _ := w.FindTrack(a, tr)
		if got.Status != asset.TrackReady || got.Duration < 2 || got.Object == "" {
			t.Errorf("%s: %+v %+v", name, got, got.Errors)
			continue
		}
		if vtt := string(w.ReadObject(got.Object)); !strings.HasPrefix(vtt, "WEBVTT\n") ||
			!strings.Contains(vtt, "00:00:01.000 --> 00:00:02.000") || !strings.Contains(vtt, "Gr\u00fc\u00dfe") {
			t.Errorf("%s became %q", name, vtt)
		}
	}
}

func utf16(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
		b.WriteByte(byte(r >> 8))
	}
	return b.String()
}

// A file that is at fault errors its track in plain words, and nothing else.
func TestTracksRefuse(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{MaxSize: 20_000_000})
	a := w.ReadyAsset(filmtest.Usual(t, "a.mp4"))
	before := w.Objects()
	whole, err := os.ReadFile(filmtest.File(t, "a.m4a", filmtest.Args(filmtest.Sound("3"), []string{"-c:a", "aac"})...))
	w.Must(err)
	mute := filmtest.File(t, "mute.mp4", filmtest.Args(filmtest.Picture("1"), filmtest.H264)...)
	iamf := workertest.Renamed(t, filmtest.File(t, "i.mp4",
		filmtest.Args(filmtest.Picture("1"), filmtest.Sound("1"), filmtest.H264)...), [3]string{"", "iamf"})
	for name, tt := range map[string]struct {
		typ  asset.TrackType
		url  string
		want string
	}{
		"no cue": {
			asset.TextTrack, w.Site.Offer(filmtest.Text(t, "x", "nothing in here")), "no usable subtitle file",
		},
		"page": {
			asset.TextTrack, w.Site.Offer(filmtest.Text(t, "x", "<!doctype html><html></html>")),
			"no usable subtitle file",
		},
		"empty text":   {asset.TextTrack, w.Site.Offer(filmtest.Text(t, "x", "")), "no usable subtitle file"},
		"text is film": {asset.TextTrack, w.Site.Offer(mute), "no usable subtitle file"},
		"huge text": {
			asset.TextTrack, w.Site.Offer(filmtest.Text(t, "x", strings.Repeat("x\n", 9<<20))),
			"is larger than the 16777216 bytes allowed",
		},
		"gone text": {asset.TextTrack, w.Site.URL + "/none", "the server responded with 404"},
		"empty":     {asset.AudioTrack, w.Site.Offer(filmtest.Text(t, "x", "")), "the file is empty"},
		"page again": {
			asset.AudioTrack, w.Site.Offer(filmtest.Text(t, "x", "<!doctype html><html></html>")),
			"leads to a web page",
		},
		"playlist": {
			asset.AudioTrack, w.Site.Offer(filmtest.Text(t, "x", "#EXTM3U\nhttp://127.0.0.1/x.ts\n")),
			"leads to a playlist",
		},
		"text": {
			asset.AudioTrack, w.Site.Offer(filmtest.Text(t, "x", "1\n00:00:01,000 --> 00:00:02,000\nHello\n")),
			"the file is text",
		},
		"noise": {
			asset.AudioTrack, w.Site.Offer(filmtest.Text(t, "x", strings.Repeat("\x00\x02\x01", 999))),
			"no known audio format",
		},
		"mute film": {asset.AudioTrack, w.Site.Offer(mute), "the file has no audio"},
		"IAMF":      {asset.AudioTrack, w.Site.Offer(iamf), "audio is of a codec that is not supported (iamf)"},
		"cut off": {
			asset.AudioTrack, w.Site.Offer(filmtest.Text(t, "x", string(whole[:len(whole)/2]))), "is not complete",
		},
		"broken MP3": {
			asset.AudioTrack,
			w.Site.Offer(filmtest.Text(t, "x", "ID3\x04\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x00\xfe\x01", 3000))),
			"the file",
		},
		"too large": {
			asset.AudioTrack,
			w.Site.Handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 21_000_000)) }),
			"is larger than the 20000000 bytes allowed",
		},
		"very long": {
			asset.AudioTrack,
			w.Site.Offer(filmtest.File(t, "x.flac", "-f", "lavfi", "-i", "anullsrc=r=1000:cl=mono", "-t", "46000")),
			"longer than 12 hours",
		},
	} {
		tr := w.AddTrackFrom(a, tt.typ, tt.url)
		if err := w.DoAll(); !fault.Permanent(err) {
			t.Errorf("%s: the job ended with %v", name, err)
		}
		got, _ := w.FindTrack(a, tr)
		if got.Status != asset.TrackErrored || got.Errors == nil || got.Errors.Type != "invalid_input" ||
			!strings.Contains(strings.Join(got.Errors.Messages, "; "), tt.want) {
			t.Errorf("%s: %s %+v, want %q", name, got.Status, got.Errors, tt.want)
		}
		if got.Object != "" || got.Errors != nil && strings.Contains(strings.Join(got.Errors.Messages, ""), w.Scratch) {
			t.Errorf("%s: %+v %+v", name, got, got.Errors)
		}
	}
	if after := w.Objects(); len(after) != len(before) {
		t.Errorf("stored: %v", after)
	}
	w.NothingLeft()
	if got := w.Asset(a.ID); got.Status != asset.Ready || w.Samples(got)["v"] != 390 {
		t.Errorf("the asset is %+v", got)
	}
}

// TestTTMLTracks: TTML is recognised by its content, whatever the file's name and type.
func TestTTMLTracks(t *testing.T) {
	t.Parallel()
	const doc = `<?xml version="1.0"?><tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="1s" end="2s">eins</p>` +
		`<p><span begin="2s" end="2.5s">zwei &amp; drei</span></p></div></body></tt>`
	for _, name := range []string{"a.ttml", "a.dfxp", "a.xml"} {
		w := workertest.New(t, workertest.Options{})
		a := w.ReadyAsset(filmtest.Usual(t, "a.mp4"))
		tr := w.AddTrackFrom(a, asset.TextTrack, w.Site.Offer(filmtest.Text(t, name, doc)))
		w.Must(w.DoAll())
		got, _ := w.FindTrack(a, tr)
		if got.Status != asset.TrackReady {
			t.Fatalf("%s: %+v", name, got)
		}
		const want = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\neins\n\n00:00:02.000 --> 00:00:02.500\nzwei &amp; drei\n"
		if vtt := string(w.ReadObject(got.Object)); vtt != want {
			t.Errorf("%s became\n%s", name, vtt)
		}
	}
}

// A track whose store fails is made later; one that was deleted meanwhile leaves no file behind.
func TestTrackStartsOver(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{})
	a := w.ReadyAsset(filmtest.Usual(t, "a.mp4"))
	before := w.Objects()
	srt := w.Site.Offer(filmtest.Text(t, "x", "1\n00:00:01,000 --> 00:00:02,000\nHello\n"))
	m4a := w.Site.Offer(filmtest.File(t, "a.m4a", filmtest.Args(filmtest.Sound("3"), []string{"-c:a", "aac"})...))
	for typ, url := range map[asset.TrackType]string{asset.TextTrack: srt, asset.AudioTrack: m4a} {
		tr := w.AddTrackFrom(a, typ, url)
		j := w.Jobs.Take()[0]
		w.Store.Fail = func(string) error { return workertest.ErrStore }
		if err := w.Do(j, 1); !errors.Is(err, workertest.ErrStore) {
			t.Fatalf("got %v", err)
		}
		w.Store.Fail = func(string) error { // deleted while it is stored
			w.Must(w.DeleteTrack(w.Ctx(), workertest.Env, a.ID, tr.ID, w.Now()))
			w.Must(w.Do(w.Jobs.Take()[0], 1)) // its purge finds nothing yet
			return nil
		}
		w.Must(w.Do(j, 2))
		w.Store.Fail = nil
		if after := w.Objects(); len(after) != len(before) {
			t.Errorf("%s track leaves %v", typ, after)
		}
		// before it died
		w.Must(w.Store.Put(w.Ctx(), objectkey.Tracks(a.Media)+string(tr.ID)+".vtt", bytes.NewReader([]byte("x"))))
		w.Must(w.Do(j, 3))
		if after := w.Objects(); len(after) != len(before) {
			t.Errorf("%s track leaves %v", typ, after)
		}
	}
	w.NothingLeft()
	tr := w.AddTrackFrom(a, asset.AudioTrack, m4a)
	j := w.Jobs.Take()[0]
	// what the storage says is nobody's fault: the bucket's policy may be mended
	_, lost := w.Store.Stat(w.Ctx(), "media/lost")
	w.Store.Fail = func(string) error { return lost }
	if err := w.Do(j, 1); !errors.Is(err, lost) || fault.Permanent(err) {
		t.Errorf("got %v", err)
	}
	w.Store.Fail = nil
	if got, _ := w.FindTrack(a, tr); got.Status != asset.TrackPreparing {
		t.Errorf("track %+v", got)
	}
	w.Must(w.Do(j, 2))
	if got, _ := w.FindTrack(a, tr); got.Status != asset.TrackReady {
		t.Errorf("track %+v", got)
	}
	w.Must(w.Do(j, 3)) // it was done
}
