package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"millrace/internal/id"
)

const (
	// renewTime is how long one renewal may take. A slow database gets one at a time.
	renewTime = 15 * time.Second
	// leaveTime is how long the last word may take.
	leaveTime = 5 * time.Second
	// kept is how long a node that is gone is listed.
	kept = 24 * time.Hour
)

// Options configures a Service.
type Options struct {
	Store        Store
	Name         id.Node
	Run          string // a fresh ID
	Version      string
	Schema       int64 // of the database, that this program knows
	Roles        []string
	AdvertiseURL func() string // where other nodes reach this one now; empty: nowhere; it may not block
	Load         func() Load   // how busy this node is now; it may not block
	Every        time.Duration // how often the row is renewed
	Valid        time.Duration // how long it is valid without a renewal; more than Every
	// Renewed is told of each renewal: for how long the row is valid from when it was asked for. It may not block.
	Renewed func(asked time.Time, valid time.Duration)
	Now     func() time.Time // for Renewed
	Logger  *slog.Logger
}

// Service keeps the row of this process's node. All its methods may be called at the same time.
type Service struct {
	o    Options
	self Node        // only Run uses it
	late bool        // the last renewal failed; only Run uses it
	up   atomic.Bool // the last one worked
}

// New makes a service; nothing starts.
func New(o Options) *Service {
	if o.Renewed == nil {
		o.Renewed = func(time.Time, time.Duration) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{o: o, self: Node{
		Name: o.Name, Run: o.Run, Version: o.Version, Schema: o.Schema, Roles: o.Roles,
	}}
}

// Name is for lifecycle.
func (*Service) Name() string { return "node" }

// Nodes lists the nodes by name: those that are there, and for a day those that are gone.
func (s *Service) Nodes(ctx context.Context) ([]Node, error) {
	all, err := s.o.Store.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return all, nil
}

// Renewed reports whether the row is this run's and was renewed the last time.
func (s *Service) Renewed() bool { return s.up.Load() }

// Run keeps the row until ctx ends, and marks it as gone then. It returns ErrReplaced as soon as it finds that another
// process has taken the node's name: from then on this one may do nothing under that name.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	step := s.register
	for {
		err := s.inTime(ctx, step)
		s.up.Store(err == nil)
		if errors.Is(err, ErrReplaced) {
			s.o.Logger.ErrorContext(ctx,
				"another process runs under this node's name: this one stops; give one of the "+
					"two its own --node-id (and data folder: its file node-id must not be copied)",
				slog.String("node", string(s.o.Name)))
			return fmt.Errorf("renew node %s: %w", s.o.Name, err)
		}
		s.tell(ctx, err)
		if err == nil {
			step = s.renew
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s.leave(context.WithoutCancel(ctx))
		}
	}
}

func (s *Service) inTime(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	asked := s.o.Now()
	err := step(ctx)
	if err == nil {
		s.o.Renewed(asked, s.o.Valid)
	}
	return err
}

// tell logs the first of several failures, and their end.
func (s *Service) tell(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !s.late:
		s.late = true
		s.o.Logger.WarnContext(ctx, "this node could not say that it is there: others take it for gone",
			slog.Any("error", err))
	case err == nil && s.late:
		s.late = false
		s.o.Logger.InfoContext(ctx, "this node says again that it is there")
	}
}

// register takes the row over from any earlier process: a process that was killed and starts again waits for nobody.
func (s *Service) register(ctx context.Context) error {
	s.look()
	at, earlier, err := s.o.Store.Register(ctx, s.self, s.o.Valid)
	if err != nil {
		return err
	}
	s.self.StartedAt = at
	if earlier != nil && earlier.State == Alive && earlier.Run != "" && earlier.Run != s.o.Run {
		s.o.Logger.WarnContext(ctx,
			"an earlier process of this node's name was alive seconds ago: it was killed, or it "+
				"runs elsewhere and stops now; if so, give one of the two its own --node-id",
			slog.String("node", string(s.o.Name)), slog.Time("started_at", earlier.StartedAt),
			slog.String("advertise_url", earlier.AdvertiseURL))
	}
	return nil
}

// look fills in what changes.
func (s *Service) look() {
	s.self.Load, s.self.AdvertiseURL = s.o.Load(), s.o.AdvertiseURL()
}

func (s *Service) renew(ctx context.Context) error {
	s.look()
	return s.o.Store.Renew(ctx, s.self, s.o.Valid)
}

func (s *Service) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if err := s.o.Store.Leave(ctx, s.o.Name, s.o.Run, kept); err != nil {
		return fmt.Errorf("mark node as gone: %w", err)
	}
	return nil
}
