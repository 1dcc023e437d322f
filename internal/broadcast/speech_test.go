package broadcast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/broadcast/subtitles"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/health"
	"millrace/internal/media/playback/playbacktest"
	"millrace/internal/media/speech"
	edge "millrace/internal/media/window"
	"millrace/internal/mediastore"
	workerspeech "millrace/internal/worker/speech"
)

// ear is an engine, and what decodes sound for it: a word is said in each second, w7 from 7.2 s to 7.7 s, and
// recognised a second after it has ended.
type ear struct {
	speech.Engine

	silent  bool         // nothing is recognised, and the engine does not keep up
	behind  atomic.Int64 // nanoseconds later than in time
	plain   bool         // it gives words alone
	refuses error        // Open
	probe   func(context.Context) error
	opened  []speech.Config

	mu        sync.Mutex
	stretches [][2]time.Duration
}

func (e *ear) Name() string { return "ear" }

func (e *ear) Abilities() (speech.Abilities, error) {
	return speech.Abilities{Streaming: true, WordTimes: true, Punctuation: !e.plain, Languages: []string{"en"}}, nil
}

func (e *ear) Probe(ctx context.Context) error {
	if e.probe == nil {
		return nil
	}
	return e.probe(ctx)
}

func (e *ear) Open(_ context.Context, c speech.Config) (speech.Stream, error) {
	e.opened = append(e.opened, c)
	return &hearing{ear: e, results: make(chan speech.Result, 1000)}, e.refuses
}

// LivePCM gives one sample of silence for each sixteen-thousandth of a second that comes in.
func (e *ear) LivePCM(
	ctx context.Context, input func(context.Context, io.Writer) error, output func(context.Context, io.Reader) error,
) error {
	r, w := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		err := input(ctx, &silence{to: w})
		w.CloseWithError(err)
		failed <- err
	}()
	err := output(ctx, r)
	_ = r.CloseWithError(err)
	return errors.Join(err, <-failed)
}

// PCM is two seconds of sound, whatever comes in.
func (e *ear) PCM(
	ctx context.Context, input func(context.Context, io.Writer) error, output func(context.Context, io.Reader) error,
) error {
	if err := input(ctx, io.Discard); err != nil {
		return err
	}
	return output(ctx, bytes.NewReader(make([]byte, 4*speech.SampleRate)))
}

func (e *ear) PCMOfFile(context.Context, string, bool, func(context.Context, io.Reader) error) error {
	return errors.New("there is no file")
}

func (e *ear) Transcribe(_ context.Context, _ io.Reader, c speech.Config, emit func(speech.Result) error) error {
	if c.Effort != speech.Thorough {
		return errors.New("nobody is in a hurry")
	}
	return emit(speech.Result{
		Words: []speech.Word{{Text: "better", Start: time.Second, End: 1500 * time.Millisecond}},
		Until: 2 * time.Second,
	})
}

// silence is as long as the fragments that are written, as frames of sound are.
type silence struct {
	to     io.Writer
	frames int64
	given  int64
}

func (s *silence) Write(p []byte) (int, error) {
	fragments, err := cmaf.ParseFragments(p)
	if err != nil {
		return 0, err
	}
	for _, f := range fragments {
		s.frames += int64(len(f.Samples))
	}
	n := s.frames*1024*speech.SampleRate/48000 - s.given
	s.given += n
	if _, err = s.to.Write(make([]byte, 2*n)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hearing is one stream.
type hearing struct {
	*ear

	results  chan speech.Result
	reported time.Duration
	ended    sync.Once
}

func (h *hearing) Write(at time.Duration, samples []int16) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := at + speech.Duration(int64(len(samples)))
	if n := len(h.stretches); n > 0 && (at-h.stretches[n-1][1]).Abs() < time.Millisecond {
		h.stretches[n-1][1] = end
	} else {
		h.stretches = append(h.stretches, [2]time.Duration{at, end})
	}
	if h.silent {
		return
	}
	late := 1700*time.Millisecond + time.Duration(h.behind.Load())
	for second := h.reported; second+late <= end; second += time.Second {
		r := speech.Result{Until: second + time.Second}
		if second >= h.stretches[len(h.stretches)-1][0].Truncate(time.Second) {
			r.Words = []speech.Word{
				{
					Text: fmt.Sprintf("w%d", second/time.Second), Start: second + 200*time.Millisecond,
					End: second + 700*time.Millisecond,
				},
			}
		}
		h.results <- r
		h.reported = second + time.Second
	}
}

func (h *hearing) Results() <-chan speech.Result { return h.results }

func (h *hearing) Status() speech.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := speech.Status{}
	if n := len(h.stretches); h.silent && n > 0 {
		s.LeftOut = h.stretches[n-1][1] - h.stretches[0][0]
	}
	return s
}

func (h *hearing) End()   { h.ended.Do(func() { close(h.results) }) }
func (h *hearing) Close() { h.End() }

// hears has a node recognise speech.
func hears(e *ear) func(*broadcast.Options) {
	return func(o *broadcast.Options) {
		o.Speech = &subtitles.Generator{
			Engines: &speech.Engines{All: []speech.Engine{e}, Now: time.Now}, Decoder: e,
			Objects: mediastore.Objects{Blob: o.Store.(nodeObjects)},
			Rules:   func(context.Context, id.Environment) (speech.Rules, error) { return nil, nil },
			Phrases: func(_ context.Context, _ id.Environment, v []string) ([]string, error) { return v, nil },
		}
	}
}

// subtitled is a stream with generated subtitles.
func subtitled(language string) func(*live.CreateInput) {
	return func(in *live.CreateInput) {
		in.GeneratedSubtitles = []assetopt.GeneratedSubtitle{{Name: "Subtitles", LanguageCode: language}}
	}
}

// generatedLive is the asset's track that is made while it goes on.
func (w *world) generatedLive(a id.Asset) asset.Track {
	w.t.Helper()
	for _, t := range textTracks(w.asset(a)) {
		if t.TextSource == asset.GeneratedLive {
			return t
		}
	}
	w.t.Fatalf("no live track in %+v", w.asset(a).Tracks)
	return asset.Track{}
}

// TestSpokenCuesInTime: a word that an engine recognises a second after it has ended is in a listed segment 4 s after
// that at most, and a segment later with standard latency; what is listed never changes, from the first word on.
func TestSpokenCuesInTime(t *testing.T) {
	t.Parallel()
	for mode, most := range map[live.LatencyMode]time.Duration{
		live.Low: 4 * time.Second, live.Reduced: 4 * time.Second, live.Standard: 10 * time.Second,
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				engine := &ear{}
				n := w.start("a", hears(engine))
				s := w.stream(window(0), subtitled("en"), func(in *live.CreateInput) { in.LatencyMode = mode })
				began := time.Now()
				e := n.publish(s.StreamKey).send(5 * time.Second)
				a := w.row(s.ID).ActiveAsset
				track, v := w.generatedLive(a), n.viewer()
				if track.Status != asset.TrackReady {
					t.Errorf("the track is %s", track.Status)
				}
				segments, seen := map[string]string{}, map[int]bool{}
				for range 80 {
					e.send(250 * time.Millisecond)
					w.unchanged(v, w.playbackID(a), track, segments)
					whole := ""
					for _, text := range segments {
						whole += text
					}
					for word := range 30 {
						if said(whole, fmt.Sprintf("w%d", word)) {
							seen[word] = true
						}
						ended := began.Add(time.Duration(word)*time.Second + 700*time.Millisecond)
						if late := time.Since(ended); late > most && !seen[word] {
							t.Fatalf("w%d is not listed %s after it was said, in %q", word, late, whole)
						}
					}
				}
				e.stop()
			})
		})
	}
}

// said reports whether a word is in a text.
func said(text, word string) bool { return slices.Contains(strings.Fields(text), word) }

// unchanged adds the segments of a track that are listed to those that were, which must be as they were.
func (w *world) unchanged(v playbacktest.Viewer, p id.Playback, t asset.Track, segments map[string]string) {
	w.t.Helper()
	at := ""
	for _, list := range v.Playlists(p) {
		if strings.HasSuffix(list, "/"+t.Rendition+".m3u8") {
			at = list
		}
	}
	for _, uri := range playbacktest.URIs(at, v.Expect("text playlist", http.StatusOK, at)) {
		text := v.Expect("text segment", http.StatusOK, uri)
		if old, ok := segments[uri]; ok && old != text {
			w.t.Errorf("%s was\n%s\nand is\n%s", uri, old, text)
		}
		segments[uri] = text
	}
}

// TestFinalTrackReplacesLive: what is recognised again when a broadcast has ended stands in for the live track in
// playlists, under the same name, as soon as it is there; the files of both stay.
func TestFinalTrackReplacesLive(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		engine := &ear{}
		n, s := w.start("a", hears(engine)), w.stream(low(0), subtitled("en"))
		n.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(time.Second)
		a := w.row(s.ID).RecentAssets[0]
		w.finish(a)
		before, final := w.generatedLive(a), asset.Track{}
		for _, tr := range textTracks(w.asset(a)) {
			if tr.TextSource == asset.GeneratedFinal {
				final = tr
			}
		}
		v, address := n.viewer(), "/"+string(w.playbackID(a))
		offered := func(want asset.Track) {
			t.Helper()
			n.playback.AssetChanged(a)
			list := v.Expect("multivariant", http.StatusOK, address+".m3u8")
			if strings.Count(list, "TYPE=SUBTITLES") != 1 || !strings.Contains(list, want.Rendition+".m3u8") {
				t.Errorf("not %s alone is in\n%s", want.TextSource, list)
			}
		}
		if before.Status != asset.TrackReady || final.Status != asset.TrackPreparing || final.Name != before.Name {
			t.Fatalf("at the end: %+v and %+v", before, final)
		}
		offered(before)
		worker := &workerspeech.Worker{
			Assets: w.assets, Store: w.objects, Footage: n.playback, Decoder: engine,
			Engines: &speech.Engines{All: []speech.Engine{engine}, Now: time.Now}, Most: 1,
			Rules: func(context.Context, id.Environment) (speech.Rules, error) { return nil, nil }, Now: time.Now,
		}
		args := job.New(asset.JobSpeech, string(final.ID), asset.TrackArgs{
			Asset: a, Track: final.ID, Media: w.asset(a).Media,
		})
		w.must(worker.Handler().Work(w.ctx, job.Job{Kind: args.Kind, Args: args.Args, Attempt: 1, MaxAttempts: 1}))
		offered(final)
		// whatever they are called later
		for language, tr := range map[string]asset.Track{"en-GB": before, "en-AU": final} {
			if _, err := w.assets.PatchTrack(w.ctx, env, a, tr.ID, asset.TrackPatch{LanguageCode: &language},
				time.Now()); err != nil {
				t.Fatal(err)
			}
			offered(final)
		}
		for tr, want := range map[id.Track]string{before.ID: "w3", final.ID: "better"} {
			if text := v.Expect("file", http.StatusOK, address+"/text/"+string(tr)+".vtt"); !strings.Contains(text,
				want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
	})
}

// TestSpokenSentences: words of an engine that gives no more are shown as sentences.
func TestSpokenSentences(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a", hears(&ear{plain: true})), w.stream(low(0), subtitled("en"))
		e := n.publish(s.StreamKey).send(8 * time.Second)
		whole, err := n.texts(w, s).Whole(w.generatedLive(w.row(s.ID).ActiveAsset).Rendition)
		w.must(err)
		e.stop()
		w.wait(time.Second)
		if text := string(whole.Transcript()); !strings.HasPrefix(text, "W0 w1 w2 ") {
			t.Errorf("said: %q", text)
		}
	})
}

// TestLastCueStays: a cue that is shown when the recording ends is in its file, and in the segments, as it was listed.
// One that would begin later is not there.
func TestLastCueStays(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a", hears(&ear{silent: true})), w.stream(low(0), subtitled("en"))
		e := n.publish(s.StreamKey).send(9 * time.Second)
		a := w.row(s.ID).ActiveAsset
		track, v, segments := w.generatedLive(a), n.viewer(), map[string]string{}
		texts := n.texts(w, s)
		for _, c := range []captions.Cue{
			{Start: 9 * time.Second, End: 14 * time.Second, Text: "last"},
			{Start: 20 * time.Second, End: 25 * time.Second, Text: "never"},
		} {
			if !texts.Publish(track.Rendition, c) {
				t.Fatalf("%v is not taken", c)
			}
		}
		e.send(time.Second).stop()
		w.wait(time.Second)
		w.unchanged(v, w.playbackID(a), track, segments)
		w.finish(a)
		n.playback.AssetChanged(a)
		w.unchanged(v, w.playbackID(a), track, segments)
		file := v.Expect("file", http.StatusOK, "/"+string(w.playbackID(a))+"/text/"+string(track.ID)+".vtt")
		const cue = "00:00:09.000 --> 00:00:14.000\nlast\n"
		if !strings.Contains(file, cue) || strings.Contains(file, "never") {
			t.Errorf("file:\n%s", file)
		}
		if all := strings.Join(slices.Collect(maps.Values(segments)), ""); !strings.Contains(all, cue) {
			t.Errorf("segments:\n%s", all)
		}
	})
}

// TestSlateIsNotListenedTo: what stands in for an encoder that is away is not recognised, and what comes behind it is a
// stretch of its own.
func TestSlateIsNotListenedTo(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		engine := &ear{}
		n, s := w.start("a", slated(&stills{}, nil), hears(engine)), w.stream(low(60), subtitled("en"))
		n.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(10 * time.Second)
		e := n.publish(s.StreamKey).send(10 * time.Second)
		whole, err := n.texts(w, s).Whole(w.generatedLive(w.row(s.ID).ActiveAsset).Rendition)
		w.must(err)
		e.stop()
		w.wait(61 * time.Second)
		first, second := time.Duration(0), time.Duration(0) // how much was heard of each ten seconds
		for _, x := range engine.stretches {
			switch from, to := x[0], x[1]; {
			case to < 12*time.Second:
				first += to - from
			case from > 19*time.Second:
				second += to - from
			default:
				t.Errorf("slate was listened to: %v", x)
			}
		}
		for _, long := range []time.Duration{first, second} {
			if long < 9*time.Second || long > 13*time.Second {
				t.Errorf("listened to %v", engine.stretches)
			}
		}
		for _, c := range whole.Cues() {
			if c.Start > 14*time.Second && c.Start < 19*time.Second {
				t.Errorf("a cue in the slate: %+v", c)
			}
		}
		words := 0
		for _, c := range whole.Cues() {
			words += len(strings.Fields(c.Text))
		}
		if words < 15 {
			t.Errorf("%d words", words)
		}
	})
}

// TestLastWords: what was said last is in the live track while the encoder may still come back.
func TestLastWords(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a", hears(&ear{})), w.stream(window(60), subtitled("en"))
		n.publish(s.StreamKey).send(10300 * time.Millisecond).stop()
		w.wait(5 * time.Second)
		track := w.generatedLive(w.row(s.ID).ActiveAsset)
		all := strings.Join(w.textSegments(n.viewer(), w.playbackID(w.row(s.ID).ActiveAsset), track), "")
		if !said(all, "w9") {
			t.Errorf("listed: %s", all)
		}
		w.wait(61 * time.Second)
	})
}

// TestSpeechThatFails: an engine that does not keep up, or does not start, costs subtitles and a warning, once, and the
// stream nothing.
func TestSpeechThatFails(t *testing.T) {
	t.Parallel()
	for message, engine := range map[string]*ear{
		"subtitles have gaps: ear does not keep up with the sound":     {silent: true},
		"subtitles can't be generated at the moment: ear does not run": {refuses: errors.New("no library")},
	} {
		run(t, func(w *world) {
			n, s := w.start("a", hears(engine)), w.stream(low(0), subtitled("en"))
			e := n.publish(s.StreamKey).send(20 * time.Second)
			a, v := w.row(s.ID).ActiveAsset, n.viewer()
			for _, list := range v.Playlists(w.playbackID(a)) {
				if text := v.Expect("playlist", http.StatusOK, list); strings.Contains(text, "EXTINF") &&
					strings.Count(text, "EXTINF") < 6 {
					t.Errorf("%s is not complete:\n%s", list, text)
				}
			}
			e.stop()
			w.wait(time.Second)
			told := []live.Warning{{Type: broadcast.SpeechMissing, Message: message}}
			if got := slices.DeleteFunc(w.warnings(), behind); !slices.Equal(got, told) {
				t.Errorf("told %+v", got)
			}
		})
	}
}

// behind is the warning of the encoder's health that recognition does not keep up.
func behind(w live.Warning) bool { return w.Type == health.SubtitlesBehind }

// warnings are those that were told of live streams, in order.
func (w *world) warnings() (out []live.Warning) {
	w.t.Helper()
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	for _, e := range w.journal.events {
		if short(e.Type) == "warning" {
			var told live.Warned
			w.must(json.Unmarshal(e.Data, &told))
			out = append(out, told.Warning)
		}
	}
	return out
}

// TestSpeechTooLate: words that are recognised too late are not shown with other pictures. The stream's health says
// that they are missing, for as long as they are, and once the engine keeps up its words are shown again.
func TestSpeechTooLate(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		engine := &ear{}
		n, s := w.start("a", hears(engine)), w.stream(low(0), subtitled("en"))
		troubled := func(when string, want bool) {
			t.Helper()
			got := n.Health(w.row(s.ID)).Trouble
			if is := slices.ContainsFunc(got, func(t live.Trouble) bool { return behind(t.Warning) }); is != want {
				t.Errorf("%s: %+v", when, got)
			}
		}
		e := n.publish(s.StreamKey).send(21 * time.Second)
		troubled("in time", false)
		engine.behind.Store(int64(15 * time.Second))
		e.send(30 * time.Second)
		troubled("behind", true)
		engine.behind.Store(0)
		e.send(50 * time.Second)
		troubled("in time again", false)
		whole, err := n.texts(w, s).Whole(w.generatedLive(w.row(s.ID).ActiveAsset).Rendition)
		w.must(err)
		e.stop()
		w.wait(time.Second)
		words := map[string]bool{}
		for _, c := range whole.Cues() {
			var second int
			if _, bad := fmt.Sscanf(c.Text, "w%d", &second); bad != nil { // its first word
				t.Fatalf("cue %+v: %v", c, bad)
			}
			// the first one is there for a second
			if late := c.Start - time.Duration(second)*time.Second; late > edge.MostLate+time.Second {
				t.Errorf("%s is shown %s after it was said", c.Text, late)
			}
			for word := range strings.FieldsSeq(c.Text) {
				words[word] = true
			}
		}
		for word, want := range map[string]bool{"w5": true, "w25": false, "w30": false, "w60": true, "w90": true} {
			if words[word] != want {
				t.Errorf("%s is there: %t", word, words[word])
			}
		}
		told := w.warnings()
		missing := func(w live.Warning) bool { return w.Type == broadcast.SpeechMissing }
		if len(told) != 2 || !slices.ContainsFunc(told, behind) || !slices.ContainsFunc(told, missing) {
			t.Errorf("told %+v", told)
		}
	})
}

// TestSpeechWithoutAnEngine: a language that no engine takes is an error of the track alone, which no playlist lists.
func TestSpeechWithoutAnEngine(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		engine := &ear{}
		n, s := w.start("a", hears(engine)), w.stream(window(0), subtitled("fr"))
		e := n.publish(s.StreamKey).send(10 * time.Second)
		a, v := w.row(s.ID).ActiveAsset, n.viewer()
		live := v.Expect("multivariant playlist", http.StatusOK, "/"+string(w.playbackID(a))+".m3u8")
		e.stop()
		w.wait(time.Second)
		w.finish(a)
		for when, text := range map[string]string{
			"live":     live,
			"finished": v.Expect("multivariant playlist", http.StatusOK, "/"+string(w.playbackID(a))+".m3u8"),
		} {
			if strings.Contains(text, "SUBTITLES") {
				t.Errorf("%s, subtitles are listed:\n%s", when, text)
			}
		}
		found := false
		for _, tr := range textTracks(w.asset(a)) {
			found = found ||
				tr.Status == asset.TrackErrored &&
					strings.Contains(strings.Join(tr.Errors.Messages, ""), "no speech recognition for the language fr")
		}
		if row := w.asset(a); !found || row.Status != asset.Ready || len(engine.stretches) > 0 {
			t.Errorf("the asset is %s, its tracks %+v", row.Status, textTracks(row))
		}
	})
}
