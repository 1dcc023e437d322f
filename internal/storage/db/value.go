package db

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"millrace/internal/fault"
)

// millis is a time as a column holds it: Unix milliseconds, 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// moment is the time of a column.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// document is a value as a JSON column holds it: as text, since SQLite would take bytes for its own binary form.
func document(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode document: %w", err)
	}
	return string(raw), nil
}

func read(doc string, v any) error {
	if err := json.Unmarshal([]byte(doc), v); err != nil {
		return fmt.Errorf("decode document: %w", err)
	}
	return nil
}

// isUnique reports whether err is a second row with the same unique key.
func isUnique(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23505"
	}
	return false
}

// possible reports whether a database could hold s at all; what can't be held is not there.
func possible(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func noSuch(what string) error { return fault.New(fault.NotFound, "the %s does not exist", what) }

func moved(what string) error {
	return fault.New(fault.Conflict, "the %s was changed by somebody else at the same time", what)
}

func exists(err error, what string) error {
	return fault.Wrap(fault.Conflict, err, "the %s exists already", what)
}
