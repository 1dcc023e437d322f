package ingest_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

const ofMP4 = "mov,mp4,m4a,3gp,3g2,mj2"

var twoSounds = filmtest.Args(filmtest.Picture("13"), filmtest.Sound("13"), filmtest.Sound("13"), filmtest.H264,
	[]string{"-map", "0", "-map", "1", "-map", "2", "-c:a:0", "ac3", "-c:a:1", "aac"})

// Every container that is played becomes an asset with all its pictures.
func TestIngest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file      string
		args      []string
		container string
		tracks    string // of input-info
		video     bool
		primed    int // frames of sound in front of the beginning
	}{
		"MP4": {"a.mp4", filmtest.Video(), ofMP4, "video h264, audio aac", true, 1},
		"MOV": {"a.mov", filmtest.Video(), ofMP4, "video h264, audio aac", true, 1},
		"fragmented": {
			"a.mp4", filmtest.Video("-movflags", "+frag_keyframe+empty_moov"), ofMP4, "video h264, audio aac", true, 0,
		},
		"Matroska":                 {"a.mkv", filmtest.Video(), "matroska,webm", "video h264, audio aac", true, 0},
		"MPEG-TS":                  {"a.ts", filmtest.Video(), "mpegts", "video h264, audio aac", true, 0},
		"mute":                     {"a.mkv", filmtest.Video("-an"), "matroska,webm", "video h264", true, 0},
		"second sound in Matroska": {"a.mkv", twoSounds, "matroska,webm", "video h264, audio ac3, audio aac", true, 0},
		"second sound in MP4":      {"a.mp4", twoSounds, ofMP4, "video h264, audio ac3, audio aac", true, 1},
		"M4A": {
			"a.m4a", filmtest.Args(filmtest.Sound("13"), []string{"-c:a", "aac"}), ofMP4, "audio aac", false, 1,
		},
		"bare AAC": {
			"a.aac", filmtest.Args(filmtest.Sound("13"), []string{"-c:a", "aac"}), "aac", "audio aac", false, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			path := filmtest.File(t, tt.file, tt.args...)
			a := w.ReadyAsset(path)
			if d := a.Facts.Duration; d < 12.9 || d > 13.1 {
				t.Errorf("duration %.3f", d)
			}
			if a.Facts.HasVideo != tt.video ||
				tt.video &&
					(a.Facts.Width != 160 || a.Facts.Height != 90 || a.Facts.FrameRate < 29.9 ||
						a.Facts.FrameRate > 30.1) {
				t.Errorf("facts %+v", a.Facts)
			}
			if a.Progress != (asset.Progress{State: "completed", Percent: 100}) || a.Index == "" || len(a.Uses) != 0 {
				t.Errorf("asset %+v", a)
			}
			count := w.Samples(a)
			if tt.video && count["v"] != filmtest.Packets(t, path, "h264") {
				t.Errorf("%d pictures, the file has %d", count["v"], filmtest.Packets(t, path, "h264"))
			}
			if want := filmtest.Packets(t, path, "aac") - tt.primed; a.Facts.HasAudio != (want > 0) ||
				want > 0 && count["a"] != want {
				t.Errorf("%d frames of sound, the file has %d", count["a"], want)
			}
			if len(a.InputInfo) != 1 || a.InputInfo[0].File.ContainerFormat != tt.container ||
				tracks(a.InputInfo[0]) != tt.tracks {
				t.Errorf("input info %+v", a.InputInfo)
			}
			if rows, err := w.Timeline(w.Ctx(), a.ID, 0); err != nil || len(rows) != 0 {
				t.Errorf("%d rows are left, %v", len(rows), err)
			}
			w.NothingLeft()
		})
	}
}

func tracks(info asset.InputInfo) string {
	var out []string
	for _, t := range info.File.Tracks {
		if t.Duration < 12.5 || t.Duration > 13.5 {
			out = append(out, "wrong duration of")
		}
		out = append(out, t.Type+" "+t.Encoding)
	}
	return strings.Join(out, ", ")
}

// What can't be played is refused in plain words, leaves nothing behind, and is still described.
func TestIngestRefuses(t *testing.T) {
	t.Parallel()
	whole := filmtest.Usual(t, "whole.mp4")
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	fast, err := os.ReadFile(filmtest.File(t, "fast.mp4", "-i", whole, "-c", "copy", "-movflags", "+faststart"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path   string
		want   string
		tracks int
	}{
		"empty": {filmtest.Text(t, "x", ""), "the file is empty", 0},
		"HTML": {
			filmtest.Text(t, "x", "<!doctype html><html><body>Not found</body></html>"), "leads to a web page", 0,
		},
		"M3U8": {
			filmtest.Text(t, "x", "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"), "leads to a playlist", 0,
		},
		"ffconcat": {
			filmtest.Text(t, "x", "ffconcat version 1.0\nfile /etc/passwd\n"), "leads to a playlist", 0,
		},
		"text": {filmtest.Text(t, "x", "1\n00:00:01,000 --> 00:00:02,000\nHello\n"), "the file is text", 0},
		"noise": {
			filmtest.Text(t, "x", strings.Repeat("\x00\x01\x02\xfe", 1000)), "no known media format", 0,
		},
		"cut off":       {filmtest.Text(t, "x", string(data[:len(data)-1000])), "is not complete", 0},
		"media cut off": {filmtest.Text(t, "x", string(fast[:len(fast)-20_000])), "is not complete", 0},
		"only an index": {filmtest.Text(t, "x", string(fast[:9000])), "is not complete", 0},
		"encrypted": {
			filmtest.File(t, "x.mp4", "-i", whole, "-c", "copy", "-encryption_scheme", "cenc-aes-ctr",
				"-encryption_key", "76a6c65c5ea762046bd749a2e632ccbb", "-encryption_kid",
				"a7e61c373e219033c21091fa607bf3b8"), "is encrypted", 0,
		},
		"long": {
			filmtest.File(t, "x.mp4", "-f", "lavfi", "-i", "color=s=32x32:r=1:d=4", "-vf", "setpts=N*15000/TB",
				"-fps_mode", "passthrough", "-c:v", "libx264", "-pix_fmt", "yuv420p"), "lasts longer than 12 hours", 1,
		},
		"long MKV": {
			filmtest.File(t, "x.mkv", "-f", "lavfi", "-i", "color=s=32x32:r=1:d=4", "-vf", "setpts=N*15000/TB",
				"-fps_mode", "passthrough", "-c:v", "libx264", "-pix_fmt", "yuv420p"), "lasts longer than 12 hours", 1,
		},
		"broken Matroska": {
			filmtest.Text(t, "x", "\x1a\x45\xdf\xa3"+strings.Repeat("\x00\xff", 3000)), "can't be read as Matroska", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			a := w.refused(w.Site.Offer(tt.path), tt.want)
			switch n := len(a.InputInfo); {
			case n > 1, tt.tracks > 0 && n != 1:
				t.Errorf("input info %+v", a.InputInfo)
			case n == 1 && (len(a.InputInfo[0].File.Tracks) != tt.tracks || a.InputInfo[0].Settings.URL == ""):
				t.Errorf("input info %+v", a.InputInfo)
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, workertest.Options{MaxSize: 10_000})
		w.refused(w.Site.Offer(whole), "is larger than the 10000 bytes allowed")
	})
	t.Run("private address", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, workertest.Options{Strict: true})
		w.refused(w.Site.Offer(whole), "is not allowed: loopback")
	})
	t.Run("not there", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, workertest.Options{})
		w.refused(w.Site.URL+"/nothing?secret=xyz", "the server responded with 404")
	})
	t.Run("never succeeds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, workertest.Options{})
		w.refused(w.Site.Handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }),
			"the server responded with 502")
	})
}

// refused wants an asset of a URL to be errored with these words.
func (w *world) refused(url, want string) asset.Asset {
	w.T.Helper()
	a := w.NewAsset(assetopt.Input{URL: url})
	if err := w.DoAll(); err == nil || fault.KindOf(err) == fault.Internal {
		w.T.Errorf("the job ended with %v", err)
	}
	a = w.Asset(a.ID)
	if a.Status != asset.Errored || a.Errors == nil || a.Errors.Type != "invalid_input" ||
		len(a.Errors.Messages) != 1 || !strings.Contains(a.Errors.Messages[0], want) {
		w.T.Fatalf("asset is %s with %+v, want %q", a.Status, a.Errors, want)
	}
	if said := a.Errors.Messages[0]; strings.Contains(said, w.Scratch) || strings.Contains(said, "secret") ||
		strings.Contains(said, string(a.Media)) {
		w.T.Errorf("it says too much: %s", said)
	}
	if left := w.Objects(); len(left) != 0 {
		w.T.Errorf("left in the store: %v", left)
	}
	w.NothingLeft()
	return a
}

// A rewritten file can be watched from its first segment on, and a run that broke off is made again without a trace.
func TestRewriteGrowsAndStartsOver(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.mkv", "a.ts"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			path := filmtest.Usual(t, name)
			uninterrupted := w.ReadyAsset(path)
			want := w.contents(uninterrupted)

			a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(path)})
			j := w.Jobs.Take()[0]
			w.Store.Fail = func(key string) error {
				if strings.HasSuffix(key, "/v/2.m4s") {
					return workertest.ErrStore
				}
				return nil
			}
			if err := w.Do(j, 1); !errors.Is(err, workertest.ErrStore) {
				t.Fatalf("got %v", err)
			}
			growing := w.Asset(a.ID)
			rows, err := w.Timeline(w.Ctx(), a.ID, 0)
			w.Must(err)
			if growing.Status != asset.Preparing || len(rows) == 0 || len(growing.Tracks) != 2 ||
				growing.Facts.Duration < 3.9 {
				t.Fatalf("%d rows of %+v", len(rows), growing)
			}
			if n := w.Samples(growing); n["v"] < 110 {
				t.Errorf("%v can be watched", n)
			}
			put := map[string]bool{}
			w.Store.Fail = func(key string) error {
				if put[key] {
					t.Errorf("%s is stored twice", key)
				}
				put[key] = true
				again, err := w.Timeline(w.Ctx(), a.ID, 0)
				if err != nil || len(again) < len(rows) {
					t.Errorf("%d rows, there were %d", len(again), len(rows))
				}
				return nil
			}
			w.Must(w.Do(j, 2))
			w.Store.Fail = nil
			if put[objectkey.Media(a.Media)+"v/0.m4s"] {
				t.Error("what was on record was stored again")
			}
			got := w.Asset(a.ID)
			if got.Status != asset.Ready || len(got.Tracks) != 2 || got.Tracks[0].ID != growing.Tracks[0].ID {
				t.Errorf("asset %+v", got)
			}
			if have := w.contents(got); !slices.Equal(have, want) {
				t.Errorf("started over it has other segments:\n%v\n%v", have, want)
			}
			w.NothingLeft()
		})
	}
}

// contents are names and sizes of all of an asset's objects, and its index.
func (w *world) contents(a asset.Asset) []string {
	w.T.Helper()
	var out []string
	prefix := objectkey.Media(a.Media)
	for key, err := range w.Store.List(w.Ctx(), prefix) {
		w.Must(err)
		data := strings.ReplaceAll(string(w.ReadObject(key)), string(a.Media), "")
		out = append(out, strings.TrimPrefix(key, prefix)+" "+strconv.Itoa(len(data)))
		if strings.HasSuffix(key, ".jsonl") {
			out = append(out, data)
		}
	}
	return out
}

// After a crash between taking over the file and telling of it nothing is fetched again.
func TestIngestGoesOnFromStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	path := filmtest.Usual(t, "a.mp4")
	url := w.Site.Offer(path)
	a := w.NewAsset(assetopt.Input{URL: url})
	j := w.Jobs.Take()[0]
	w.Store.Fail = func(key string) error {
		if strings.HasSuffix(key, "timeline.jsonl") {
			return workertest.ErrStore
		}
		return nil
	}
	if err := w.Do(j, 1); !errors.Is(err, workertest.ErrStore) {
		t.Fatalf("got %v", err)
	}
	w.Store.Fail = nil
	w.Site.Close()
	w.Must(w.Do(j, 2))
	if got := w.Asset(a.ID); got.Status != asset.Ready || w.Samples(got)["v"] != 390 {
		t.Errorf("asset %+v", got)
	}
	w.NothingLeft()
	w.Must(w.Do(j, 3)) // it was done
}

// An asset that is deleted while it is made ends the work and leaves nothing.
func TestDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.mp4", "a.mkv"} {
		path := filmtest.Usual(t, name)
		for _, when := range []string{"download", "store"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, workertest.Options{})
				var a asset.Asset
				gone := false
				remove := func() {
					if !gone {
						gone = true
						w.Must(w.Delete(w.Ctx(), workertest.Env, a.ID, w.Now()))
					}
				}
				url := w.Site.Offer(path)
				if when == "download" {
					url = w.Site.Handle(func(rw http.ResponseWriter, r *http.Request) {
						remove()
						http.ServeFile(rw, r, path)
					})
				} else {
					w.Store.Fail = func(key string) error {
						if strings.Contains(key, "source") || strings.Contains(key, "1.m4s") {
							remove()
						}
						return nil
					}
				}
				a = w.NewAsset(assetopt.Input{URL: url})
				j := w.Jobs.Take()[0]
				w.Must(w.Do(j, 1))
				if !gone {
					t.Error("it was not deleted")
				}
				if left := w.Objects(); len(left) != 0 {
					t.Errorf("left in the store: %v", left)
				}
				w.NothingLeft()
				w.Must(w.DoAll()) // the purge
			})
		}
	}
}

// TestDeletedBetweenAttempts leaves nothing of what the first attempt downloaded.
func TestDeletedBetweenAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	a := w.NewAsset(assetopt.Input{URL: "http://localhost/a.mp4"})
	j := w.Jobs.Take()[0]
	w.Must(os.WriteFile(filepath.Join(w.Scratch, "asset-"+string(a.ID)), []byte("half"), 0o600))
	w.Must(w.Delete(w.Ctx(), workertest.Env, a.ID, w.Now()))
	w.Must(w.Do(j, 2))
	w.NothingLeft()
}

// A file that takes its process down each time, or makes it panic, ends as errored.
func TestIngestAlwaysEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(filmtest.Usual(t, "a.mkv"))})
	j := w.Jobs.Take()[0]
	w.Store.Fail = func(string) error { panic("a bug") }
	last := w.Handlers[j.Kind].MaxAttempts
	for attempt := 1; attempt < last; attempt++ {
		if err := w.Do(j, attempt); err == nil || !strings.Contains(err.Error(), "a bug") {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
		if w.Asset(a.ID).Status != asset.Preparing {
			t.Fatalf("attempt %d was the last", attempt)
		}
	}
	if err := w.Do(j, last); err == nil || w.Asset(a.ID).Status != asset.Errored {
		t.Errorf("the last attempt: %v", err)
	}
	b := w.NewAsset(assetopt.Input{URL: w.Site.Offer(filmtest.Usual(t, "a.mkv"))})
	if err := w.DoAgain(w.Jobs.Take()[0], job.Job{Attempt: 1, Crashes: job.MaxCrashes}); err == nil ||
		w.Asset(b.ID).Status != asset.Errored {
		t.Errorf("after the process died too often: %v", err)
	}
	w.NothingLeft()
}

// Names of the first input go to its sound; the other inputs become tracks.
func TestInputsBecomeTracks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	srt := filmtest.Text(t, "x.srt", "1\n00:00:01,000 --> 00:00:02,000\nHello\n")
	german := filmtest.File(t, "de.m4a", filmtest.Args(filmtest.Sound("13"), []string{"-c:a", "aac"})...)
	a := w.NewAsset(
		assetopt.Input{URL: w.Site.Offer(filmtest.Usual(t, "a.mp4")), LanguageCode: "fr", Name: "Original"},
		assetopt.Input{
			URL: w.Site.Offer(srt), Type: "text", TextType: "subtitles", LanguageCode: "en", ClosedCaptions: true,
		},
		assetopt.Input{URL: w.Site.Offer(german), Type: "audio", LanguageCode: "de", Name: "Deutsch"},
		assetopt.Input{
			URL: w.Site.Offer(filmtest.Text(t, "y", "nothing")), Type: "text", TextType: "subtitles",
			LanguageCode: "it",
		},
	)
	if err := w.DoAll(); !fault.Permanent(err) { // of the last one
		t.Errorf("got %v", err)
	}
	a = w.Asset(a.ID)
	var got []string
	for _, tr := range a.Tracks {
		got = append(got,
			strings.Join([]string{
				string(tr.Type), string(tr.Status), tr.Name, tr.LanguageCode, strconv.FormatBool(tr.Primary),
			}, " "))
	}
	slices.Sort(got)
	want := []string{
		"audio ready Deutsch de false", "audio ready Original fr true", "text errored Italian it false",
		"text ready English en false", "video ready   false",
	}
	if a.Status != asset.Ready || !slices.Equal(got, want) {
		t.Errorf("asset is %s with %q", a.Status, got)
	}
	if len(a.InputInfo) != 4 || a.InputInfo[2].Settings.Name != "Deutsch" || len(a.InputInfo[0].File.Tracks) != 2 {
		t.Errorf("input info %+v", a.InputInfo)
	}
	w.NothingLeft()
}

// What a process that ended has left in the scratch folder goes, unless it is still wanted.
func TestTidy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	busy := w.NewAsset(assetopt.Input{URL: w.Site.Offer("x")})
	w.Jobs.Take()
	done := w.ReadyAsset(filmtest.Usual(t, "a.mp4"))
	tr, err := w.AddTrack(w.Ctx(), workertest.Env, done.ID, asset.TrackInput{
		URL: w.Site.Offer("x"), Type: asset.AudioTrack, LanguageCode: "de",
	}, w.Now())
	w.Must(err)
	w.Jobs.Take()
	keep := []string{
		"asset-" + string(busy.ID) + ".part", "asset-" + string(busy.ID) + ".part.json",
		"track-" + string(done.ID) + "-" + string(tr.ID), "readme",
	}
	lost := []string{
		"asset-" + string(done.ID), "asset-" + id.New() + ".part", "track-" + string(done.ID) + "-" + id.New() + ".m4a",
		"track-" + id.New() + "-" + id.New() + ".part",
	}
	for _, name := range slices.Concat(keep, lost) {
		w.Must(os.WriteFile(filepath.Join(w.Scratch, name), []byte("x"), 0o600))
	}
	w.Must(w.Ingest.Tidy(w.Ctx()))
	w.Must(w.Track.Tidy(w.Ctx()))
	files, err := os.ReadDir(w.Scratch)
	w.Must(err)
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	slices.Sort(keep)
	if !slices.Equal(got, keep) {
		t.Errorf("left %v, want %v", got, keep)
	}
}
