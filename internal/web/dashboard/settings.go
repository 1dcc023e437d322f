package dashboard

import (
	"net/http"
)

func (s *server) routeSettings() {
	s.handle("GET "+settingsPath, "", anything, s.toSettings)
	s.handle("GET "+settingsPath+"/{$}", "", anything, s.toSettings)
	s.routeTokens()
	s.routeKeys()
	s.routeRestrictions()
	s.routeDefaults()
	s.routeNodes()
	s.routeHealth()
}

func (s *server) toSettings(r *request) (view, error) {
	return view{status: http.StatusFound, to: settingsOf(r.Person)}, nil
}
