package speech_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/id"
	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
	"millrace/internal/media/speech/local"
	speechprocess "millrace/internal/media/speech/worker"
	"millrace/internal/programtest"
	workerspeech "millrace/internal/worker/speech"
	"millrace/internal/worker/static/statictest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// asSpeech has this test's program be the process that recognises speech.
const asSpeech = "speech-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asSpeech {
		os.Exit(speechprocess.Main(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// listener is a shop that recognises speech, with the engine of this machine.
func listener(t *testing.T) *statictest.Shop {
	t.Helper()
	programtest.Speech(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := statictest.NewShop(t, time.Minute)
	engine := local.New(local.Options{
		Program: self, Args: []string{asSpeech}, Budget: filmtest.Budget,
		Limits: encode.Limits{CPU: time.Hour}, // the race detector's memory takes terabytes of the address space
	})
	w := &workerspeech.Worker{
		Assets: s.Work, Store: s.Store, Footage: s.Footage, Decoder: filmtest.NewEngine(t, 0), Most: 2,
		Scratch: s.Scratch, Now: s.Now,
		Engines: &speech.Engines{All: []speech.Engine{engine}, Now: time.Now},
		Rules:   func(context.Context, id.Environment) (speech.Rules, error) { return nil, nil },
	}
	s.Handlers[asset.JobSpeech] = w.Handler()
	return s
}

// polyglot is an engine that finds out the language: it hears one word in each.
type polyglot struct {
	speech.Engine

	language   string
	confidence float64
}

func (p *polyglot) Name() string                         { return "polyglot" }
func (p *polyglot) Probe(context.Context) error          { return nil }
func (p *polyglot) Abilities() (speech.Abilities, error) { return speech.Abilities{Detects: true}, nil }

func (p *polyglot) Transcribe(_ context.Context, pcm io.Reader, _ speech.Config, emit func(speech.Result) error) error {
	_, err := io.Copy(io.Discard, pcm)
	word := speech.Word{Text: "word", End: time.Second}
	return errors.Join(err,
		emit(speech.Result{Words: []speech.Word{word}, Language: p.language, Confidence: p.confidence}))
}

// TestAutoLanguage: a track whose language is to be found out has the language, and a name, that the engine says, how
// sure it is only where the engine says so, and the language und where it says none.
func TestAutoLanguage(t *testing.T) {
	t.Parallel()
	s, engine := statictest.NewShop(t, time.Minute), &polyglot{}
	w := &workerspeech.Worker{
		Assets: s.Work, Store: s.Store, Footage: s.Footage, Decoder: filmtest.NewEngine(t, 0), Most: 2,
		Scratch: s.Scratch, Now: s.Now,
		Engines: &speech.Engines{All: []speech.Engine{engine}, Now: time.Now},
		Rules:   func(context.Context, id.Environment) (speech.Rules, error) { return nil, nil },
	}
	s.Handlers[asset.JobSpeech] = w.Handler()
	path := programtest.SharedMedia(t, "tone.m4a", "-f", "lavfi", "-i", "sine=duration=2", "-c:a", "aac", "-ar",
		"48000")
	for _, tt := range []struct {
		says           string
		sure           float64
		language, name string
	}{
		{"ja", 0, "ja", "Japanese"},
		{"de", 0.93, "de", "German"},
		{"", 0, "und", "Detected language"},
		{"zz", 0.5, "und", "Detected language"},
	} {
		engine.language, engine.confidence = tt.says, tt.sure
		a := s.NewAsset(assetopt.Input{
			URL:                s.Site.Offer(filepath.Clean(path)),
			GeneratedSubtitles: []assetopt.GeneratedSubtitle{{LanguageCode: "auto"}},
		})
		s.Must(s.DoAll())
		want := tt.sure
		if tt.language == "und" {
			want = 0
		}
		if tr := workertest.TextTrack(t, s.Asset(a.ID), tt.language); tr.Status != asset.TrackReady ||
			tr.Name != tt.name || tr.Confidence != want {
			t.Errorf("%q is said: %+v", tt.says, tr)
		}
	}
}

// TestGeneratedSubtitles: what is said in a file becomes a text track, of the first input and of a track later on;
// where no engine takes the language, the track says so and the asset stays ready.
func TestGeneratedSubtitles(t *testing.T) {
	t.Parallel()
	s := listener(t)
	const said = "good morning everyone and welcome to the weekly news program"
	path := programtest.SharedMedia(t, "spoken.mp4",
		append(append([]string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=6"},
			programtest.SpeechArgs("slt", said)...), "-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "ultrafast",
			"-c:a", "aac", "-ar", "48000")...)
	a := s.NewAsset(assetopt.Input{
		URL: s.Site.Offer(filepath.Clean(path)), GeneratedSubtitles: []assetopt.GeneratedSubtitle{
			{LanguageCode: "en", Passthrough: "mine"}, {LanguageCode: "de"},
		},
	})
	if tr := workertest.TextTrack(t, s.Asset(a.ID), "en"); tr.Status != asset.TrackPreparing ||
		tr.TextSource != "generated_vod" || tr.Name != "English" {
		t.Errorf("at first: %+v", tr)
	}
	if err := s.DoAll(); err == nil || !strings.Contains(err.Error(), "language de") {
		t.Errorf("a language that nobody knows: %v", err)
	}
	a = s.Asset(a.ID)
	tr := workertest.TextTrack(t, a, "en")
	if a.Status != asset.Ready || tr.Status != asset.TrackReady || tr.Passthrough != "mine" || tr.Progress != 0 {
		t.Fatalf("asset %s, track %+v, errors %+v", a.Status, tr, tr.Errors)
	}
	text := string(s.ReadObject(tr.Object))
	for _, word := range []string{"WEBVTT", "morning", "everyone", "weekly", "program"} {
		if !strings.Contains(text, word) {
			t.Errorf("no %s in\n%s", word, text)
		}
	}
	if none := workertest.TextTrack(t, a, "de"); none.Status != asset.TrackErrored ||
		!strings.Contains(strings.Join(none.Errors.Messages, ""), "no speech recognition for the language de") {
		t.Errorf("track in German: %+v", none)
	}
	sound := a.Tracks[0]
	for _, x := range a.Tracks {
		if x.Type == asset.AudioTrack {
			sound = x
		}
	}
	made, err := s.GenerateTracks(s.Ctx(), workertest.Env, a.ID, sound.ID,
		[]assetopt.GeneratedSubtitle{{Name: "Again"}}, s.Now())
	if err != nil || len(made) != 1 || made[0].Status != asset.TrackPreparing {
		t.Fatalf("%+v, %v", made, err)
	}
	s.Must(s.DoAll())
	for _, x := range s.Asset(a.ID).Tracks {
		if x.ID == made[0].ID && (x.Status != asset.TrackReady || string(s.ReadObject(x.Object)) != text) {
			t.Errorf("again: %+v", x)
		}
	}
	if _, err = s.GenerateTracks(s.Ctx(), workertest.Env, a.ID, tr.ID, []assetopt.GeneratedSubtitle{{Name: "X"}},
		s.Now()); err == nil {
		t.Error("subtitles of subtitles")
	}
}

// patient is an engine that takes sound in pieces of half a second. It deletes the asset in the first one, by itself or
// while it waits for a processor.
type patient struct {
	polyglot

	deletes    func()
	remove     sync.Once
	waits      bool // that is, it asks whether the sound is still wanted
	recognised int  // pieces
}

func (p *patient) Abilities() (speech.Abilities, error) {
	return speech.Abilities{Languages: []string{"en"}, LongestPiece: 500 * time.Millisecond}, nil
}

func (p *patient) Transcribe(
	ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error,
) error {
	p.remove.Do(p.deletes)
	if p.waits {
		if err := c.StillWanted(ctx); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.recognised++
	return p.polyglot.Transcribe(ctx, pcm, c, emit)
}

// TestDeletedWhileItIsRecognised: an asset that is deleted is not recognised any further, nor at all where it waited
// for a processor, and its job has ended.
func TestDeletedWhileItIsRecognised(t *testing.T) {
	t.Parallel()
	path := programtest.SharedMedia(t, "tone.m4a",
		"-f", "lavfi", "-i", "sine=duration=2", "-c:a", "aac", "-ar", "48000")
	for waits, want := range map[bool]int{true: 0, false: 1} {
		s, engine := statictest.NewShop(t, time.Minute), &patient{waits: waits}
		w := &workerspeech.Worker{
			Assets: s.Work, Store: s.Store, Footage: s.Footage, Decoder: filmtest.NewEngine(t, 0), Most: 1,
			Scratch: s.Scratch,
			Engines: &speech.Engines{All: []speech.Engine{engine}, Now: time.Now}, Now: s.Now,
			Rules: func(context.Context, id.Environment) (speech.Rules, error) { return nil, nil },
		}
		s.Handlers[asset.JobSpeech] = w.Handler()
		a := s.NewAsset(assetopt.Input{
			URL:                s.Site.Offer(filepath.Clean(path)),
			GeneratedSubtitles: []assetopt.GeneratedSubtitle{{LanguageCode: "en"}},
		})
		engine.deletes = func() {
			if err := s.Delete(s.Ctx(), workertest.Env, a.ID, s.Now()); err != nil {
				t.Error(err)
			}
		}
		s.Must(s.DoAll())
		if engine.recognised != want {
			t.Errorf("waits %t: %d pieces were recognised", waits, engine.recognised)
		}
	}
}

// steady is an engine that takes ten seconds for each piece of half a second.
type steady struct {
	polyglot

	world *workertest.World
	look  func() // before each piece, when it is known that it is wanted
}

func (s *steady) Abilities() (speech.Abilities, error) {
	return speech.Abilities{Languages: []string{"en"}, LongestPiece: 500 * time.Millisecond}, nil
}

func (s *steady) Transcribe(
	ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error,
) error {
	if err := c.StillWanted(ctx); err != nil {
		return err
	}
	s.look()
	s.world.Mu.Lock()
	s.world.Clock = s.world.Clock.Add(10 * time.Second)
	s.world.Mu.Unlock()
	return s.polyglot.Transcribe(ctx, pcm, c, emit)
}

// TestTimeLeft: a track says how long its recognition still takes from the first piece on, counted from when that was
// begun.
func TestTimeLeft(t *testing.T) {
	t.Parallel()
	s := statictest.NewShop(t, time.Minute)
	engine := &steady{world: s.World}
	w := &workerspeech.Worker{
		Assets: s.Work, Store: s.Store, Footage: s.Footage, Decoder: filmtest.NewEngine(t, 0), Most: 1,
		Scratch: s.Scratch,
		Engines: &speech.Engines{All: []speech.Engine{engine}, Now: time.Now}, Now: s.Now,
		Rules: func(context.Context, id.Environment) (speech.Rules, error) { return nil, nil },
	}
	s.Handlers[asset.JobSpeech] = w.Handler()
	path := programtest.SharedMedia(t, "tone.m4a",
		"-f", "lavfi", "-i", "sine=duration=2", "-c:a", "aac", "-ar", "48000")
	a := s.NewAsset(assetopt.Input{
		URL: s.Site.Offer(filepath.Clean(path)), GeneratedSubtitles: []assetopt.GeneratedSubtitle{{LanguageCode: "en"}},
	})
	looks, began := 0, time.Time{}
	engine.look = func() {
		tr, now := workertest.TextTrack(t, s.Asset(a.ID), "en"), s.Now()
		if looks++; looks == 1 {
			began = now
			if left := tr.Pace.Left(now); len(tr.Pace) != 1 || left != 0 {
				t.Errorf("when it is begun %s are left, by %v", left, tr.Pace)
			}
			return
		}
		want := now.Sub(began).Seconds() * (100 - tr.Progress) / tr.Progress
		if left := tr.Pace.Left(now).Seconds(); left < 0.7*want || left > 1.3*want+2 {
			t.Errorf("at %g %% %g s are left, want %g", tr.Progress, left, want)
		}
	}
	s.Must(s.DoAll())
	if tr := workertest.TextTrack(t, s.Asset(a.ID), "en"); looks < 3 || tr.Status != asset.TrackReady ||
		tr.Pace != nil {
		t.Errorf("%d pieces, %+v", looks, tr)
	}
}
