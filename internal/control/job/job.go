// Package job describes a job: what a change asks for, what a worker is given and what it returns. It must never know
// what any job does, nor how jobs are stored.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"millrace/internal/fault"
)

// Insert asks for a job; it travels inside a noun's change and is stored in the same transaction.
type Insert struct {
	Kind  string          // "asset.ingest"
	Args  json.RawMessage // ids, never secrets, never state
	Key   string          // at most one unfinished job per kind and key; empty: no limit
	At    time.Time       // not before; zero: now
	Queue Queue           // one of those of its kind
	// Owner is whose job it is: owners share the places of a queue. Empty: nobody's.
	Owner string
}

// New makes an Insert with args as JSON, for the first queue of its kind.
func New(kind, key string, args any) Insert {
	raw, err := json.Marshal(args)
	if err != nil {
		panic("arguments of job " + kind + " are not JSON: " + err.Error())
	}
	queue, _ := AllClasses().Of(kind) // one of none is no service's: package queue works on none
	return Insert{Kind: kind, Key: key, Args: raw, Queue: queue}
}

// Waiting is how many jobs of a queue could run now and do not, and for how long the first of them could.
type Waiting struct {
	Queue  Queue
	Jobs   int
	Oldest time.Duration
}

// Job is a claimed job.
type Job struct {
	ID          int64
	Kind        string
	Args        json.RawMessage
	Attempt     int // from 1
	MaxAttempts int
	Crashes     int           // how often its process has died of it
	Age         time.Duration // since it was inserted
}

// MaxCrashes is how often a process may die of a job; each time everything else that it does ends too.
const MaxCrashes = 3

// Deadly reports whether the process has died of this job too often: it is handed to its worker once more, for the end
// of what it makes.
func (j Job) Deadly() bool { return j.Crashes >= MaxCrashes }

// Last reports whether a failure of this attempt is final.
func (j Job) Last() bool { return j.Attempt >= j.MaxAttempts }

// patience is for how long a job waits for a storage that is away.
const patience = 7 * 24 * time.Hour

// Waits reports whether an attempt that ended with err is put off without counting, as the service's storage is away.
// Not for ever: it may be that only what this job asks for is refused.
func (j Job) Waits(err error) bool { return fault.Away(err) && j.Age < patience }

// Handler does one kind. Work may run twice (a dead node's job is taken up again, which is no attempt), so outputs have
// names that follow from the resource. nil ends the job; Snooze puts it off without using an attempt, and so does an
// error of a storage that is away (Waits); any other error is retried with growing delays until MaxAttempts, or at once
// final when fault.Permanent says so. ctx ends at shutdown, cancel, or Timeout.
type Handler struct {
	Kind        string
	MaxAttempts int           // 0: 5
	Timeout     time.Duration // 0: none
	Work        func(ctx context.Context, j Job) error
}

// SnoozeError is returned by a worker to be run again later.
type SnoozeError struct{ For time.Duration }

func (s *SnoozeError) Error() string { return fmt.Sprintf("snoozed for %s", s.For) }

// Snooze puts a job off.
func Snooze(d time.Duration) error { return &SnoozeError{For: d} }

// ErrCancelled is the cause of a worker's context when its job was cancelled.
var ErrCancelled = errors.New("job was cancelled")

// Decode reads a job's arguments.
func Decode[T any](j Job) (T, error) {
	var v T
	if err := json.Unmarshal(j.Args, &v); err != nil {
		return v, fmt.Errorf("decode arguments of job %s %d: %w", j.Kind, j.ID, err)
	}
	return v, nil
}
