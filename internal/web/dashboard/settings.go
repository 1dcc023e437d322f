package dashboard

import (
	"net/http"

	"millrace/internal/control/access"
)

const settingsPath = Path + "/settings"

func (s *server) routeSettings(mux *http.ServeMux) {
	mux.Handle("GET "+settingsPath, s.person("", anything, s.toSettings))
	mux.Handle("GET "+settingsPath+"/{$}", s.person("", anything, s.toSettings))
	s.routeTokens(mux)
	s.routeKeys(mux)
	s.routeRestrictions(mux)
	s.routeDefaults(mux)
	s.routeNodes(mux)
	s.routeHealth(mux)
}

// settingsOf is the first page of the settings that a person may see. Who is signed in may read videos.
func settingsOf(p access.Person) string {
	switch {
	case p.Session.Hash == "":
		return ""
	case p.Permits(access.SystemRead):
		return tokensPath
	}
	return restrictionsPath
}

func (s *server) toSettings(r *request) (view, error) {
	return view{status: http.StatusFound, to: settingsOf(r.Person)}, nil
}
