package dashboard

import (
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"

	"millrace/internal/control/access"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// form is the page on which a live stream is made: what was typed, and what is wrong with it, by the API's names of
// the fields.
type form struct {
	Title, Latency, Policy, Recordings, Window, SlateURL, Hours, Quality, Passthrough string
	Slate, Download, AudioOnly, Test                                                  bool

	Bad map[string]string
	Top []string // what belongs to no field
}

// The choices of who may watch. What is neither is nobody.
const (
	same   = "same" // recordings: as the live stream
	nobody = "nobody"
)

func (s *server) showNew(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := form{Latency: string(live.Low), Policy: string(playbackid.Public), Recordings: same}
	s.render(w, r, p, http.StatusOK, "new", f)
}

func (s *server) create(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := readForm(r)
	in := f.input()
	in.DefaultQuality = p.Environment.VideoQuality
	if len(f.Bad) == 0 {
		made, err := s.Live.Create(r.Context(), p.Environment.ID, in, s.Now())
		if err == nil {
			http.Redirect(w, r, stream{Stream: made}.Address(), http.StatusSeeOther)
			return
		}
		if !fault.Is(err, fault.Invalid) {
			s.fail(w, r, p, err)
			return
		}
		f.complain(fault.Messages(err))
	}
	s.render(w, r, p, http.StatusBadRequest, "new", f)
}

func readForm(r *http.Request) form {
	text := func(name string) string {
		return strings.ToValidUTF8(strings.TrimSpace(r.PostFormValue(name)), "\uFFFD")
	}
	is := func(name string) bool { return r.PostFormValue(name) != "" }
	return form{
		Title: text("title"), Latency: text("latency_mode"), Policy: text("policy"), Recordings: text("recordings"),
		Window: text("reconnect_window"), SlateURL: text("reconnect_slate_url"), Hours: text("hours"),
		Quality:     text("video_quality"),
		Passthrough: text("passthrough"), Slate: is("slate"), Download: is("download"), AudioOnly: is("audio_only"),
		Test: is("test"),
		Bad:  map[string]string{},
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
	if n, ok := f.number("reconnect_window", f.Window, "a number of seconds"); ok {
		in.ReconnectWindow = &n
	}
	if n, ok := f.number("max_continuous_duration", f.Hours, "a number of hours"); ok {
		sec := int(math.Round(min(max(n, -1), 1e6) * 3600))
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

func (f *form) number(field, text, want string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		f.Bad[field] = "This must be " + want + "."
		return 0, false
	}
	return n, true
}

func policies(word string) []playbackid.Policy {
	if word == "" || word == nobody {
		return nil
	}
	return []playbackid.Policy{playbackid.Policy(word)}
}

// fieldsOf says at which field of the form a message stands.
var fieldsOf = []fieldAt{ //nolint:gochecknoglobals // a table
	{"meta.title", "title"},
	{"latency_mode", "latency_mode"},
	{"playback_policies", "policy"},
	{"new_asset_settings.playback_policies", "recordings"},
	{"new_asset_settings.video_quality", "video_quality"},
	{"new_asset_settings.static_renditions", "download"},
	{"reconnect_window", "reconnect_window"},
	{"reconnect_slate_url", "reconnect_slate_url"},
	{"max_continuous_duration", "max_continuous_duration"},
	{"passthrough", "passthrough"},
}

// complain puts messages of the service beside their fields.
func (f *form) complain(messages []string) {
	bad, top := beside(messages, fieldsOf)
	maps.Copy(f.Bad, bad)
	f.Top = append(f.Top, top...)
}
