package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"millrace/internal/spelling"
)

// RoleAll stands for every role.
const RoleAll = "all"

// everyRole lists the roles, in the order in which they are written.
func everyRole() []string { return []string{"api", "ingest", "playback", "worker"} }

// Roles are what a node does: RoleAll alone, or some of the roles, in their order.
type Roles []string

// All reports whether the node does everything; so does one without any.
func (r Roles) All() bool { return len(r) == 0 || slices.Contains(r, RoleAll) }

// Has reports whether the node has a role.
func (r Roles) Has(role string) bool { return r.All() || slices.Contains(r, role) }

// String writes the roles as the setting has them.
func (r Roles) String() string { return strings.Join(r, ",") }

// parseRoles reads a list of roles. Every role by its name is the same as all.
func parseRoles(s string) (Roles, error) {
	every := everyRole()
	var given []string
	for item := range strings.SplitSeq(s, ",") {
		item = strings.ToLower(strings.TrimSpace(item))
		if item != RoleAll && !slices.Contains(every, item) {
			return nil, fmt.Errorf("has the part %q, which is no role: write %s, several with commas between, or all%s",
				item, strings.Join(every, ", "), spelling.Suggest(item, append(every, RoleAll), ""))
		}
		given = append(given, item)
	}
	if slices.Contains(given, RoleAll) {
		if len(given) > 1 {
			return nil, errors.New("has all beside other roles: leave either out")
		}
		return Roles{RoleAll}, nil
	}
	roles := Roles(slices.DeleteFunc(every, func(role string) bool { return !slices.Contains(given, role) }))
	if len(roles) == len(everyRole()) {
		return Roles{RoleAll}, nil
	}
	return roles, nil
}

// RoleConflicts lists what is wrong between the roles and other settings: a node that does a part has to reach those
// that do the rest.
func (c *Config) RoleConflicts() (problems []string) {
	if c.Node.Roles.All() {
		return nil
	}
	if c.Database.Engine != Postgres {
		return []string{"roles " + c.Node.Roles.String() +
			" need PostgreSQL: on SQLite there is only one node, and no other one would do the rest; set " +
			"database-url, or leave out roles"}
	}
	if c.InternalAddr == "" {
		return []string{"roles " + c.Node.Roles.String() +
			" need internal-addr: a node that does not do everything asks " +
			"others, and they ask it"}
	}
	return nil
}
