// Package claimtest provides an in-memory store of claims for tests.
package claimtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Memory is what several nodes share. Its clock is time.Now.
type Memory struct {
	mu    sync.Mutex
	rows  map[string]*row
	Taken int // leases so far
}

type row struct {
	holder string
	until  time.Time
	wanted bool
}

// NewMemory returns one without claims.
func NewMemory() *Memory { return &Memory{rows: map[string]*row{}} }

func (m *Memory) live(key string) *row {
	if r := m.rows[key]; r != nil && r.until.After(time.Now()) {
		return r
	}
	return nil
}

// Take implements claim.Store.
func (m *Memory) Take(
	_ context.Context, holder string, keys []string, lease time.Duration,
) (taken []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if m.live(key) == nil {
			m.rows[key] = &row{holder: holder, until: time.Now().Add(lease)}
			m.Taken++
			taken = append(taken, key)
		}
	}
	return taken, nil
}

// Want implements claim.Store.
func (m *Memory) Want(_ context.Context, key string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.live(key)
	if r != nil {
		r.wanted = true
	}
	return r != nil, nil
}

// Held implements claim.Store.
func (m *Memory) Held(_ context.Context, key string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live(key) != nil, nil
}

// Renew implements claim.Store.
func (m *Memory) Renew(_ context.Context, holders []string, lease time.Duration) (wanted []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		if slices.Contains(holders, r.holder) {
			if r.until = time.Now().Add(lease); r.wanted {
				wanted = append(wanted, r.holder)
			}
		}
	}
	return wanted, nil
}

// Give implements claim.Store.
func (m *Memory) Give(_ context.Context, holder string, keys ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, r := range m.rows {
		if r.holder == holder && (len(keys) == 0 || slices.Contains(keys, key)) {
			delete(m.rows, key)
		}
	}
	return nil
}

// Claimed are the keys that somebody has a lease on.
func (m *Memory) Claimed() (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.rows {
		if m.live(key) != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Way is one node's way to a store, which can be broken.
type Way struct {
	*Memory
	mu    sync.Mutex
	state State
	asked int
}

// State of a way.
type State int

// The states.
const (
	Open   State = iota
	Broken       // each question ends with an error
	Silent       // no question gets a response
)

// Be sets the state.
func (w *Way) Be(s State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = s
}

// Asked is how many questions there have been.
func (w *Way) Asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

var errAway = errors.New("the database is away")

func (w *Way) pass(ctx context.Context) error {
	w.mu.Lock()
	w.asked++
	s := w.state
	w.mu.Unlock()
	switch s {
	case Broken:
		return errAway
	case Silent:
		<-ctx.Done()
		return ctx.Err()
	case Open:
	}
	return nil
}

// Take implements claim.Store.
func (w *Way) Take(ctx context.Context, holder string, keys []string, lease time.Duration) ([]string, error) {
	if err := w.pass(ctx); err != nil {
		return nil, err
	}
	return w.Memory.Take(ctx, holder, keys, lease)
}

// Want implements claim.Store.
func (w *Way) Want(ctx context.Context, key string) (bool, error) {
	if err := w.pass(ctx); err != nil {
		return false, err
	}
	return w.Memory.Want(ctx, key)
}

// Held implements claim.Store.
func (w *Way) Held(ctx context.Context, key string) (bool, error) {
	if err := w.pass(ctx); err != nil {
		return false, err
	}
	return w.Memory.Held(ctx, key)
}

// Renew implements claim.Store.
func (w *Way) Renew(ctx context.Context, holders []string, lease time.Duration) ([]string, error) {
	if err := w.pass(ctx); err != nil {
		return nil, err
	}
	return w.Memory.Renew(ctx, holders, lease)
}

// Give implements claim.Store.
func (w *Way) Give(ctx context.Context, holder string, keys ...string) error {
	if err := w.pass(ctx); err != nil {
		return err
	}
	return w.Memory.Give(ctx, holder, keys...)
}
