package settings

import (
	"net/http"

	"millrace/internal/web/dashboard/shell"
)

func (s *room) route() {
	s.Handle("GET "+shell.SettingsPath, "", shell.Anything, s.toSettings)
	s.Handle("GET "+shell.SettingsPath+"/{$}", "", shell.Anything, s.toSettings)
	(&tokens{s}).routeTokens()
	(&keys{s}).routeKeys()
	(&restrictions{s}).routeRestrictions()
	s.routeDefaults()
	s.routeNodes()
	s.routeHealth()
}

func (s *room) toSettings(r *shell.Request) (shell.View, error) {
	return shell.View{Status: http.StatusFound, To: shell.SettingsOf(r.Person)}, nil
}
