package worker_test

import (
	"bytes"
	"context"
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
	"millrace/internal/media/codec/aac"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/mediastore"
	"millrace/internal/programtest"
	"millrace/internal/storage/blob"
)

type objects struct{ store blob.Store }

func (o objects) Open(ctx context.Context, key string) (ondemand.ReaderAtCloser, int64, error) {
	info, err := o.store.Stat(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	r, err := blob.ReaderAt(ctx, o.store, key, info.Size)
	return r, info.Size, err
}

// samples plays an asset as it is stored, each segment after the other, and counts what is in each rendition.
func (w *world) samples(a asset.Asset) map[string]int {
	w.t.Helper()
	t, err := mediastore.Timeline(w.ctx(), w.store, w.Work, a)
	w.must(err)
	library := ondemand.NewLibrary(objects{w.store}, 1<<20)
	count := map[string]int{}
	for _, l := range t.Renditions {
		next := int64(-1)
		for i, c := range l.Chunks {
			if c.Gap {
				next = -1
				continue
			}
			var data []byte
			if c.Object == "" {
				data, err = library.Chunk(w.ctx(), *l.Source, int64(i), c)
				w.must(err)
			} else {
				data = w.read(c.Object)
				if l.Inits[c.Init].Still {
					data, err = ondemand.Still(data, int64(i), c)
					w.must(err)
				}
				if l.Source == nil {
					w.read(l.Inits[c.Init].Object)
				}
			}
			f, err := cmaf.ParseFragments(data)
			if err != nil || len(f) != 1 {
				w.t.Fatalf("%s %d: %d fragments, %v", l.ID, i, len(f), err)
			}
			if int64(f[0].BaseMediaDecodeTime) != c.Time || int64(f[0].Duration) != c.Duration || next >= 0 && c.Time != next {
				w.t.Errorf("%s %d: at %d for %d, want %+v, the one before ended at %d", l.ID, i, f[0].BaseMediaDecodeTime, f[0].Duration, c, next)
			}
			next = c.Time + c.Duration
			silence := aac.Silence(aac.LC(l.Inits[c.Init].SampleRate, l.Inits[c.Init].Channels))
			for _, x := range f[0].Samples {
				if !bytes.Equal(x.Data, silence) { // it fills holes
					count[l.ID]++
				}
			}
		}
	}
	return count
}

func (w *world) read(key string) []byte {
	w.t.Helper()
	r, err := w.store.Get(w.ctx(), key, 0, -1)
	w.must(err)
	defer func() { _ = r.Close() }()
	data := make([]byte, r.Size)
	for n := 0; n < len(data); {
		k, err := r.Read(data[n:])
		if n += k; n < len(data) {
			w.must(err)
		}
	}
	return data
}

// packets counts those of a kind of codec in a file.
func packets(t testing.TB, path, codec string) int {
	t.Helper()
	out := programtest.Run(t, "ffprobe", "-v", "error", "-count_packets", "-show_entries", "stream=codec_name,nb_read_packets", "-of", "csv=p=0", path)
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) < 2 || fields[0] != codec {
			continue
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 0
}

const ofMP4 = "mov,mp4,m4a,3gp,3g2,mj2"

var twoSounds = args(picture("13"), sound("13"), sound("13"), h264, []string{"-map", "0", "-map", "1", "-map", "2", "-c:a:0", "ac3", "-c:a:1", "aac"})

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
		"MP4":                      {"a.mp4", video(), ofMP4, "video h264, audio aac", true, 1},
		"MOV":                      {"a.mov", video(), ofMP4, "video h264, audio aac", true, 1},
		"fragmented":               {"a.mp4", video("-movflags", "+frag_keyframe+empty_moov"), ofMP4, "video h264, audio aac", true, 0},
		"Matroska":                 {"a.mkv", video(), "matroska,webm", "video h264, audio aac", true, 0},
		"MPEG-TS":                  {"a.ts", video(), "mpegts", "video h264, audio aac", true, 0},
		"mute":                     {"a.mkv", video("-an"), "matroska,webm", "video h264", true, 0},
		"second sound in Matroska": {"a.mkv", twoSounds, "matroska,webm", "video h264, audio ac3, audio aac", true, 0},
		"second sound in MP4":      {"a.mp4", twoSounds, ofMP4, "video h264, audio ac3, audio aac", true, 1},
		"M4A":                      {"a.m4a", args(sound("13"), []string{"-c:a", "aac"}), ofMP4, "audio aac", false, 1},
		"bare AAC":                 {"a.aac", args(sound("13"), []string{"-c:a", "aac"}), "aac", "audio aac", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			path := ffmpeg(t, tt.file, tt.args...)
			a := w.ready(path)
			if d := a.Facts.Duration; d < 12.9 || d > 13.1 {
				t.Errorf("duration %.3f", d)
			}
			if a.Facts.HasVideo != tt.video || tt.video && (a.Facts.Width != 160 || a.Facts.Height != 90 || a.Facts.FrameRate < 29.9 || a.Facts.FrameRate > 30.1) {
				t.Errorf("facts %+v", a.Facts)
			}
			if a.Progress != (asset.Progress{State: "completed", Percent: 100}) || a.Index == "" || len(a.Uses) != 0 {
				t.Errorf("asset %+v", a)
			}
			count := w.samples(a)
			if tt.video && count["v"] != packets(t, path, "h264") {
				t.Errorf("%d pictures, the file has %d", count["v"], packets(t, path, "h264"))
			}
			if want := packets(t, path, "aac") - tt.primed; a.Facts.HasAudio != (want > 0) || want > 0 && count["a"] != want {
				t.Errorf("%d frames of sound, the file has %d", count["a"], want)
			}
			if len(a.InputInfo) != 1 || a.InputInfo[0].File.ContainerFormat != tt.container || tracks(a.InputInfo[0]) != tt.tracks {
				t.Errorf("input info %+v", a.InputInfo)
			}
			if rows, err := w.Timeline(w.ctx(), a.ID, 0); err != nil || len(rows) != 0 {
				t.Errorf("%d rows are left, %v", len(rows), err)
			}
			w.nothingLeft()
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
	whole := clip(t, "whole.mp4")
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	fast, err := os.ReadFile(ffmpeg(t, "fast.mp4", "-i", whole, "-c", "copy", "-movflags", "+faststart"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path   string
		want   string
		tracks int
	}{
		"empty":           {text(t, "x", ""), "the file is empty", 0},
		"HTML":            {text(t, "x", "<!doctype html><html><body>Not found</body></html>"), "leads to a web page", 0},
		"M3U8":            {text(t, "x", "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"), "leads to a playlist", 0},
		"ffconcat":        {text(t, "x", "ffconcat version 1.0\nfile /etc/passwd\n"), "leads to a playlist", 0},
		"text":            {text(t, "x", "1\n00:00:01,000 --> 00:00:02,000\nHello\n"), "the file is text", 0},
		"noise":           {text(t, "x", strings.Repeat("\x00\x01\x02\xfe", 1000)), "no known media format", 0},
		"cut off":         {text(t, "x", string(data[:len(data)-1000])), "is not complete", 0},
		"media cut off":   {text(t, "x", string(fast[:len(fast)-20_000])), "is not complete", 0},
		"only an index":   {text(t, "x", string(fast[:9000])), "is not complete", 0},
		"encrypted":       {ffmpeg(t, "x.mp4", "-i", whole, "-c", "copy", "-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "76a6c65c5ea762046bd749a2e632ccbb", "-encryption_kid", "a7e61c373e219033c21091fa607bf3b8"), "is encrypted", 0},
		"long":            {ffmpeg(t, "x.mp4", "-f", "lavfi", "-i", "color=s=32x32:r=1:d=4", "-vf", "setpts=N*15000/TB", "-fps_mode", "passthrough", "-c:v", "libx264", "-pix_fmt", "yuv420p"), "lasts longer than 12 hours", 1},
		"long MKV":        {ffmpeg(t, "x.mkv", "-f", "lavfi", "-i", "color=s=32x32:r=1:d=4", "-vf", "setpts=N*15000/TB", "-fps_mode", "passthrough", "-c:v", "libx264", "-pix_fmt", "yuv420p"), "lasts longer than 12 hours", 1},
		"broken Matroska": {text(t, "x", "\x1a\x45\xdf\xa3"+strings.Repeat("\x00\xff", 3000)), "can't be read as Matroska", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			a := w.refused(w.site.offer(tt.path), tt.want)
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
		w := newWorld(t, options{maxSize: 10_000})
		w.refused(w.site.offer(whole), "is larger than the 10000 bytes allowed")
	})
	t.Run("private address", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{strict: true})
		w.refused(w.site.offer(whole), "is not allowed: loopback")
	})
	t.Run("not there", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		w.refused(w.site.URL+"/nothing?secret=xyz", "the server responded with 404")
	})
	t.Run("never succeeds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		w.refused(w.site.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }), "the server responded with 502")
	})
}

// refused wants an asset of a URL to be errored with these words.
func (w *world) refused(url, want string) asset.Asset {
	w.t.Helper()
	a := w.create(assetopt.Input{URL: url})
	if err := w.work(); err == nil || fault.KindOf(err) == fault.Internal {
		w.t.Errorf("the job ended with %v", err)
	}
	a = w.find(a.ID)
	if a.Status != asset.Errored || a.Errors == nil || a.Errors.Type != "invalid_input" || len(a.Errors.Messages) != 1 || !strings.Contains(a.Errors.Messages[0], want) {
		w.t.Fatalf("asset is %s with %+v, want %q", a.Status, a.Errors, want)
	}
	if said := a.Errors.Messages[0]; strings.Contains(said, w.scratch) || strings.Contains(said, "secret") || strings.Contains(said, string(a.Media)) {
		w.t.Errorf("it says too much: %s", said)
	}
	if left := w.objects(); len(left) != 0 {
		w.t.Errorf("left in the store: %v", left)
	}
	w.nothingLeft()
	return a
}

var errStore = errors.New("the store is away")

// A rewritten file can be watched from its first segment on, and a run that broke off is made again without a trace.
func TestRewriteGrowsAndStartsOver(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.mkv", "a.ts"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			path := clip(t, name)
			uninterrupted := w.ready(path)
			want := w.contents(uninterrupted)

			a := w.create(assetopt.Input{URL: w.site.offer(path)})
			j := w.jobs.take()[0]
			w.store.put = func(key string) error {
				if strings.HasSuffix(key, "/v/2.m4s") {
					return errStore
				}
				return nil
			}
			if err := w.do(j, 1); !errors.Is(err, errStore) {
				t.Fatalf("got %v", err)
			}
			growing := w.find(a.ID)
			rows, err := w.Timeline(w.ctx(), a.ID, 0)
			w.must(err)
			if growing.Status != asset.Preparing || len(rows) == 0 || len(growing.Tracks) != 2 || growing.Facts.Duration < 3.9 {
				t.Fatalf("%d rows of %+v", len(rows), growing)
			}
			if n := w.samples(growing); n["v"] < 110 {
				t.Errorf("%v can be watched", n)
			}
			put := map[string]bool{}
			w.store.put = func(key string) error {
				if put[key] {
					t.Errorf("%s is stored twice", key)
				}
				put[key] = true
				again, err := w.Timeline(w.ctx(), a.ID, 0)
				if err != nil || len(again) < len(rows) {
					t.Errorf("%d rows, there were %d", len(again), len(rows))
				}
				return nil
			}
			w.must(w.do(j, 2))
			w.store.put = nil
			if put[objectkey.Media(a.Media)+"v/0.m4s"] {
				t.Error("what was on record was stored again")
			}
			got := w.find(a.ID)
			if got.Status != asset.Ready || len(got.Tracks) != 2 || got.Tracks[0].ID != growing.Tracks[0].ID {
				t.Errorf("asset %+v", got)
			}
			if have := w.contents(got); !slices.Equal(have, want) {
				t.Errorf("started over it has other segments:\n%v\n%v", have, want)
			}
			w.nothingLeft()
		})
	}
}

// contents are names and sizes of all of an asset's objects, and its index.
func (w *world) contents(a asset.Asset) []string {
	w.t.Helper()
	var out []string
	prefix := objectkey.Media(a.Media)
	for key, err := range w.store.List(w.ctx(), prefix) {
		w.must(err)
		data := strings.ReplaceAll(string(w.read(key)), string(a.Media), "")
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
	w := newWorld(t, options{})
	path := clip(t, "a.mp4")
	url := w.site.offer(path)
	a := w.create(assetopt.Input{URL: url})
	j := w.jobs.take()[0]
	w.store.put = func(key string) error {
		if strings.HasSuffix(key, "timeline.jsonl") {
			return errStore
		}
		return nil
	}
	if err := w.do(j, 1); !errors.Is(err, errStore) {
		t.Fatalf("got %v", err)
	}
	w.store.put = nil
	w.site.Close()
	w.must(w.do(j, 2))
	if got := w.find(a.ID); got.Status != asset.Ready || w.samples(got)["v"] != 390 {
		t.Errorf("asset %+v", got)
	}
	w.nothingLeft()
	w.must(w.do(j, 3)) // it was done
}

// An asset that is deleted while it is made ends the work and leaves nothing.
func TestDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.mp4", "a.mkv"} {
		path := clip(t, name)
		for _, when := range []string{"download", "store"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, options{})
				var a asset.Asset
				gone := false
				remove := func() {
					if !gone {
						gone = true
						w.must(w.Delete(w.ctx(), env, a.ID, w.now()))
					}
				}
				url := w.site.offer(path)
				if when == "download" {
					url = w.site.handle(func(rw http.ResponseWriter, r *http.Request) {
						remove()
						http.ServeFile(rw, r, path)
					})
				} else {
					w.store.put = func(key string) error {
						if strings.Contains(key, "source") || strings.Contains(key, "1.m4s") {
							remove()
						}
						return nil
					}
				}
				a = w.create(assetopt.Input{URL: url})
				j := w.jobs.take()[0]
				w.must(w.do(j, 1))
				if !gone {
					t.Error("it was not deleted")
				}
				if left := w.objects(); len(left) != 0 {
					t.Errorf("left in the store: %v", left)
				}
				w.nothingLeft()
				w.must(w.work()) // the purge
			})
		}
	}
}

// TestDeletedBetweenAttempts leaves nothing of what the first attempt downloaded.
func TestDeletedBetweenAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.create(assetopt.Input{URL: "http://localhost/a.mp4"})
	j := w.jobs.take()[0]
	w.must(os.WriteFile(filepath.Join(w.scratch, "asset-"+string(a.ID)), []byte("half"), 0o600))
	w.must(w.Delete(w.ctx(), env, a.ID, w.now()))
	w.must(w.do(j, 2))
	w.nothingLeft()
}

// A file that takes its process down each time, or makes it panic, ends as errored.
func TestIngestAlwaysEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.create(assetopt.Input{URL: w.site.offer(clip(t, "a.mkv"))})
	j := w.jobs.take()[0]
	w.store.put = func(string) error { panic("a bug") }
	last := w.handle[j.Kind].MaxAttempts
	for attempt := 1; attempt < last; attempt++ {
		if err := w.do(j, attempt); err == nil || !strings.Contains(err.Error(), "a bug") {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
		if w.find(a.ID).Status != asset.Preparing {
			t.Fatalf("attempt %d was the last", attempt)
		}
	}
	if err := w.do(j, last); err == nil || w.find(a.ID).Status != asset.Errored {
		t.Errorf("the last attempt: %v", err)
	}
	b := w.create(assetopt.Input{URL: w.site.offer(clip(t, "a.mkv"))})
	if err := w.doJob(w.jobs.take()[0], job.Job{Attempt: 1, Crashes: job.MaxCrashes}); err == nil || w.find(b.ID).Status != asset.Errored {
		t.Errorf("after the process died too often: %v", err)
	}
	w.nothingLeft()
}

// Names of the first input go to its sound; the other inputs become tracks.
func TestInputsBecomeTracks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	srt := text(t, "x.srt", "1\n00:00:01,000 --> 00:00:02,000\nHello\n")
	german := ffmpeg(t, "de.m4a", args(sound("13"), []string{"-c:a", "aac"})...)
	a := w.create(
		assetopt.Input{URL: w.site.offer(clip(t, "a.mp4")), LanguageCode: "fr", Name: "Original"},
		assetopt.Input{URL: w.site.offer(srt), Type: "text", TextType: "subtitles", LanguageCode: "en", ClosedCaptions: true},
		assetopt.Input{URL: w.site.offer(german), Type: "audio", LanguageCode: "de", Name: "Deutsch"},
		assetopt.Input{URL: w.site.offer(text(t, "y", "nothing")), Type: "text", TextType: "subtitles", LanguageCode: "it"},
	)
	if err := w.work(); !fault.Permanent(err) { // of the last one
		t.Errorf("got %v", err)
	}
	a = w.find(a.ID)
	var got []string
	for _, tr := range a.Tracks {
		got = append(got, strings.Join([]string{string(tr.Type), string(tr.Status), tr.Name, tr.LanguageCode, strconv.FormatBool(tr.Primary)}, " "))
	}
	slices.Sort(got)
	want := []string{"audio ready Deutsch de false", "audio ready Original fr true", "text errored Italian it false", "text ready English en false", "video ready   false"}
	if a.Status != asset.Ready || !slices.Equal(got, want) {
		t.Errorf("asset is %s with %q", a.Status, got)
	}
	if len(a.InputInfo) != 4 || a.InputInfo[2].Settings.Name != "Deutsch" || len(a.InputInfo[0].File.Tracks) != 2 {
		t.Errorf("input info %+v", a.InputInfo)
	}
	w.nothingLeft()
}

// What a process that ended has left in the scratch folder goes, unless it is still wanted.
func TestTidy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	busy := w.create(assetopt.Input{URL: w.site.offer("x")})
	w.jobs.take()
	done := w.ready(clip(t, "a.mp4"))
	tr, err := w.AddTrack(w.ctx(), env, done.ID, asset.TrackInput{URL: w.site.offer("x"), Type: asset.AudioTrack, LanguageCode: "de"}, w.now())
	w.must(err)
	w.jobs.take()
	keep := []string{
		"asset-" + string(busy.ID) + ".part", "asset-" + string(busy.ID) + ".part.json", "track-" + string(done.ID) + "-" + string(tr.ID), "readme",
	}
	lost := []string{
		"asset-" + string(done.ID), "asset-" + id.New() + ".part", "track-" + string(done.ID) + "-" + id.New() + ".m4a", "track-" + id.New() + "-" + id.New() + ".part",
	}
	for _, name := range slices.Concat(keep, lost) {
		w.must(os.WriteFile(filepath.Join(w.scratch, name), []byte("x"), 0o600))
	}
	w.must(w.ingest.Tidy(w.ctx()))
	w.must(w.track.Tidy(w.ctx()))
	files, err := os.ReadDir(w.scratch)
	w.must(err)
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	slices.Sort(keep)
	if !slices.Equal(got, keep) {
		t.Errorf("left %v, want %v", got, keep)
	}
}
