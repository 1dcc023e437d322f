package dashboard

import (
	"net/http"

	"millrace/internal/web/dashboard/shell"
)

func (s *server) routeSettings() {
	s.Handle("GET "+shell.SettingsPath, "", shell.Anything, s.toSettings)
	s.Handle("GET "+shell.SettingsPath+"/{$}", "", shell.Anything, s.toSettings)
	s.routeTokens()
	s.routeKeys()
	s.routeRestrictions()
	s.routeDefaults()
	s.routeNodes()
	s.routeHealth()
}

func (s *server) toSettings(r *shell.Request) (shell.View, error) {
	return shell.View{Status: http.StatusFound, To: shell.SettingsOf(r.Person)}, nil
}
