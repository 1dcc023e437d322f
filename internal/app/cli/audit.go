package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/audit"
	"millrace/internal/id"
)

// withAudit has what a command changes be in the audit log.
func withAudit(ctx context.Context, c config.Command, environ []string, now time.Time) context.Context {
	return audit.With(ctx, audit.Entry{
		At: now, Operation: c.Name, Actor: audit.Actor{Type: audit.CommandLine, Name: systemUser(environ)},
	})
}

// systemUser is who gives the command: with sudo, who called that.
func systemUser(environ []string) string {
	for _, v := range environ {
		if name, ok := strings.CutPrefix(v, "SUDO_USER="); ok && name != "" {
			return name
		}
	}
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// auditBatch is how many entries are read at a time.
const auditBatch = 1000

// auditLog prints entries of the audit log.
func auditLog(ctx context.Context, c config.Command, cfg config.Config, stdout io.Writer, a Actions) (err error) {
	log, closeDB, err := a.Audit(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	q := audit.Query{
		Environment: id.Environment(c.Access.Environment), Actor: c.Access.Actor, Operation: c.Access.Operation, Resource: c.Access.Resource, Since: c.Replay.Since,
	}
	tab := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(tab, "TIME\tWHO\tADDRESS\tOPERATION\tRESOURCE\tENVIRONMENT\tREQUEST")
	}
	for left := c.Access.Limit; left > 0; {
		q.Limit = min(left, auditBatch)
		found, err := log.AuditLog(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range found {
			if err := printEntry(tab, e, c.JSON); err != nil {
				return err
			}
			q.Before = e.ID
		}
		if left -= len(found); len(found) < q.Limit {
			break
		}
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print audit log: %w", err)
	}
	return nil
}

func printEntry(w io.Writer, e audit.Entry, asJSON bool) error {
	if asJSON {
		if err := json.NewEncoder(w).Encode(entryJSON(e)); err != nil {
			return fmt.Errorf("print audit log: %w", err)
		}
		return nil
	}
	who := e.Actor.Name
	if e.Actor.ID != "" {
		who += " (" + e.Actor.ID + ")"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", timeOrNone(e.At), who, textOrNone(e.Address), e.Operation,
		textOrNone(strings.TrimSpace(e.Resource.Type+" "+e.Resource.ID)), textOrNone(string(e.Environment)), textOrNone(e.RequestID))
	return nil
}

func entryJSON(e audit.Entry) map[string]string {
	all := map[string]string{
		"id": e.ID, "created_at": e.At.UTC().Format(time.RFC3339), "actor_type": e.Actor.Type, "actor_id": e.Actor.ID, "actor_name": e.Actor.Name,
		"operation": e.Operation, "resource_type": e.Resource.Type, "resource_id": e.Resource.ID, "address": e.Address,
		"request_id": e.RequestID, "environment_id": string(e.Environment),
	}
	for name, v := range all {
		if v == "" {
			delete(all, name)
		}
	}
	return all
}

func textOrNone(s string) string {
	if s == "" {
		return none
	}
	return s
}
