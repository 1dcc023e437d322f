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
	s.routeDefaults(mux)
	s.routeHealth(mux)
}

// settingsOf is the first page of the settings that a person may see; empty: there is none.
func settingsOf(p access.Person) string {
	if p.Session.Hash != "" && p.Permits(access.SystemRead) {
		return tokensPath
	}
	return ""
}

func (s *server) toSettings(w http.ResponseWriter, r *http.Request, p access.Person) {
	to := settingsOf(p)
	if to == "" {
		s.mayNot(w, r, p, access.SystemRead)
		return
	}
	http.Redirect(w, r, to, http.StatusFound)
}
