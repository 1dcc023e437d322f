package e2e

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// added is a track to add by URL.
type added struct {
	file    string
	content string // a path when it begins with a slash
	with    rig.Object
	bad     bool
	lines   []string // that a text track must show
}

// latin1 is text in ISO 8859-1.
func latin1(text string) string {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r))
	}
	return string(b)
}

// utf16le is text in UTF-16 with a byte order mark.
func utf16le(text string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

const (
	srt = "1\r\n00:00:01,000 --> 00:00:03,000\r\nGrüße aus <i>Köln</i>\r\n\r\n2\r\n00:00:02,500 --> " +
		"00:00:05,000\r\nüber einander\r\n"
	vtt = "\ufeffWEBVTT - a title\n\nNOTE nothing\n\nSTYLE\n::cue { color: red }\n\nlast\n00:06.000 --> 00:08.000 " +
		"align:start\nlast line\n\nfirst\n00:01.000 --> 00:02.000\nfirst line\n"
)

func tracksToAdd(t *testing.T) map[string]added {
	sound := func(name, codec string) string {
		return rig.File(t, name, rig.Clip{NoVideo: true, Audio: codec, Tone: 700, Seconds: 10})
	}
	text := func(language, name string) rig.Object {
		return rig.Object{"type": "text", "text_type": "subtitles", "language_code": language, "name": name}
	}
	audio := func(language, name string) rig.Object {
		return rig.Object{"type": "audio", "language_code": language, "name": name}
	}
	return map[string]added{
		"SRT in Latin-1": {
			file: "1.srt", content: latin1(srt), with: text("de", "Deutsch"),
			lines: []string{"Grüße aus <i>Köln</i>", "über einander"},
		},
		"SRT in UTF-16": {
			file: "2.srt", content: utf16le(srt), with: text("de-AT", ""),
			lines: []string{"Grüße aus <i>Köln</i>", "über einander"},
		},
		"WebVTT": {
			file: "3.vtt", content: vtt,
			with:  rig.Object{"type": "text", "text_type": "subtitles", "language_code": "en", "closed_captions": true},
			lines: []string{"first line", "last line"},
		},
		"M4A":      {file: "a.m4a", content: sound("a.m4a", "aac"), with: audio("fr", "")},
		"MP3":      {file: "a.mp3", content: sound("a.mp3", "libmp3lame"), with: audio("fr", "MP3")},
		"Opus":     {file: "a.opus", content: sound("a.opus", "libopus"), with: audio("fr", "Opus")},
		"FLAC":     {file: "a.flac", content: sound("a.flac", "flac"), with: audio("fr", "FLAC")},
		"WAV":      {file: "a.wav", content: sound("a.wav", "pcm_s16le"), with: audio("fr", "WAV")},
		"bare AAC": {file: "a.aac", content: sound("a.aac", "aac"), with: audio("fr", "AAC")},
		"no cues":  {file: "4.srt", content: "nothing to see here\n", with: text("es", "broken"), bad: true},
		"sound of noise": {
			file: "b.mp3", content: strings.Repeat("noise", 2000), with: audio("es", "noise"), bad: true,
		},
		"text for sound": {file: "c.mp3", content: srt, with: audio("es", "text"), bad: true},
		"sound for text": {file: "5.srt", content: sound("b.m4a", "aac"), with: text("es", "sound"), bad: true},
		"nothing there":  {file: "", with: text("es", "nothing"), bad: true},
	}
}

// TestTracks adds tracks of every kind to an asset, and broken ones, which do it no harm.
func TestTracks(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		list := tracksToAdd(t)
		files := map[string]string{
			"film.mp4": rig.File(t, "film.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Flash: true, Seconds: 10}),
		}
		for _, a := range list {
			files[a.file] = a.content
		}
		delete(files, "")
		base := rig.Files(t, files)
		id := s.AwaitAsset(t, s.CreateAsset(t, base+"/film.mp4").Text("id"), "ready", patience, rig.Ready).Text("id")
		ids := map[string]string{}
		for name, a := range list {
			a.with["url"] = base + "/" + a.file
			ids[name] = s.AddTrack(t, id, a.with).Text("id")
		}
		asset := s.AwaitAsset(t, id, "with its tracks", patience, func(o rig.Object) bool {
			return !slices.ContainsFunc(o.List("tracks"), func(x rig.Object) bool {
				return x.Text("status") == "preparing"
			})
		})
		url := s.PlayURL(asset.Text("playback_ids.0.id"))
		for name, a := range list {
			have := trackByID(asset, ids[name])
			if a.bad {
				if said := strings.Join(have.Texts("error.messages"), " "); have.Text("status") != "errored" ||
					len(said) < 15 {
					t.Errorf("%s: %v", name, have)
				}
				continue
			}
			if have.Text("status") != "ready" {
				t.Errorf("%s: %v", name, have)
				continue
			}
			for i, line := range a.lines {
				body := string(get(t, strings.TrimSuffix(url, ".m3u8")+"/text/"+ids[name]+".vtt"))
				if !strings.HasPrefix(body, "WEBVTT") || !strings.Contains(body, line) {
					t.Errorf("%s: line %d is not in %q", name, i, body)
				}
			}
		}
		if !rig.Ready(asset) {
			t.Errorf("broken tracks harmed the asset: %v", asset)
		}
		r := check(t, "asset with tracks", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "webvtt", "language",
			"groups", "decodes", "align-start")
		if want := 2 + 9; len(r.Renditions) != want {
			t.Errorf("%d renditions, want %d:\n%s", len(r.Renditions), want, r)
		}
		master := string(get(t, url))
		for _, want := range []string{
			`NAME="Deutsch",LANGUAGE="de"`, `NAME="French"`, `public.accessibility.describes-music-and-sound`,
			`public.accessibility.transcribes-spoken-dialog`,
		} {
			if !strings.Contains(master, want) {
				t.Errorf("the multivariant playlist lacks %s:\n%s", want, master)
			}
		}
		deleteTrack(t, s, id, ids, url)
	})
}

// deleteTrack takes two tracks away again.
func deleteTrack(t *testing.T, s *rig.Server, asset string, ids map[string]string, url string) {
	t.Helper()
	for _, name := range []string{"SRT in Latin-1", "Opus"} {
		if code, o := s.Do(t, "DELETE", "/video/v1/assets/"+asset+"/tracks/"+ids[name], nil); code != 204 {
			t.Errorf("delete %s: status %d: %v", name, code, o)
		}
	}
	gone(t, s, strings.TrimSuffix(url, ".m3u8")+"/text/"+ids["SRT in Latin-1"]+".vtt")
	if r := check(t, "asset with fewer tracks", hlscheck.Options{URL: url}, "language"); len(r.Renditions) != 2+7 {
		t.Errorf("%d renditions after two were deleted", len(r.Renditions))
	}
}

func trackByID(asset rig.Object, id string) rig.Object {
	for _, x := range asset.List("tracks") {
		if x.Text("id") == id {
			return x
		}
	}
	return rig.Object{}
}
