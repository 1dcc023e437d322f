package cli

import (
	"context"
	"errors"
)

func dashboardCommands() []command {
	return []command{
		of("dashboard link", "create a link for setting the dashboard's password",
			"Prints a link to the dashboard where its password can be set, for the first time or again; a new "+
				"password ends all sessions. The link works once, within an hour, and starts with --public-url. "+
				"Writes to the database directly; the service need not run.", dashboardLink{}),
	}
}

// dashboardLink prints a link that sets the password of the dashboard, and nothing else, so that programs can take it.
type dashboardLink struct{}

func (dashboardLink) flags(f *flags) { f.mayCreate() }

func (dashboardLink) run(ctx context.Context, r *request) error {
	if !r.cfg.Dashboard {
		return errors.New("the dashboard is off: set dashboard to on, for the service too")
	}
	url, err := r.DashboardLink(ctx, r.cfg)
	return r.done(err, "%s", url)
}
