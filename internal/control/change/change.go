// Package change changes a row that has several independent writers: it reads the row, and writes it on the condition
// that it is still as it was read. It must never know any resource, SQL or the clock.
package change

import (
	"time"

	"millrace/internal/fault"
)

// tries bounds how often a change is made again: each loser means a winner.
const tries = 100

// final is an error that trying again does not help.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Final marks a conflict that trying again does not end.
func Final(err error) error { return final{err} }

// Retry makes a change again while it ends in a conflict with another writer.
func Retry(try func() error) (err error) {
	for range tries {
		err = try()
		if f, ok := err.(final); ok { //nolint:errorlint // never wrapped: made by who tries
			return f.error
		}
		if !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return err
}

// Stamp is a time as stores keep it: milliseconds, UTC.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
