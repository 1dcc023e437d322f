package assets

import (
	"net/http"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/web/dashboard/shell"
)

// addForm is the page on which an asset is made of a URL: what was typed, and what is wrong with it.
type addForm struct {
	URL, Title, Policy, Quality, Passthrough string
	Download, Test                           bool

	Code shell.Code
	shell.FormErrors
}

func (s *room) routeAdd() {
	s.Handle("GET "+shell.AssetsPath+"/new", "", shell.Writes, s.showAdd)
	s.Handle("POST "+shell.AssetsPath, "create-asset", shell.Writes, s.add)
}

func (s *room) showAdd(r *shell.Request) (shell.View, error) {
	return s.renderAdd(r, http.StatusOK, addForm{Policy: string(playbackid.Public)}, false)
}

func (s *room) add(r *shell.Request) (shell.View, error) {
	f := readAdd(r)
	made, err := s.Assets.Create(r.Context(), r.Person.Environment.ID,
		asset.CreateInput{Options: f.options(), DefaultQuality: r.Person.Environment.VideoQuality}, s.Now())
	if err == nil {
		return shell.Redirect(Video{Asset: made}.Address()), nil
	}
	status, err := f.TakeErr(err)
	if err != nil {
		return shell.View{}, err
	}
	return s.renderAdd(r, status, f, false)
}

func readAdd(r *shell.Request) addForm {
	return addForm{
		URL: r.Text("url"), Title: r.Text("title"), Policy: r.Text("policy"), Quality: r.Text("video_quality"),
		Passthrough: r.Text("passthrough"), Download: r.Ticked("download"), Test: r.Ticked("test"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("inputs", "url", "Address of the file"),
			shell.At("meta.title", "title", "Name"),
			shell.At("playback_policies", "policy", "Who may watch"),
			shell.At("video_quality", "video_quality", "Video quality"),
			shell.At("static_renditions", "download", "MP4 file"),
			shell.At("test", "test", "For a test"),
			shell.At("passthrough", "passthrough", "Passthrough"),
		}},
	}
}

// options are what the API would be asked.
func (f addForm) options() assetopt.Options {
	o := assetopt.Options{
		Inputs: []assetopt.Input{{URL: f.URL}}, Meta: assetopt.Meta{Title: f.Title},
		PlaybackPolicies: Policies(f.Policy), VideoQuality: f.Quality, Passthrough: f.Passthrough, Test: f.Test,
	}
	if f.Download {
		o.StaticRenditions = []assetopt.StaticRendition{{Resolution: assetopt.Highest}}
	}
	return o
}

const nobody = "nobody" // may watch

// Policies are those of a choice of who may watch.
func Policies(word string) []playbackid.Policy {
	if word == "" || word == nobody {
		return nil
	}
	return []playbackid.Policy{playbackid.Policy(word)}
}
