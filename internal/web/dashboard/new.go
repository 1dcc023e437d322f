package dashboard

import (
	"math"
	"net/http"

	"millrace/internal/control/access"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
)

// form is the page on which a live stream is made, or its settings are changed: what was typed, and what is wrong with
// it, by the API's names of the fields.
type form struct {
	Title, Latency, Policy, Recordings, Window, SlateURL, Hours, Quality, Passthrough string
	Slate, Download, AudioOnly, Test                                                  bool

	Of *stream // whose settings are changed; nil: a new one is made
	said
}

// streamFields are where messages about a live stream stand.
var streamFields = []fieldAt{ //nolint:gochecknoglobals // a table
	{"meta.title", "title", "Name"},
	{"latency_mode", "latency_mode", "Delay"},
	{"playback_policies", "policy", "Who may watch"},
	{"new_asset_settings.playback_policies", "recordings", "Who may watch its recordings"},
	{"reconnect_window", "reconnect_window", "Wait for an encoder that has gone"},
	{"reconnect_slate_url", "reconnect_slate_url", "Slate image"},
	{"max_continuous_duration", "hours", "Longest broadcast"},
	{"new_asset_settings.video_quality", "video_quality", "Video quality"},
	{"new_asset_settings.static_renditions", "download", "MP4 file of each recording"},
	{"passthrough", "passthrough", "Passthrough"},
}

// The choices of who may watch. What is neither is nobody.
const (
	same   = "same" // recordings: as the live stream
	nobody = "nobody"
)

func (s *server) showNew(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := form{Latency: string(live.Low), Policy: string(playbackid.Public), Recordings: same}
	s.renderNew(w, r, p, http.StatusOK, f, false)
}

func (s *server) create(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := readForm(r)
	in := f.input()
	in.DefaultQuality = p.Environment.VideoQuality
	status := http.StatusBadRequest
	if len(f.Bad) == 0 {
		made, err := s.Live.Create(r.Context(), p.Environment.ID, in, s.Now())
		if err == nil {
			http.Redirect(w, r, stream{Stream: made}.Address(), http.StatusSeeOther)
			return
		}
		var known bool
		if status, known = f.refused(err); !known {
			s.fail(w, r, p, err)
			return
		}
	} else {
		f.also(in.Check())
	}
	s.renderNew(w, r, p, status, f, false)
}

func readForm(r *http.Request) form {
	return form{
		Title: typed(r, "title"), Latency: typed(r, "latency_mode"), Policy: typed(r, "policy"),
		Recordings: typed(r, "recordings"), Window: typed(r, "reconnect_window"),
		SlateURL: typed(r, "reconnect_slate_url"), Hours: typed(r, "hours"), Quality: typed(r, "video_quality"),
		Passthrough: typed(r, "passthrough"), Slate: ticked(r, "slate"), Download: ticked(r, "download"),
		AudioOnly: ticked(r, "audio_only"), Test: ticked(r, "test"),
		said: said{fields: streamFields},
	}
}

// input is what the API would be asked. What is no number is said at once; the rest is the service's business.
func (f *form) input() live.CreateInput {
	in := live.CreateInput{
		Meta: assetopt.Meta{Title: f.Title}, LatencyMode: live.LatencyMode(f.Latency),
		PlaybackPolicies: policies(f.Policy),
		SlateForStandard: f.Slate, ReconnectSlateURL: f.SlateURL, Passthrough: f.Passthrough, AudioOnly: f.AudioOnly,
		Test: f.Test,
	}
	if n, ok := f.window(); ok {
		in.ReconnectWindow = &n
	}
	if sec, ok := f.longest(); ok {
		in.MaxContinuous = &sec
	}
	recordings := f.Recordings
	if recordings == same {
		recordings = f.Policy
	}
	in.NewAsset = &assetopt.Options{PlaybackPolicies: policies(recordings), VideoQuality: f.Quality}
	if f.Download {
		in.NewAsset.StaticRenditions = []assetopt.StaticRendition{{Resolution: assetopt.Highest}}
	}
	return in
}

// window is the reconnect window in seconds, longest the longest broadcast; false: none was typed.
func (f *form) window() (float64, bool) {
	return f.number("reconnect_window", f.Window, "a number of seconds")
}

func (f *form) longest() (sec int, ok bool) {
	n, ok := f.number("hours", f.Hours, "a number of hours")
	return int(math.Round(min(max(n, -1), 1e6) * 3600)), ok
}

func policies(word string) []playbackid.Policy {
	if word == "" || word == nobody {
		return nil
	}
	return []playbackid.Policy{playbackid.Policy(word)}
}
