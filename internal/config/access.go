package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Access holds the flags of the commands that work on the database.
type Access struct {
	Create       bool          // commands that create something: --create, the database too
	Environment  string        // --environment; empty: the default one
	Permissions  []string      // token create: --permission
	Installation bool          // token create: --installation
	ExpiresIn    time.Duration // token create: --expires, one of the two; 0
	ExpiresAt    time.Time     // zero
	Kind         string        // environment create: --type
	Actor        string        // audit: --actor
	Operation    string        // audit: --operation
	Resource     string        // audit: --resource
	Limit        int           // audit: --limit
}

// tokenPermissions are those that a token can have in its environment.
var tokenPermissions = []string{"video:read", "video:write", "data:read", "data:write", "system:read", "system:write"} //nolint:gochecknoglobals // constants

// ofEnvironment are the commands that work in one environment.
var ofEnvironment = []string{ //nolint:gochecknoglobals // a table
	TokenCreate, KeyCreate, KeyList, KeyDelete, SetQuality, SetLiveRungs, SetCaptions, SetFrameAncestors, WebhookCreate, WebhookList, WebhookEnable,
	WebhookDisable, WebhookDelete, WebhookRotate, WebhookTest, WebhookDeliveries, WebhookReplay, WebhookRetry, WebhookSkip,
	DRMCreate, DRMList, DRMDelete, Audit,
}

// creating are the commands that have a meaning in an empty database.
var creating = []string{ //nolint:gochecknoglobals // a table
	TokenCreate, EnvironmentCreate, KeyCreate, WebhookCreate, DRMCreate, DashboardLink,
}

//nolint:gochecknoglobals // a table
var accessOptions = []option{
	{
		name: "create", help: "Create the SQLite database if it doesn't exist yet.", commands: creating,
		apply: func(c *Command, s string) error { return isSwitch(s, &c.Access.Create) },
	},
	{
		name: "environment", word: "id", help: "ID of the environment. Default: the default environment; for audit, all of them.", commands: ofEnvironment,
		apply: func(c *Command, s string) error { c.Access.Environment = s; return nil },
	},
	{
		name: "permission", word: "permission,…", commands: []string{TokenCreate},
		help:  "What the token may do: " + strings.Join(tokenPermissions, ", ") + "; may be repeated. All of them unless given.",
		apply: applyPermissions,
	},
	{
		name: "expires", word: "duration or time", help: "When the token expires: after 90d or 12h, or at 2027-01-02T15:04:05Z. Never unless given.",
		commands: []string{TokenCreate},
		apply: func(c *Command, s string) (err error) {
			if c.Access.ExpiresAt, err = time.Parse(time.RFC3339, s); err == nil {
				return nil
			}
			if c.Access.ExpiresIn, err = parseDays(s); err != nil {
				return errors.New("is neither a duration such as 90d nor a time such as 2027-01-02T15:04:05Z")
			}
			return nil
		},
	},
	{
		name: "installation", help: "Make an installation token, which can make, rename and list environments " +
			"and list nodes over the API, and nothing else.",
		commands: []string{TokenCreate},
		apply:    func(c *Command, s string) error { return isSwitch(s, &c.Access.Installation) },
	},
	{
		name: "type", word: "type", def: "production", help: "A label: production or development.", commands: []string{EnvironmentCreate},
		apply: func(c *Command, s string) error {
			if s != "production" && s != "development" {
				return errors.New("is neither production nor development")
			}
			c.Access.Kind = s
			return nil
		},
	},
	{
		name: "actor", word: "id or name", help: "Only changes by this access token or user.", commands: []string{Audit},
		apply: func(c *Command, s string) error { c.Access.Actor = s; return nil },
	},
	{
		name: "operation", word: "name", help: "Only changes by this operation or command, such as delete-asset.", commands: []string{Audit},
		apply: func(c *Command, s string) error { c.Access.Operation = s; return nil },
	},
	{
		name: "resource", word: "id", help: "Only changes of the resource with this ID.", commands: []string{Audit},
		apply: func(c *Command, s string) error { c.Access.Resource = s; return nil },
	},
	{
		name: "limit", word: "number", def: "100", help: "How many changes at most, 1 to 100000.", commands: []string{Audit},
		apply: func(c *Command, s string) (err error) {
			if c.Access.Limit, err = strconv.Atoi(s); err != nil || c.Access.Limit < 1 || c.Access.Limit > 100_000 {
				return errors.New("is not a number from 1 to 100000")
			}
			return nil
		},
	},
}

func applyPermissions(c *Command, s string) error {
	for p := range strings.SplitSeq(s, ",") {
		if !slices.Contains(tokenPermissions, p) {
			return errors.New("is none of " + strings.Join(tokenPermissions, ", "))
		}
		c.Access.Permissions = append(c.Access.Permissions, p)
	}
	return nil
}

// isSwitch reads the value of a switch.
func isSwitch(s string, into *bool) error {
	if s != "true" && s != "false" {
		return errors.New("is a switch: write it without a value")
	}
	*into = s == "true"
	return nil
}
