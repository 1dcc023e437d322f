package db

import (
	"strings"
	"sync/atomic"

	"millrace/internal/id"
)

// Rights is who is told of changes that bear on what viewers may have. Every function is needed.
type Rights struct {
	SigningKey  func(k id.SigningKey)          // was deleted
	Restriction func(r id.PlaybackRestriction) // was changed or deleted
	Missed      func()                         // any of them may have been
}

// HearRights has what any process changes on a PostgreSQL database told while Run runs: the commit of the change is
// what tells it. After a time without a connection Missed is called, and first of all. On SQLite nothing is told: its
// other processes are commands, and what this one changes it knows. Call it before Run.
func (d *DB) HearRights(r Rights) { d.rights.to.Store(&r) }

// rights tells what was changed. The zero value tells nobody.
type rights struct{ to atomic.Pointer[Rights] }

func (r *rights) missed() {
	if to := r.to.Load(); to != nil {
		to.Missed()
	}
}

// told is a notification.
func (r *rights) told(payload string) {
	to := r.to.Load()
	if to == nil {
		return
	}
	noun, key, _ := strings.Cut(payload, rightsSeparator)
	switch noun {
	case signingKeyNoun:
		to.SigningKey(id.SigningKey(key))
	case restrictionNoun:
		to.Restriction(id.PlaybackRestriction(key))
	}
}
