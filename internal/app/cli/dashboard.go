package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"millrace/internal/config"
)

// dashboardLink prints a link that sets the password of the dashboard, and nothing else, so that programs can take it.
func dashboardLink(ctx context.Context, cfg config.Config, stdout io.Writer, a Actions) error {
	if !cfg.Dashboard {
		return errors.New("the dashboard is off: set dashboard to on, for the service too")
	}
	url, err := a.DashboardLink(ctx, cfg)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, url)
	return err
}
