package ingest_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/programtest"
	"millrace/internal/worker/captions/captionstest"
	"millrace/internal/worker/workertest"
)

// TestSubtitlesInFiles: the text tracks inside a file become text tracks of its asset, from an MP4 that is stored as it
// is and from a Matroska file.
func TestSubtitlesInFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var inputs []string
	for name, text := range map[string]string{
		"a.srt": "1\n00:00:01,000 --> 00:00:02,000\n<i>first</i>\n",
		"b.srt": "1\n00:00:02,000 --> 00:00:03,500\nzweitens <script>\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.srt", "b.srt"} {
		inputs = append(inputs, "-i", filepath.Join(dir, name))
	}
	for name, codecs := range map[string][]string{
		"in.mp4": {"-c:s", "mov_text"}, "in.mkv": {"-c:s:0", "srt", "-c:s:1", "webvtt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=5"}, inputs...)
			args = append(args, "-map", "0:v", "-map", "1:s", "-map", "2:s", "-metadata:s:s:0", "language=eng",
				"-metadata:s:s:1", "language=ger", "-disposition:s:1", "forced",
				"-c:v", "libx264", "-g", "50", "-pix_fmt", "yuv420p")
			path := programtest.Media(t, name, append(args, codecs...)...)
			w := newWorld(t, workertest.Options{})
			a := w.ReadyAsset(path)
			var texts []asset.Track
			for _, track := range a.Tracks {
				if track.Type == asset.TextTrack {
					texts = append(texts, track)
				}
			}
			if len(texts) != 2 || texts[0].LanguageCode != "en" || texts[0].Name != "English" ||
				texts[1].LanguageCode != "de" || texts[1].TextSource != "embedded" || texts[0].Forced ||
				!texts[1].Forced || texts[1].Name != "German (forced)" || texts[0].Status != asset.TrackReady {
				t.Fatalf("text tracks: %+v", texts)
			}
			for i, want := range []string{
				"00:00:01.000 --> 00:00:02.000\n<i>first</i>", "00:00:02.000 --> 00:00:03.500\nzweitens",
			} {
				if got := string(w.ReadObject(texts[i].Object)); !strings.Contains(got, want) ||
					strings.Contains(got, "<script") {
					t.Errorf("track %d:\n%s", i, got)
				}
			}
		})
	}
}

// TestForcedSubtitles: playlists say of subtitles that a file has as forced that they are; a clip has them, too,
// likewise with captions of the pictures.
func TestForcedSubtitles(t *testing.T) {
	t.Parallel()
	s := captionstest.Reader(t)
	text := filepath.Join(t.TempDir(), "x.srt")
	if err := os.WriteFile(text, []byte("1\n00:00:01,000 --> 00:00:04,000\n[in Elvish]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := programtest.Media(t, "forced.mkv", "-r", fmt.Sprint(captionstest.Rate), "-i",
		captionstest.Captioned(t, "libx264"), "-i", text, "-map", "0", "-map", "1", "-map", "1", "-c:v", "copy",
		"-c:s", "srt", "-metadata:s:s", "language=eng", "-disposition:s:0", "forced", "-disposition:s:1", "0")
	a := s.NewAsset(assetopt.Input{URL: s.Site.Offer(path), EmbeddedSubtitles: make([]assetopt.EmbeddedSubtitle, 1)})
	s.Must(s.DoAll())
	clip := s.NewAsset(assetopt.Input{URL: "mux://assets/" + string(a.ID), EndTime: new(5.0)})
	s.Must(s.DoAll())
	site := (&world{s.World}).watch()
	for _, x := range []asset.Asset{s.Asset(a.ID), s.Asset(clip.ID)} {
		status, list := get(t, site, url(site, x))
		if status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
		for _, want := range []string{
			`NAME="English (forced)",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,`,
			`NAME="English (2)",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,`,
			`NAME="English",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,CHARACTERISTICS="public`,
			"CLOSED-CAPTIONS=NONE",
		} {
			if !strings.Contains(list, want) {
				t.Errorf("%s: no %s in\n%s", x.Origin, want, list)
			}
		}
	}
}

// TestCaptionTrack: closed captions in a track of their own are passed over, and their owner is told where they would
// be read.
func TestCaptionTrack(t *testing.T) {
	t.Parallel()
	scc := filepath.Join(t.TempDir(), "x.scc")
	const text = "Scenarist_SCC V1.0\n\n00:00:01:00\t9420 9420 9470 9470 c845 4c4c 4f80 942f 942f\n"
	if err := os.WriteFile(scc, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path := programtest.Media(t, "c608.mov",
		"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=5", "-i", scc,
		"-map", "0", "-map", "1", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:s", "copy")
	w := newWorld(t, workertest.Options{})
	a := w.ReadyAsset(path)
	if len(a.Tracks) != 1 {
		t.Errorf("tracks: %+v", a.Tracks)
	}
	const want = "closed captions in a track of their own (c608) are passed over: only those in the pictures are read. " +
		"Convert them to WebVTT or SubRip and add them as a text track"
	told := w.Jobs.Warn
	if len(told) != 1 || told[0].Type != asset.InputSubtitles || told[0].Message != want {
		t.Errorf("told: %+v", told)
	}
}

// TestSubtitlesThatArePictures: subtitles of Blu-rays, DVDs and television are passed over, and each is told of; the
// text beside them is taken.
func TestSubtitlesThatArePictures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, pictures := filepath.Join(dir, "x.srt"), filepath.Join(dir, "x.sup")
	if err := errors.Join(os.WriteFile(text, []byte("1\n00:00:01,000 --> 00:00:02,000\ntext\n"), 0o600),
		os.WriteFile(pictures, pgs(), 0o600)); err != nil {
		t.Fatal(err)
	}
	path := programtest.Media(t, "pictures.mkv", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=5", "-i",
		text, "-fix_sub_duration", "-i", pictures,
		"-map", "0", "-map", "2", "-map", "1", "-map", "2", "-map", "2", "-c:v", "libx264", "-pix_fmt", "yuv420p",
		"-c:s:0", "copy", "-c:s:1", "srt",
		"-c:s:2", "dvdsub", "-c:s:3", "dvbsub")
	w := newWorld(t, workertest.Options{})
	a := w.ReadyAsset(path)
	var texts []asset.Track
	for _, track := range a.Tracks {
		if track.Type == asset.TextTrack {
			texts = append(texts, track)
		}
	}
	if len(texts) != 1 || !strings.Contains(string(w.ReadObject(texts[0].Object)), "text") {
		t.Errorf("text tracks: %+v", texts)
	}
	var told []string
	for _, warning := range w.Jobs.Warn {
		if warning.Type == asset.InputSubtitles {
			told = append(told, warning.Message)
		}
	}
	if len(told) != 3 {
		t.Fatalf("warnings: %q", told)
	}
	for i, kind := range []string{"hdmv_pgs_subtitle", "dvd_subtitle", "dvb_subtitle"} {
		if !strings.Contains(told[i], kind+" are passed over") {
			t.Errorf("warning %d: %q", i, told[i])
		}
	}
}

// pgs is a file of the Presentation Graphic Stream of Blu-rays: one square that is shown at second 1 and is gone at
// second 2.
func pgs() []byte {
	const width, height, size = 320, 180, 8
	var out []byte
	segment := func(second, kind int, body ...byte) {
		at := binary.BigEndian.AppendUint32([]byte("PG"), uint32(second*90000))
		out = append(append(out, at...), 0, 0, 0, 0, byte(kind), byte(len(body)>>8), byte(len(body)))
		out = append(out, body...)
	}
	screen := []byte{width >> 8, width & 0xff, height >> 8, height & 0xff, 0x10}
	line := []byte{0, 0x80 | size, 1, 0, 0} // of one colour
	object := append([]byte{0, size, 0, size}, bytes.Repeat(line, size)...)
	for n, second := range []int{1, 2} {
		composition := append(slices.Clone(screen), 0, byte(n), 0x80, 0, 0)
		if n == 0 {
			composition = append(composition, 1, 0, 0, 0, 0, 0, 10, 0, 10) // object 0 in window 0
		} else {
			composition = append(composition, 0)
		}
		segment(second, 0x16, composition...)
		segment(second, 0x17, 1, 0, 0, 10, 0, 10, 0, size, 0, size)
		if n == 0 {
			segment(second, 0x14, 0, 0, 1, 235, 128, 128, 255)
			segment(second, 0x15, append([]byte{0, 0, 0, 0xc0, 0, 0, byte(len(object))}, object...)...)
		}
		segment(second, 0x80)
	}
	return out
}
