package streams

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/links"
	"millrace/internal/web/dashboard/shell"
)

func (rm *room) route() {
	targets := &simulcast{rm}
	rm.Links.Add(shell.LivePath+"/{id}", rm.linkedStream)
	rm.Handle("POST "+newCodePath, "", shell.Writes, rm.showNewCode)
	rm.Handle("POST "+shell.LivePath+"/{id}/edit/code", "", shell.Writes, shell.With(rm.load, rm.showEditCode))
	rm.Handle("POST "+shell.LivePath+"/{id}/targets/code", "", shell.Writes,
		shell.With(targets.load, targets.showTargetCode))
	rm.Handle("GET "+shell.LivePath, "", shell.Reads, rm.listLive)
	rm.Handle("GET "+shell.LivePath+"/new", "", shell.Writes, rm.showNew)
	rm.Handle("POST "+shell.LivePath, "create-live-stream", shell.Writes, rm.create)
	rm.Handle("GET "+shell.LivePath+"/follow", "", shell.Reads, shell.FollowList(rm.rows, findStreams))
	rm.Handle("GET "+shell.LivePath+"/{id}", "", shell.Reads, rm.showStream)
	rm.Handle("GET "+shell.LivePath+"/{id}/follow", "", shell.Reads, rm.followStream)
	rm.Handle("GET "+shell.LivePath+"/{id}/edit", "", shell.Writes, shell.With(rm.load, rm.showEdit))
	rm.Handle("POST "+shell.LivePath+"/{id}/edit", "update-live-stream", shell.Writes, shell.With(rm.load, rm.edit))
	rm.Handle("GET "+shell.LivePath+"/{id}/targets/new", "", shell.Writes,
		shell.With(targets.load, targets.showNewTarget))
	rm.Handle("POST "+shell.LivePath+"/{id}/targets", "create-live-stream-simulcast-target", shell.Writes,
		shell.With(targets.load, targets.addTarget))
	rm.Handle("GET "+shell.LivePath+"/{id}/targets/{target}/delete", "", shell.Writes, targets.askDeleteTarget)
	rm.Handle("POST "+shell.LivePath+"/{id}/targets/{target}/delete", "delete-live-stream-simulcast-target",
		shell.Writes, targets.deleteTarget)
	rm.Handle("POST "+shell.LivePath+"/{id}/key", "show-stream-key", shell.Reads, rm.showKey)
	rm.Handle("POST "+shell.LivePath+"/{id}/publish", "show-stream-key", shell.Reads, rm.toPublish)
	for name, a := range acts {
		if a.Title != "" {
			rm.Handle("GET "+shell.LivePath+"/{id}/"+name, "", shell.Writes, rm.ask(name))
		}
		rm.Handle("POST "+shell.LivePath+"/{id}/"+name, a.operation, shell.Writes, rm.act(name))
	}
}

// stream is a live stream as pages show it.
type stream struct {
	live.Stream

	Now     time.Time
	Encoder *live.Encoder // the connected one, where it was asked for and is known
	Trouble []live.Trouble
	health  live.Health
}

// Title is its name; without one the beginning and the end of its ID.
func (s stream) Title() string {
	if t := shell.PlainName(s.Settings.Meta.Title); t != "" {
		return t
	}
	return shell.Short(s.ID)
}

// Address is that of its page.
func (s stream) Address() string { return shell.LivePath + "/" + url.PathEscape(string(s.ID)) }

// The states that pages tell apart.
func (s stream) OnAir() bool    { return s.State == live.Active }
func (s stream) Starting() bool { return s.State == live.Connected || s.State == live.Recording }
func (s stream) Away() bool     { return s.State == live.Reconnecting || s.State == live.Waiting }
func (s stream) Disabled() bool { return s.State == live.Disabled }

// Broadcasting reports whether there is a broadcast to end.
func (s stream) Broadcasting() bool { return s.ActiveAsset != "" }

// Used reports whether it was ever on air.
func (s stream) Used() bool { return s.Epoch > 0 }

// Since is when its broadcast began.
func (s stream) Since() time.Time {
	if !s.ActiveAt.IsZero() {
		return s.ActiveAt
	}
	return s.StartedAt
}

// Up is how long it has been on air.
func (s stream) Up() time.Duration { return s.Now.Sub(s.Since()) }

// Gone is how long its encoder has been away.
func (s stream) Gone() time.Duration { return s.Now.Sub(s.DisconnectedAt) }

// Public is the first playback ID that everybody may use; empty: there is none.
func (s stream) Public() id.Playback { return links.Public(s.PlaybackIDs) }

// Delay is its latency mode in words.
func (s stream) Delay() string {
	switch s.Settings.LatencyMode {
	case live.Low:
		return "Low"
	case live.Reduced:
		return "Reduced"
	case live.Standard:
	}
	return "Standard"
}

// Over is the protocol of its encoder.
func (s stream) Over() string { return strings.ToUpper(s.Protocol) }

// Watch says who may watch.
func (s stream) Watch() string {
	switch {
	case len(s.PlaybackIDs) == 0:
		return "Nobody"
	case s.Public() != "":
		return "Everyone"
	}
	return "Signed links"
}

// Poster is the address of its newest picture; empty: there is none to show.
func (s stream) Poster() string {
	if p := s.Public(); p != "" && s.OnAir() && !s.Settings.AudioOnly {
		return "/" + string(p) + "/thumbnail.webp?latest=true&width=320"
	}
	return ""
}

// Wait is what the slate of a stream is, in words.
func (s stream) Wait() string {
	sec := s.Settings.ReconnectWindow
	switch {
	case sec == 0:
		return "the broadcast ends"
	case s.Settings.Slate():
		return "slate for up to " + seconds(sec)
	}
	return "wait for up to " + seconds(sec)
}

func seconds(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) + " s" }

// listing is the page of all live streams.
type listing struct {
	shell.Selection

	Rows   []stream
	counts live.Numbers
}

func (rm *room) listLive(r *shell.Request) (shell.View, error) {
	l, err := rm.streams(r.Context(), r.Person, findStreams(r))
	return shell.Show("live", l), err
}

// findStreams reads which live streams a request asks for.
func findStreams(r *shell.Request) shell.Selection {
	states := []string{string(live.StatusActive), string(live.StatusIdle), string(live.StatusDisabled)}
	return shell.Select(r.URL.Query(), shell.LivePath, states...)
}

// streams reads what the page of the list shows.
func (rm *room) streams(ctx context.Context, p access.Person, f shell.Selection) (l listing, err error) {
	l.Selection = f
	var rows []live.Stream
	list := func(page, limit int) ([]live.Stream, error) {
		q := live.ListQuery{Status: live.Status(l.Status), Page: page, Limit: limit}
		return rm.Live.List(ctx, p.Environment.ID, q)
	}
	if l.Query == "" {
		if l.counts, err = rm.Live.Count(ctx, p.Environment.ID); err == nil {
			rows, err = shell.Paged(&l.Selection, list)
		}
	} else if rows, err = shell.Searched(&l.Selection, list, l.fits); err == nil && len(rows) == 0 {
		rows, err = rm.byID(ctx, p, l)
	}
	l.Rows = rm.measured(ctx, rows, true)
	return l, err
}

// byID finds a stream by its ID, however old it is.
func (rm *room) byID(ctx context.Context, p access.Person, l listing) ([]live.Stream, error) {
	v, err := rm.Live.Get(ctx, p.Environment.ID, id.LiveStream(l.Query))
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !l.fits(v):
		return nil, nil
	}
	return []live.Stream{v}, nil
}

// matches reports whether a text is in what a person knows of a stream.
func matches(v live.Stream, want string) bool {
	return shell.Contain(want, v.Settings.Meta.Title, string(v.ID), v.Settings.Passthrough,
		v.Settings.Meta.ExternalID) ||
		links.Named(v.PlaybackIDs, want)
}

// fits reports whether a stream is one of those that are asked for.
func (l listing) fits(v live.Stream) bool {
	return (l.Status == "" || string(v.Status()) == l.Status) && (l.Query == "" || matches(v, l.Query))
}

// Self is the address of the page.
func (l listing) Self() string { return l.Address(l.Page) }

// New is empty: a page that is loaded has what is new.
func (l listing) New() string { return "" }

// Follow is the address of the events that change the page.
func (l listing) Follow() string {
	return shell.FollowAddress(l.Selection, l.Rows, stream.Row)
}

// stream is a row as pages show it that don't say how its encoder does.
func (rm *room) stream(v live.Stream) stream { return stream{Stream: v, Now: rm.Now()} }

// healthTime is how long a page waits for other nodes to say how their encoders do.
const healthTime = time.Second

// measured adds to rows what is known of their encoders; brief: of those that are connected, and without samples.
func (rm *room) measured(ctx context.Context, rows []live.Stream, brief bool) []stream {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	out := make([]stream, len(rows))
	var asked []live.Stream
	var at []int
	for i, v := range rows {
		out[i] = rm.stream(v)
		if !brief || v.State.HasEncoder() {
			asked, at = append(asked, v), append(at, i)
		}
	}
	if len(asked) == 0 {
		return out
	}
	for k, h := range rm.Health.Health(ctx, asked, brief) {
		of := &out[at[k]]
		of.health = h
		if !of.State.HasEncoder() {
			continue
		}
		of.Trouble = h.Trouble
		if h.Encoder != nil && h.Encoder.Until.IsZero() {
			of.Encoder = h.Encoder
		}
	}
	return out
}

// load reads the live stream that a request names.
func (rm *room) load(r *shell.Request) (live.Stream, error) {
	return rm.Live.Get(r.Context(), r.Person.Environment.ID, id.LiveStream(r.PathValue("id")))
}

// Row, Name, Made, Moves and MadeOf are those of a row.
func (s stream) Row() id.LiveStream { return s.ID }
func (s stream) Name() string       { return s.Settings.Meta.Title }
func (s stream) Made() time.Time    { return s.CreatedAt }
func (stream) Moves() bool          { return false }
func (stream) MadeOf() id.Upload    { return "" }

// streamSource has the rows of the list of live streams.
type streamSource struct{ *room }

// About implements source.
func (streamSource) About(h shell.Change) id.LiveStream {
	if h.Own {
		return h.Stream
	}
	return ""
}

// Load implements source.
func (s streamSource) Load(ctx context.Context, p access.Person, f shell.Selection) (shell.Loaded[stream], error) {
	l, err := s.streams(ctx, p, f)
	return shell.Loaded[stream]{Selection: l.Selection, Counts: l.Counts(), Rows: l.Rows}, err
}

// Some implements source.
func (s streamSource) Some(ctx context.Context, env id.Environment, of []id.LiveStream) ([]stream, error) {
	found, err := s.Live.Some(ctx, env, of)
	if err != nil {
		return nil, err
	}
	return s.measured(ctx, found, true), nil
}

// Fits implements source.
func (streamSource) Fits(f shell.Selection, v stream) bool {
	return listing{Selection: f}.fits(v.Stream)
}

// Gone implements source.
func (s streamSource) Gone(of id.LiveStream, name string) stream {
	out := s.stream(live.Stream{ID: of})
	out.Settings.Meta.Title = name
	return out
}

// Count implements source.
func (s streamSource) Count(
	ctx context.Context, env id.Environment, f shell.Selection, since, now int64,
) ([]shell.Count, time.Duration, error) {
	n, again, err := s.count(ctx, env, since, now)
	return listing{Selection: f, counts: n}.Counts(), again, err
}
