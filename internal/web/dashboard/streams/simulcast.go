package streams

import (
	"context"
	"net/http"
	"net/url"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

// target is a simulcast target as pages show it: never its key, nor what in its URL may be one.
type target struct {
	ID          id.SimulcastTarget
	Where       string // the URL without what is secret
	Hidden      bool   // there is more of it
	Key         bool   // it has a stream key
	Passthrough string
	State       live.TargetState
	Delete      string // the address that asks before
}

// Targets are those of a stream.
func (s stream) Targets() []target {
	var all []target
	for _, t := range s.Settings.SimulcastTargets {
		where := t.WithoutSecrets().URL
		all = append(all, target{
			ID: t.ID, Where: where, Hidden: where != t.URL, Key: t.StreamKey != "", Passthrough: t.Passthrough,
			State: t.State, Delete: s.targets() + "/" + url.PathEscape(string(t.ID)) + "/delete",
		})
	}
	return all
}

func (s stream) targets() string { return s.Address() + "/targets" }

// NoTarget says why no target can be added now; empty: one can. The service decides; this spares the way.
func (s stream) NoTarget() string {
	switch n := len(s.Settings.SimulcastTargets); {
	case s.Broadcasting():
		return "Targets can be added and deleted once the broadcast has ended."
	case n >= live.MaxSimulcastTargets:
		return "A live stream can't have more targets. Delete one to add another."
	}
	return ""
}

// Class is the shape of its state.
func (t target) Class() string {
	switch t.State {
	case live.TargetStarting:
		return "work"
	case live.TargetBroadcasting:
		return "ok"
	case live.TargetErrored:
		return "warn"
	case live.TargetFatal:
		return "fault"
	case live.TargetIdle:
	}
	return ""
}

// Word is what the API calls its state.
func (t target) Word() string {
	switch status, _ := t.State.Show(); status {
	case live.TargetStatusStarting:
		return "Starting"
	case live.TargetStatusBroadcasting:
		return "Broadcasting"
	case live.TargetStatusErrored:
		return "Errored"
	case live.TargetStatusIdle:
	}
	return "Idle"
}

// Why says of an errored one what becomes of it, and what to do.
func (t target) Why() string {
	switch _, severity := t.State.Show(); severity {
	case live.SeverityNormal:
		return "The connection broke, or was refused. It is tried again by itself; if that does not help, look there " +
			"whether the stream key is still valid, and add the target again with the right one after the broadcast."
	case live.SeverityFatal:
		return "It can't take what the encoder sends, or its address may not be connected to, so it is not tried " +
			"again in this broadcast. An SRT target needs an encoder that sends SRT; others, a codec that they know."
	case live.SeverityNone:
	}
	return ""
}

// targetForm is the page on which a target is added. The key is not shown again, not even to who has just typed it.
type targetForm struct {
	Of               stream
	URL, Passthrough string
	Code             shell.Code
	key              string
	shell.FormErrors
}

func (s *simulcast) showNewTarget(_ *shell.Request, v live.Stream) (shell.View, error) {
	return s.renderTarget(http.StatusOK, targetForm{Of: s.stream(v)}, false), nil
}

func (s *simulcast) addTarget(r *shell.Request, v live.Stream) (shell.View, error) {
	f := s.readTarget(r, v)
	_, err := s.Live.AddSimulcastTarget(r.Context(), r.Person.Environment.ID, v.ID, live.SimulcastTarget{
		URL: f.URL, StreamKey: f.key, Passthrough: f.Passthrough,
	}, s.Now())
	if err == nil {
		return shell.Redirect(f.Of.Address() + "#simulcast"), nil
	}
	status, err := f.TakeErr(err)
	if err != nil {
		return shell.View{}, err
	}
	if f.key != "" && f.Bad["stream_key"] == "" {
		f.Add("stream_key", "It is not stored, so type it again.")
	}
	return s.renderTarget(status, f, false), nil
}

func (s *simulcast) readTarget(r *shell.Request, of live.Stream) targetForm {
	return targetForm{
		Of: s.stream(of), URL: r.Text("url"), Passthrough: r.Text("passthrough"), key: r.Text("stream_key"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("url", "url", "Server URL"),
			shell.At("stream_key", "stream_key", "Stream key"),
			shell.At("passthrough", "passthrough", "Passthrough"),
		}},
	}
}

// targetQuestion asks before a target is deleted.
func (s *simulcast) targetQuestion(
	ctx context.Context, p access.Person, of id.LiveStream, t id.SimulcastTarget,
) (shell.Question, error) {
	row, err := s.Live.Get(ctx, p.Environment.ID, of)
	if err != nil {
		return shell.Question{}, err
	}
	v := s.stream(row)
	for _, have := range v.Targets() {
		if have.ID == t {
			return v.question(shell.Question{
				Heading: "Delete this simulcast target?", Yes: "Delete", No: "Keep it", Class: "harm", To: have.Delete,
				Text: "Broadcasts are no longer sent to " + have.Where + ". Its URL and stream key are forgotten.",
			}), nil
		}
	}
	return shell.Question{}, fault.New(fault.NotFound, "the simulcast target does not exist")
}

func (s *simulcast) askDeleteTarget(r *shell.Request) (shell.View, error) {
	of, t := id.LiveStream(r.PathValue("id")), id.SimulcastTarget(r.PathValue("target"))
	q, err := s.targetQuestion(r.Context(), r.Person, of, t)
	return shell.Show("ask", q), err
}

func (s *simulcast) deleteTarget(r *shell.Request) (shell.View, error) {
	of, t := id.LiveStream(r.PathValue("id")), id.SimulcastTarget(r.PathValue("target"))
	q, err := s.targetQuestion(r.Context(), r.Person, of, t)
	if err == nil {
		err = s.Live.DeleteSimulcastTarget(r.Context(), r.Person.Environment.ID, of, t, s.Now())
	}
	switch {
	case err == nil:
		return shell.Redirect(q.Address + "#simulcast"), nil
	case fault.Is(err, fault.Conflict):
		q.Bad = shell.Sentence(err) + "."
		return shell.ShowAs(http.StatusConflict, "ask", q), nil
	default:
		return shell.View{}, err
	}
}

func (s *simulcast) showTargetCode(r *shell.Request, v live.Stream) (shell.View, error) {
	return s.renderTarget(http.StatusOK, s.readTarget(r, v), !r.Resumed()), nil
}

// renderTarget shows the form of a simulcast target, with its code, in which no key is.
func (s *simulcast) renderTarget(
	status int, f targetForm, open bool,
) shell.View {
	body := sdkcode.Object{}.With("url", f.URL)
	if f.key != "" {
		body = body.With("stream_key", sdkcode.Secret("STREAM_KEY"))
	}
	f.Code = s.Code("make", f.Of.targets()+"/code", sdkcode.Request{
		Path: liveAPI(f.Of.ID) + "/simulcast-targets", IDs: []string{string(f.Of.ID)},
		Body: body.With("passthrough", f.Passthrough), Node: "video.liveStreams.createSimulcastTarget",
		Go: "LiveStreamsApi.CreateLiveStreamSimulcastTarget", GoType: "mux.CreateSimulcastTargetRequest",
	})
	f.Code.Open = open
	return shell.ShowAs(status, "target", f)
}
