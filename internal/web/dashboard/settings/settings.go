package settings

import (
	"net/http"

	"millrace/internal/web/dashboard/shell"
)

func (rm *room) route() {
	rm.Handle("GET "+shell.SettingsPath, "", shell.Anything, rm.toSettings)
	rm.Handle("GET "+shell.SettingsPath+"/{$}", "", shell.Anything, rm.toSettings)
	(&tokens{rm}).routeTokens()
	(&keys{rm}).routeKeys()
	(&restrictions{rm}).routeRestrictions()
	rm.routeDefaults()
	rm.routeRetention()
	rm.routeNodes()
	rm.routeHealth()
}

func (rm *room) toSettings(r *shell.Request) (shell.View, error) {
	return shell.View{Status: http.StatusFound, To: shell.SettingsOf(r.Person)}, nil
}
