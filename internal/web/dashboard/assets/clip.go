package assets

import (
	"net/http"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// clipForm is the form in which a stretch of an asset is chosen.
type clipForm struct {
	Start, End, Title string
	Code              shell.Code
	shell.FormErrors
}

func readClip(r *shell.Request) clipForm {
	return clipForm{
		Start: r.Text("start_time"), End: r.Text("end_time"), Title: r.Text("clip_title"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("inputs[0].start_time", "start_time", "In"),
			shell.At("inputs[0].end_time", "end_time", "Out"),
			shell.At("meta.title", "clip_title", "Name"),
		}},
	}
}

// options are what the API would be asked. What is no time is said at once.
func (f *clipForm) options(from asset.Asset) assetopt.Options {
	return assetopt.Options{
		Inputs: []assetopt.Input{{
			URL: clipURL(from.ID), StartTime: f.Time("start_time", f.Start), EndTime: f.Time("end_time", f.End),
		}},
		PlaybackPolicies: plain(from.PlaybackIDs), Meta: assetopt.Meta{Title: f.Title},
	}
}

// clip makes an asset of a stretch of this one, and leads to its page.
func (s *room) clip(r *shell.Request, from asset.Asset) (shell.View, error) {
	f := readClip(r)
	in := asset.CreateInput{Options: f.options(from), DefaultQuality: r.Person.Environment.VideoQuality}
	if len(f.Bad) == 0 {
		made, err := s.Assets.Create(r.Context(), r.Person.Environment.ID, in, s.Now())
		if err == nil {
			return shell.Redirect(Video{Asset: made}.Address()), nil
		}
		if !fault.Is(err, fault.Invalid) {
			return shell.View{}, err
		}
		f.AddMessages(fault.ByField(err))
	} else {
		f.AddErr(in.Check(&from))
	}
	f.Code = s.clipCode(from, f)
	return s.showWith(r, http.StatusBadRequest, func(v *assetPage) { v.Clip = f })
}

// clipURL names an asset as the input of another one.
func clipURL(a id.Asset) string { return "mux://assets/" + string(a) }

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
