package dashboard

import (
	"net/http"

	"millrace/internal/control/access"
)

const settingsPath = Path + "/settings"

func (s *server) routeSettings(mux *http.ServeMux) {
	mux.Handle("GET "+settingsPath, http.RedirectHandler(tokensPath, http.StatusFound))
	mux.Handle("GET "+settingsPath+"/{$}", http.RedirectHandler(tokensPath, http.StatusFound))
	s.routeTokens(mux)
	s.routeDefaults(mux)
	s.routeHealth(mux)
}

// settingsOf reports whether there are settings that a person may see.
func settingsOf(p access.Person) bool { return p.Session.Hash != "" && p.Permits(access.SystemRead) }
