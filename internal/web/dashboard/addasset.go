package dashboard

import (
	"net/http"

	"millrace/internal/control/access"
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

func (s *server) routeAdd(mux *http.ServeMux) {
	mux.Handle("GET "+assetsPath+"/new", s.person("", writes, s.showAdd))
	mux.Handle("POST "+assetsPath, s.person("create-asset", writes, s.add))
}

func (s *server) showAdd(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.renderAdd(w, r, p, http.StatusOK, addForm{Policy: string(playbackid.Public)}, false)
}

func (s *server) add(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := readAdd(r)
	made, err := s.Assets.Create(r.Context(), p.Environment.ID,
		asset.CreateInput{Options: f.options(), DefaultQuality: p.Environment.VideoQuality}, s.Now())
	if err == nil {
		http.Redirect(w, r, video{Asset: made}.Address(), http.StatusSeeOther)
		return
	}
	status, known := f.refused(err)
	if !known {
		s.fail(w, r, p, err)
		return
	}
	s.renderAdd(w, r, p, status, f, false)
}

func readAdd(r *http.Request) addForm {
	return addForm{
		URL: typed(r, "url"), Title: typed(r, "title"), Policy: typed(r, "policy"), Quality: typed(r, "video_quality"),
		Passthrough: typed(r, "passthrough"), Download: ticked(r, "download"), Test: ticked(r, "test"),
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
