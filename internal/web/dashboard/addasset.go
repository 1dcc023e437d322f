package dashboard

import (
	"net/http"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
)

// addForm is the page on which an asset is made of a URL: what was typed, and what is wrong with it.
type addForm struct {
	URL, Title, Policy, Quality, Passthrough string
	Download, Test                           bool

	Code code
	said
}

func (s *server) routeAdd() {
	s.handle("GET "+assetsPath+"/new", "", writes, s.showAdd)
	s.handle("POST "+assetsPath, "create-asset", writes, s.add)
}

func (s *server) showAdd(r *request) (view, error) {
	return s.renderAdd(r, http.StatusOK, addForm{Policy: string(playbackid.Public)}, false)
}

func (s *server) add(r *request) (view, error) {
	f := readAdd(r)
	made, err := s.Assets.Create(r.Context(), r.Person.Environment.ID,
		asset.CreateInput{Options: f.options(), DefaultQuality: r.Person.Environment.VideoQuality}, s.Now())
	if err == nil {
		return redirect(video{Asset: made}.Address()), nil
	}
	status, known := f.refused(err)
	if !known {
		return view{}, err
	}
	return s.renderAdd(r, status, f, false)
}

func readAdd(r *request) addForm {
	return addForm{
		URL: r.Text("url"), Title: r.Text("title"), Policy: r.Text("policy"), Quality: r.Text("video_quality"),
		Passthrough: r.Text("passthrough"), Download: r.Ticked("download"), Test: r.Ticked("test"),
		said: said{fields: []fieldAt{
			{"inputs", "url", "Address of the file"},
			{"meta.title", "title", "Name"},
			{"playback_policies", "policy", "Who may watch"},
			{"video_quality", "video_quality", "Video quality"},
			{"static_renditions", "download", "MP4 file"},
			{"test", "test", "For a test"},
			{"passthrough", "passthrough", "Passthrough"},
		}},
	}
}

// options are what the API would be asked.
func (f addForm) options() assetopt.Options {
	o := assetopt.Options{
		Inputs: []assetopt.Input{{URL: f.URL}}, Meta: assetopt.Meta{Title: f.Title},
		PlaybackPolicies: policies(f.Policy), VideoQuality: f.Quality, Passthrough: f.Passthrough, Test: f.Test,
	}
	if f.Download {
		o.StaticRenditions = []assetopt.StaticRendition{{Resolution: assetopt.Highest}}
	}
	return o
}
