package dashboard

import (
	"net/http"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// addForm is the page on which an asset is made of a URL: what was typed, and what is wrong with it.
type addForm struct {
	Typed map[string]string
	Bad   map[string]string
	Top   []string
}

func (s *server) routeAdd(mux *http.ServeMux) {
	mux.Handle("GET "+assetsPath+"/new", s.person("", writes, s.showAdd))
	mux.Handle("POST "+assetsPath, s.person("create-asset", writes, s.add))
}

func (s *server) showAdd(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.render(w, r, p, http.StatusOK, "addasset", addForm{Typed: map[string]string{"policy": string(playbackid.Public)}})
}

func (s *server) add(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := addForm{Typed: typed(r, "url", "title", "policy", "video_quality", "download", "test", "passthrough")}
	o := assetopt.Options{
		Inputs: []assetopt.Input{{URL: f.Typed["url"]}}, Meta: assetopt.Meta{Title: f.Typed["title"]},
		PlaybackPolicies: policies(f.Typed["policy"]), VideoQuality: f.Typed["video_quality"],
		Passthrough: f.Typed["passthrough"], Test: f.Typed["test"] != "",
	}
	if f.Typed["download"] != "" {
		o.StaticRenditions = []assetopt.StaticRendition{{Resolution: assetopt.Highest}}
	}
	made, err := s.Assets.Create(r.Context(), p.Environment.ID,
		asset.CreateInput{Options: o, DefaultQuality: p.Environment.VideoQuality}, s.Now())
	if err == nil {
		http.Redirect(w, r, video{Asset: made}.Address(), http.StatusSeeOther)
		return
	}
	if !fault.Is(err, fault.Invalid) {
		s.fail(w, r, p, err)
		return
	}
	f.Bad, f.Top = beside(fault.Messages(err), []fieldAt{
		{"inputs", "url"},
		{"meta.title", "title"},
		{"playback_policies", "policy"},
		{"video_quality", "video_quality"},
		{"static_renditions", "download"},
		{"test", "test"},
		{"passthrough", "passthrough"},
	})
	s.render(w, r, p, http.StatusBadRequest, "addasset", f)
}
