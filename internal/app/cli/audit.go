package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"
	"strings"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/audit"
)

// withAudit has what a command changes be in the audit log.
func withAudit(ctx context.Context, r *request) context.Context {
	return audit.With(ctx, audit.Entry{
		At: r.now, Operation: r.command, Actor: audit.Actor{Type: audit.CommandLine, Name: systemUser(r.environ)},
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

func auditCommands() []command {
	return []command{
		of("audit", "list the audit log",
			"Lists changes made through the API and by commands, newest first: when, who, from where and what. "+
				"Reads the database directly; the service need not run.", &auditLog{}),
	}
}

// auditLog prints entries of the audit log.
type auditLog struct {
	inEnvironment

	json                       bool
	actor, operation, resource string
	since                      time.Time
	limit                      int
}

func (a *auditLog) flags(f *flags) {
	f.asJSON(&a.json)
	f.since(&a.since)
	a.inEnvironment.flags(f)
	add(f, &a.actor, anything, "actor", "id or name", "", "Only changes by this access token or user.")
	add(f, &a.operation, anything, "operation", "name", "",
		"Only changes by this operation or command, such as delete-asset.")
	add(f, &a.resource, anything, "resource", "id", "", "Only changes of the resource with this ID.")
	add(f, &a.limit, config.Number(1, 100_000), "limit", "number", "100", "How many changes at most, 1 to 100000.")
}

func (a *auditLog) run(ctx context.Context, r *request) error {
	q := audit.Query{
		Environment: a.environment, Actor: a.actor, Operation: a.operation, Resource: a.resource, Since: a.since,
	}
	log, closeDB, err := r.Audit(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		tab := newTable(r.out)
		if !a.json {
			tab.row("TIME", "WHO", "ADDRESS", "OPERATION", "RESOURCE", "ENVIRONMENT", "REQUEST")
		}
		for left := a.limit; left > 0; {
			q.Limit = min(left, auditBatch)
			found, err := log.AuditLog(ctx, q)
			if err != nil {
				return err
			}
			for _, e := range found {
				if err := printEntry(tab, e, a.json); err != nil {
					return err
				}
				q.Before = e.ID
			}
			if left -= len(found); len(found) < q.Limit {
				break
			}
		}
		return tab.end()
	})
}

func printEntry(tab table, e audit.Entry, asJSON bool) error {
	if asJSON {
		if err := json.NewEncoder(tab).Encode(entryJSON(e)); err != nil {
			return fmt.Errorf("print audit log: %w", err)
		}
		return nil
	}
	who := e.Actor.Name
	if e.Actor.ID != "" {
		who += " (" + e.Actor.ID + ")"
	}
	resource := strings.TrimSpace(e.Resource.Type + " " + e.Resource.ID)
	tab.row(timeOrNone(e.At), who, textOrNone(e.Address), e.Operation, textOrNone(resource),
		textOrNone(string(e.Environment)), textOrNone(e.RequestID))
	return nil
}

func entryJSON(e audit.Entry) map[string]string {
	all := map[string]string{
		"id": e.ID, "created_at": e.At.UTC().Format(time.RFC3339), "actor_type": e.Actor.Type, "actor_id": e.Actor.ID,
		"actor_name": e.Actor.Name,
		"operation":  e.Operation, "resource_type": e.Resource.Type, "resource_id": e.Resource.ID, "address": e.Address,
		"request_id": e.RequestID, "environment_id": string(e.Environment),
	}
	for name, v := range all {
		if v == "" {
			delete(all, name)
		}
	}
	return all
}
