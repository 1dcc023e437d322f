package dashboard

import (
	"net/http"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// clip makes an asset of a stretch of this one, and leads to its page.
func (s *server) clip(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := &typedForm{
		name: "clip", typed: typed(r, "start_time", "end_time", "clip_title"), bad: map[string]string{},
		fields: []fieldAt{
			{"inputs[0].start_time", "start_time"}, {"inputs[0].end_time", "end_time"}, {"meta.title", "clip_title"},
		},
	}
	from, err := s.Assets.Get(r.Context(), p.Environment.ID, assetOf(r))
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	in := assetopt.Input{URL: clipURL(from.ID), StartTime: f.time("start_time"), EndTime: f.time("end_time")}
	if len(f.bad) > 0 {
		s.wrong(w, r, p, f)
		return
	}
	made, err := s.Assets.Create(r.Context(), p.Environment.ID, asset.CreateInput{
		Options: assetopt.Options{
			Inputs: []assetopt.Input{in}, PlaybackPolicies: plain(from.PlaybackIDs),
			Meta: assetopt.Meta{Title: f.typed["clip_title"]},
		},
		DefaultQuality: p.Environment.VideoQuality,
	}, s.Now())
	if err != nil {
		s.done(w, r, p, err, "", f)
		return
	}
	http.Redirect(w, r, video{Asset: made}.Address(), http.StatusSeeOther)
}

// clipURL names an asset as the input of another one.
func clipURL(a id.Asset) string { return "mux://assets/" + string(a) }

// time reads a field in which a time may stand; nil: it is empty, or wrong, which is kept.
func (f *typedForm) time(field string) *float64 {
	text := f.typed[field]
	if text == "" {
		return nil
	}
	v, ok := secondsOf(text)
	if !ok {
		f.bad[field] = "This must be a time, as 0:01:30.5 or as seconds."
		return nil
	}
	return &v
}

// plain are the policies of playback IDs that a clip may have too without more being said: one of each.
func plain(ids []playbackid.ID) []playbackid.Policy {
	var out []playbackid.Policy
	for _, policy := range []playbackid.Policy{playbackid.Public, playbackid.Signed} {
		for _, p := range ids {
			if p.Policy == policy {
				out = append(out, policy)
				break
			}
		}
	}
	return out
}
