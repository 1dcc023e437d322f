package broadcast_test

import (
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/media/ingest"
)

// TestLabelsOfAPublication: what a protocol logs about an encoder names the live stream.
func TestLabelsOfAPublication(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		s := w.stream()
		e := w.start("a").publish(s.StreamKey)
		var out strings.Builder
		ingest.Logger(slog.New(slog.NewTextHandler(&out, nil)), e.sink).Info("encoder connected")
		if want := "live_stream_id=" + string(s.ID) + " asset_id="; !strings.Contains(out.String(), want) {
			t.Errorf("%s, want %s", out.String(), want)
		}
		e.stop()
	})
}

// TestInputOfARecording: what the API shows of a recording's input is what its encoder sent.
func TestInputOfARecording(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		s := w.stream(window(0))
		w.start("a").publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(time.Second)
		a, err := w.assets.Find(w.ctx, w.row(s.ID).RecentAssets[0])
		w.must(err)
		if len(a.InputInfo) != 1 || a.InputInfo[0].File.ContainerFormat != "flv" ||
			len(a.InputInfo[0].File.Tracks) != 2 {
			t.Fatalf("input %+v", a.InputInfo)
		}
		video, audio := a.InputInfo[0].File.Tracks[0], a.InputInfo[0].File.Tracks[1]
		if video.Type != "video" || video.Encoding != "h264" || video.Width != 320 || video.Height != 180 ||
			video.FrameRate != fps || math.Abs(video.Duration-10) > 0.1 {
			t.Errorf("video %+v", video)
		}
		if audio.Type != "audio" || audio.Encoding != "aac" || audio.SampleRate != 48000 || audio.Channels != 2 ||
			math.Abs(audio.Duration-10) > 0.1 {
			t.Errorf("audio %+v", audio)
		}
	})
}

// TestInputsOfARecording: the first input of the settings is the encoder, and the API shows it once, with what was
// found in its media; the others follow.
func TestInputsOfARecording(t *testing.T) {
	t.Parallel()
	encoder := assetopt.Input{Name: "Original", LanguageCode: "de"}
	text := assetopt.Input{
		URL: "https://example.com/a.vtt", Type: "text", TextType: "subtitles", LanguageCode: "fr", Name: "Français",
	}
	spanish := text
	spanish.LanguageCode, spanish.Name = "es", "Español"
	for name, inputs := range map[string][]assetopt.Input{
		"no inputs":              nil,
		"the encoder's alone":    {encoder},
		"the encoder's and text": {encoder, text},
		"two texts":              {{}, text, spanish},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				s := w.stream(window(0), func(in *live.CreateInput) { in.NewAsset = &assetopt.Options{Inputs: inputs} })
				w.start("a").publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(time.Second)
				a, err := w.assets.Find(w.ctx, w.row(s.ID).RecentAssets[0])
				w.must(err)
				if len(a.InputInfo) != max(len(inputs), 1) || len(a.InputInfo[0].File.Tracks) != 2 {
					w.t.Fatalf("inputs %+v", a.InputInfo)
				}
				for i, in := range inputs {
					got := a.InputInfo[i]
					if !reflect.DeepEqual(got.Settings, in) || i > 0 && got.File.Tracks != nil {
						w.t.Errorf("input %d: %+v, want the settings %+v", i, got, in)
					}
				}
			})
		})
	}
}

// TestRecordingThatIsATest: a recording of an ordinary stream whose settings ask for test assets has ten seconds; the
// broadcast goes on, and what was listed of it is found still.
func TestRecordingThatIsATest(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		s := w.stream(window(0), func(in *live.CreateInput) { in.NewAsset = &assetopt.Options{Test: true} })
		w.start("a").publish(s.StreamKey).send(30 * time.Second).stop()
		w.wait(time.Second)
		a := w.row(s.ID).RecentAssets[0]
		recordings, tl := w.recorded(a)
		if long := tl.Duration().Seconds(); long < 6 || long > 10.1 || tl.Tail == nil {
			t.Errorf("the recording lasts %v s", long)
		}
		if len(recordings) != 1 || math.Abs(recordings[0].Duration-tl.Duration().Seconds()) > 0.01 {
			t.Errorf("recording times %+v", recordings)
		}
		if row := w.asset(a); !row.Options.Test {
			t.Error("it is no test asset")
		}
	})
}
