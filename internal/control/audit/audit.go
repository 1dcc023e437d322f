// Package audit records who changed what. The entry of a request or command travels in its context down to the store,
// which writes it in the transaction of the first change: nothing is changed without an entry, and refused requests
// leave none. It must never know any resource, SQL, HTTP or the clock. Entries contain no secrets, only IDs and names.
package audit

import (
	"context"
	"sync/atomic"
	"time"

	"millrace/internal/id"
)

// Types of actors.
const (
	AccessToken = "access_token"
	CommandLine = "command_line"
	Dashboard   = "dashboard" // its owner; who signed in by an access token is that token
	Retention   = "retention" // the retention policy of the environment
)

// Entry is one change.
type Entry struct {
	ID          string // UUID version 7 of At, given by the store
	At          time.Time
	Environment id.Environment // empty: the change belongs to none, or the command did not say
	Actor       Actor
	Operation   string // ID of the operation in the API's document, or the command
	Resource    Resource
	Address     string // IP address of the client; empty: a command on a node
	RequestID   string
}

// Actor is who made the change.
type Actor struct {
	Type string // AccessToken, CommandLine, Dashboard, Retention
	ID   string // of the token; empty for a command
	Name string // of the token; the system's user for a command
}

// Resource is what was changed.
type Resource struct {
	Type string // live_stream, asset, playback_id, …
	ID   string
}

// Query selects entries, newest first. Fields that are empty select all.
type Query struct {
	Environment  id.Environment
	Actor        string // ID or name
	Operation    string
	Resource     string    // ID
	Since, Until time.Time // of Entry.At: from Since on, before Until
	Before       string    // ID of the entry that they come before
	Limit        int       // at most so many; it must be given
}

// Log reads entries.
type Log interface {
	AuditLog(ctx context.Context, q Query) ([]Entry, error)
}

// Pending is the entry of a request or a command, to be written with its first change.
type Pending struct {
	Entry Entry

	written atomic.Bool
}

// Wanted reports whether it is not written yet.
func (p *Pending) Wanted() bool { return p != nil && !p.written.Load() }

// Written says that it is committed.
func (p *Pending) Written() { p.written.Store(true) }

type contextKey struct{}

// With has the first change that is made with the context write an entry.
func With(ctx context.Context, e Entry) context.Context {
	return context.WithValue(ctx, contextKey{}, &Pending{Entry: e})
}

// Without has changes made with the context write none: they are not what somebody asked for.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, (*Pending)(nil))
}

// Of is the entry that a context carries; nil: none.
func Of(ctx context.Context) *Pending {
	p, _ := ctx.Value(contextKey{}).(*Pending)
	return p
}
