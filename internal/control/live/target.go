package live

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// The events of a simulcast target; their data is the target. There is none for a change of its settings, which can not
// be made.
const (
	EventTargetCreated = "video.live_stream.simulcast_target.created"
	EventTargetDeleted = "video.live_stream.simulcast_target.deleted"
	eventTargetPrefix  = "video.live_stream.simulcast_target." // and a status

	// EventTargetObject is the kind of object of these events.
	EventTargetObject = "simulcast_target"
)

// EventTarget is the type of the event that a target has come to a status.
func EventTarget(s TargetStatus) string { return eventTargetPrefix + string(s) }

// Bounds of a target's URL.
const (
	minPassphrase, maxPassphrase = 10, 79 // bytes; SRT draft section 3.2.1
	maxStreamID                  = 512    // bytes; SRT draft section 3.2.1.3
	maxLatency                   = 10_000 // milliseconds
)

// AddSimulcastTarget adds a destination to a live stream without a broadcast. Event simulcast_target.created.
func (s *Service) AddSimulcastTarget(
	ctx context.Context, env id.Environment, stream id.LiveStream, in SimulcastTarget, now time.Time,
) (SimulcastTarget, error) {
	var l fault.List
	in.check(&l, "")
	if err := l.Err(); err != nil {
		return SimulcastTarget{}, err
	}
	in = in.fresh()
	_, err := s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		if err := st.fixedTargets(); err != nil {
			return nil, err
		}
		if len(st.Settings.SimulcastTargets) >= MaxSimulcastTargets {
			return nil, fault.New(fault.Conflict,
				"a live stream may have at most %d simulcast targets; delete one first", MaxSimulcastTargets)
		}
		st.Settings.SimulcastTargets = append(slices.Clip(st.Settings.SimulcastTargets), in)
		return []string{}, nil
	})
	return in, err
}

// GetSimulcastTarget reads a destination of a live stream of env.
func (s *Service) GetSimulcastTarget(
	ctx context.Context, env id.Environment, stream id.LiveStream, target id.SimulcastTarget,
) (SimulcastTarget, error) {
	st, err := s.rows.store.Get(ctx, env, stream)
	if err != nil {
		return SimulcastTarget{}, err
	}
	i, err := st.target(target)
	if err != nil {
		return SimulcastTarget{}, err
	}
	return st.Settings.SimulcastTargets[i], nil
}

// DeleteSimulcastTarget takes a destination off a live stream without a broadcast. Event simulcast_target.deleted.
func (s *Service) DeleteSimulcastTarget(
	ctx context.Context, env id.Environment, stream id.LiveStream, target id.SimulcastTarget, now time.Time,
) error {
	_, err := s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		i, err := st.target(target)
		if err != nil {
			return nil, err
		}
		if err := st.fixedTargets(); err != nil {
			return nil, err
		}
		st.Settings.SimulcastTargets = slices.Delete(slices.Clone(st.Settings.SimulcastTargets), i, i+1)
		return []string{}, nil
	})
	return err
}

// Target tells what became of a target's link; see Broadcasts.
func (b *broadcasts) Target(
	ctx context.Context, stream id.LiveStream, w Writer, target id.SimulcastTarget, f TargetFact, now time.Time,
) error {
	_, err := b.fact(ctx, stream, w, now, func(st *Stream) ([]string, error) {
		i, err := st.target(target)
		if err != nil {
			return nil, err
		}
		to, ok := NextTarget(st.Settings.SimulcastTargets[i].State, f)
		if !ok {
			return nil, stale()
		}
		st.Settings.SimulcastTargets = slices.Clone(st.Settings.SimulcastTargets)
		st.Settings.SimulcastTargets[i].State = to
		return []string{}, nil
	})
	return err
}

// targets tells every target what happened to the stream; one that it means nothing to stays as it is.
func (s *Stream) targets(f TargetFact) {
	all := slices.Clone(s.Settings.SimulcastTargets)
	for i, t := range all {
		if to, ok := NextTarget(t.State, f); ok {
			all[i].State = to
		}
	}
	s.Settings.SimulcastTargets = all
}

// fixedTargets refuses a change of the targets while a broadcast is forwarded to them.
func (s *Stream) fixedTargets() error {
	if s.ActiveAsset != "" {
		return fault.New(fault.Conflict,
			"simulcast targets may be added and deleted only while the live stream is idle")
	}
	return nil
}

func (s *Stream) target(t id.SimulcastTarget) (int, error) {
	i := slices.IndexFunc(s.Settings.SimulcastTargets, func(have SimulcastTarget) bool { return have.ID == t })
	if i < 0 {
		return 0, fault.New(fault.NotFound, "the simulcast target does not exist")
	}
	return i, nil
}

// fresh gives a new target its ID.
func (s SimulcastTarget) fresh() SimulcastTarget {
	s.ID, s.State = id.SimulcastTarget(id.New()), TargetIdle
	return s
}

// tellTargets makes the events about the targets that differ between two states of a stream.
func tellTargets(before, after Stream, now time.Time) []event.Event {
	was := map[id.SimulcastTarget]TargetState{}
	for _, t := range before.Settings.SimulcastTargets {
		was[t.ID] = t.State
	}
	var events []event.Event
	say := func(typ string, t SimulcastTarget) {
		events = append(events,
			event.New(after.Environment, typ, EventTargetObject, string(t.ID), now,
				t.WithoutSecrets()).Of(string(after.ID)))
	}
	for _, t := range after.Settings.SimulcastTargets {
		old, had := was[t.ID]
		delete(was, t.ID)
		if status, _ := t.State.Show(); !had {
			say(EventTargetCreated, t)
		} else if old != t.State {
			say(EventTarget(status), t)
		}
	}
	for _, t := range before.Settings.SimulcastTargets {
		if _, gone := was[t.ID]; gone {
			say(EventTargetDeleted, t)
		}
	}
	return events
}

// check adds what is wrong with a target at path, which is "" for one that is the whole request.
func (s SimulcastTarget) check(l *fault.List, path string) {
	field.Passthrough(l, field.Join(path, "passthrough"), s.Passthrough)
	field.Text(l, field.Join(path, "stream_key"), s.StreamKey, maxStreamKey)
	at := field.Join(path, "url")
	if !field.Text(l, at, s.URL, field.MaxURL) {
		return
	}
	u, err := url.Parse(s.URL) // whose error is not shown: it repeats the URL, which may hold a secret
	if err != nil || u.Hostname() == "" || u.Opaque != "" || !validPort(u.Port()) {
		badForm(l, at)
		return
	}
	if u.User != nil {
		l.At(at, "must not hold a user name or password; the key of an rtmp destination belongs into stream_key")
	}
	switch app := strings.Trim(u.Path, "/"); {
	case u.Scheme == "srt" && u.Port() != "" && app == "":
		if s.StreamKey != "" {
			l.At(field.Join(path, "stream_key"),
				"may be set only for rtmp and rtmps; an srt url carries its streamid itself")
		}
		checkSRT(l, at, u)
	case (u.Scheme == "rtmp" || u.Scheme == "rtmps") && app != "":
	default:
		badForm(l, at)
	}
}

func badForm(l *fault.List, at string) {
	l.At(at, "must have the form rtmp://host/app, rtmps://host/app or srt://host:port?streamid=…&passphrase=…")
}

func validPort(p string) bool {
	n, err := strconv.Atoi(p)
	return p == "" || err == nil && n > 0 && n < 1<<16
}

// checkSRT adds what is wrong with the query of an SRT target. What it does not know is passed over.
func checkSRT(l *fault.List, at string, u *url.URL) {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		badForm(l, at)
		return
	}
	if v := q.Get("streamid"); len(v) > maxStreamID {
		l.At(at, ": streamid may have at most %d bytes", maxStreamID)
	}
	if v := q.Get("passphrase"); q.Has("passphrase") && (len(v) < minPassphrase || len(v) > maxPassphrase) {
		l.At(at, ": passphrase must have %d to %d characters", minPassphrase, maxPassphrase)
	}
	if v := q.Get("pbkeylen"); q.Has("pbkeylen") && !slices.Contains([]string{"0", "16", "24", "32"}, v) {
		l.At(at, ": pbkeylen must be one of: 0, 16, 24, 32")
	}
	if v, err := strconv.Atoi(q.Get("latency")); q.Has("latency") && (err != nil || v < 0 || v > maxLatency) {
		l.At(at, ": latency must be a whole number of milliseconds from 0 to %d", maxLatency)
	}
	if v := q.Get("mode"); q.Has("mode") && v != "caller" {
		l.At(at, ": mode must be caller")
	}
}
