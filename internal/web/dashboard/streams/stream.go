package streams

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/assets"
	"millrace/internal/web/dashboard/links"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/iframe"
)

const maxRecordings = 20 // that the page of a live stream shows

// streamPage is the page of a live stream.
type streamPage struct {
	stream

	Shared     []links.Shared
	Health     vitals
	Recordings []assets.Video
	More       bool // there are older ones
	Connect    connect
	Key        string // it was asked for without a script
	Passphrase string
	Follow     string // the address of the events that change the page
}

func (rm *room) showStream(r *shell.Request) (shell.View, error) {
	v, err := rm.streamPage(r.Context(), r.Person, id.LiveStream(r.PathValue("id")))
	return shell.Show("stream", v), err
}

// streamPage reads all that the page shows.
func (rm *room) streamPage(ctx context.Context, p access.Person, stream id.LiveStream) (streamPage, error) {
	row, err := rm.Live.Get(ctx, p.Environment.ID, stream)
	if err != nil {
		return streamPage{}, err
	}
	q := asset.ListQuery{LiveStream: stream, Page: 1, Limit: maxRecordings}
	found, more, err := rm.Assets.List(ctx, p.Environment.ID, q)
	if err != nil {
		return streamPage{}, err
	}
	v := streamPage{stream: rm.measured(ctx, []live.Stream{row}, false)[0], Connect: rm.connect()}
	v.Health = vitalsOf(v.health)
	v.More = more != "" || len(found) == maxRecordings
	v.Recordings = shell.Each(found, func(a asset.Asset) assets.Video { return assets.Video{Asset: a, Now: v.Now} })
	v.Shared = rm.shareStream(p.Environment, v.stream, v.Recordings)
	v.Follow = v.Address() + "/follow"
	return v, nil
}

// showKey gives the secrets that encoders need, to a script as JSON, else on the page. The audit log has it.
func (rm *room) showKey(r *shell.Request) (shell.View, error) {
	v, err := rm.streamPage(r.Context(), r.Person, id.LiveStream(r.PathValue("id")))
	if err == nil {
		err = rm.Sessions.NoteShown(r.Context(), r.Person.Environment.ID, "live_stream", string(v.ID))
	}
	if err != nil {
		return shell.View{}, err
	}
	if !shell.WantsJSON(r.Request) {
		v.Key, v.Passphrase = v.StreamKey, v.SRTPassphrase
		return shell.Show("stream", v), nil
	}
	return shell.Reply(http.StatusOK, map[string]string{"key": v.StreamKey, "passphrase": v.SRTPassphrase}), nil
}

// toPublish leads to the publish page with the stream key in the fragment, which no server sees and the page takes out
// of the address. The audit log has it.
func (rm *room) toPublish(r *shell.Request) (shell.View, error) {
	row, err := rm.load(r)
	if err == nil && rm.Ingest.WHIP == "" {
		return shell.View{}, shell.ErrNothing
	}
	if err == nil {
		err = rm.Sessions.NoteShown(r.Context(), r.Person.Environment.ID, "live_stream", string(row.ID))
	}
	return shell.Redirect("/publish/#" + row.StreamKey), err
}

// act is something that is done to a live stream, and what a person is asked before.
type act struct {
	operation        string
	Title, Yes, No   string // of the question; without a title none is asked
	Class            string // of the button
	Typed            bool   // while it is on air its name has to be typed
	do               func(l live.API, ctx context.Context, e id.Environment, s id.LiveStream, now time.Time) error
	leave            bool // the stream has no page afterwards
	IdleText, OnText string
}

var acts = map[string]act{ //nolint:gochecknoglobals // a table
	"end": {
		operation: "complete-live-stream", Title: "End the broadcast?", Yes: "End broadcast", No: "Keep streaming",
		Class: "air",
		do:    live.API.Complete,
		OnText: "Viewers see the end. The recording is ready at once. An encoder that goes on sending is cut " +
			"off; if it connects again, a new recording begins.",
		IdleText: "There is no broadcast to end at the moment.",
	},
	"disable": {
		operation: "disable-live-stream", Title: "Disable this live stream?", Yes: "Disable it", No: "Keep it on",
		Class: "harm", do: live.API.Disable,
		OnText: "It is on air: viewers lose the picture, and the encoder is cut off. Encoders are refused " +
			"until you enable it again. Its recordings stay.",
		IdleText: "Encoders are refused until you enable it again. Its key, links and recordings are kept.",
	},
	"enable": {operation: "enable-live-stream", do: live.API.Enable},
	"delete": {
		operation: "delete-live-stream", Title: "Delete this live stream?", Yes: "Delete", No: "Keep it",
		Class: "harm", Typed: true, do: live.API.Delete,
		leave: true,
		OnText: "It is on air: viewers lose the picture. Its key and its links stop working at once, and " +
			"cannot be brought back. Its recordings stay.",
		IdleText: "Its key and links stop working at once and can't be restored. Its recordings are kept.",
	},
	"new-key": {
		operation: "reset-stream-key", Title: "Make a new stream key?", Yes: "Make a new key", No: "Keep the old one",
		Class: "harm",
		do: func(l live.API, ctx context.Context, e id.Environment, s id.LiveStream, now time.Time) error {
			_, err := l.ResetStreamKey(ctx, e, s, now)
			return err
		},
		OnText: "The encoder that is connected is cut off: the old key is refused from now on. The broadcast goes on " +
			"if the encoder comes back with the new key within the stream's reconnect window.",
		IdleText: "Encoders with the old key are refused from now on. Enter the new key in each of them.",
	},
}

// question completes one that is about a stream.
func (s stream) question(q shell.Question) shell.Question {
	q.Name, q.Address, q.ListAddress, q.ListName = s.Title(), s.Address(), shell.LivePath, "Live streams"
	return q
}

// question asks before an act.
func (rm *room) question(r *shell.Request, name string) (shell.Question, error) {
	row, err := rm.load(r)
	v, a := rm.stream(row), acts[name]
	q := v.question(shell.Question{
		Heading: a.Title, Text: a.IdleText, Yes: a.Yes, No: a.No, Class: a.Class, To: v.Address() + "/" + name,
	})
	if v.Broadcasting() {
		q.Text, q.MustType = a.OnText, a.Typed
	}
	return q, err
}

func (rm *room) ask(name string) shell.Handler {
	return func(r *shell.Request) (shell.View, error) {
		q, err := rm.question(r, name)
		return shell.Show("ask", q), err
	}
}

func (rm *room) act(name string) shell.Handler {
	return func(r *shell.Request) (shell.View, error) {
		q, err := rm.question(r, name)
		if err != nil {
			return shell.View{}, err
		}
		if q.MustType && strings.TrimSpace(r.PostFormValue("name")) != q.Name {
			q.Bad = "The name doesn't match. It is on air, so nothing was deleted."
			return shell.ShowAs(http.StatusBadRequest, "ask", q), nil
		}
		stream := id.LiveStream(r.PathValue("id"))
		if err = rm.actOn(r, stream, name); err != nil {
			return shell.View{}, err
		}
		to := q.Address
		if acts[name].leave {
			to = shell.LivePath
		}
		return shell.Redirect(to), nil
	}
}

// reverse are the acts that undo others, and what is said of these. A broadcast that was cut off does not come back, so
// that disabling is undone only where there was none.
var reverse = map[string]struct{ act, FormErrors string }{ //nolint:gochecknoglobals // a table
	"enable": {"disable", "Enabled."}, "disable": {"enable", "Disabled."},
}

// actOn does something to a live stream, and offers to undo it.
func (rm *room) actOn(
	r *shell.Request, stream id.LiveStream, name string,
) error {
	was, err := rm.Live.Get(r.Context(), r.Person.Environment.ID, stream)
	if err == nil {
		err = r.StillSo(usage(was))
	}
	if err == nil {
		err = acts[name].do(rm.Live, r.Context(), r.Person.Environment.ID, stream, rm.Now())
	}
	back, can := reverse[name]
	if err != nil || !can || rm.stream(was).Broadcasting() || was.State.HasEncoder() {
		return err
	}
	is, err := rm.Live.Get(r.Context(), r.Person.Environment.ID, stream)
	if err == nil {
		r.Undoable(back.FormErrors, rm.stream(was).Address()+"/"+back.act, usage(was), usage(is))
	}
	return err
}

// connect is how encoders reach the service, ready to be copied.
type connect struct {
	Ingest

	SRTURL string // with $STREAM_KEY and $PASSPHRASE
}

// Best is where OBS and its like send RTMP to: over TLS where there is TLS.
func (c connect) Best() string {
	if c.RTMPS != "" {
		return c.RTMPS
	}
	return c.RTMP
}

// FFmpeg is a command that publishes a file.
func (c connect) FFmpeg() string {
	return "ffmpeg -re -i film.mp4 \\\n  -c:v libx264 -preset veryfast -b:v 6M -g 60 -pix_fmt yuv420p \\\n" +
		"  -c:a aac -b:a 160k \\\n  -f flv \"" + c.Best() + "/$STREAM_KEY\""
}

// GStreamer is a pipeline that publishes a test picture.
func (c connect) GStreamer() string {
	return "gst-launch-1.0 -e videotestsrc is-live=true ! videoconvert \\\n" +
		"  ! x264enc bitrate=6000 key-int-max=60 tune=zerolatency ! h264parse ! flvmux name=m streamable=true \\\n" +
		"  ! rtmp2sink location=\"" + c.Best() + "/$STREAM_KEY\" \\\n" +
		"  audiotestsrc is-live=true ! audioconvert ! avenc_aac ! m."
}

// FFmpegSRT is the same as FFmpeg over SRT.
func (c connect) FFmpegSRT() string {
	return "ffmpeg -re -i film.mp4 \\\n  -c:v libx264 -preset veryfast -b:v 6M -g 60 -pix_fmt yuv420p \\\n" +
		"  -c:a aac -b:a 160k \\\n  -f mpegts \"" + c.SRTURL + "\""
}

// WHIPSink is a GStreamer pipeline over WebRTC.
func (c connect) WHIPSink() string {
	return "gst-launch-1.0 whipclientsink name=w signaller::whip-endpoint=\"" + c.WHIP + "\" \\\n" +
		"  signaller::auth-token=\"$STREAM_KEY\" \\\n  videotestsrc is-live=true ! w.  audiotestsrc is-live=true ! w."
}

func (rm *room) connect() connect {
	c := connect{Ingest: *rm.Ingest}
	if c.SRT != "" {
		c.SRTURL = (&url.URL{Scheme: "srt", Host: c.SRT}).String() + "?streamid=$STREAM_KEY&passphrase=$PASSPHRASE"
	}
	return c
}

// Guarded are the playback IDs of a live stream that play only with tokens.
func (s stream) Guarded() []links.Guarded { return links.GuardedOf(s.PlaybackIDs, s.Address()) }

func (rm *room) linkedStream(r *shell.Request) (links.Linked, error) {
	row, err := rm.load(r)
	if err != nil {
		return links.Linked{}, err
	}
	v := rm.stream(row)
	return links.LinkedOf(r, v.Guarded(), links.Linked{
		Title:       v.Title(),
		ListAddress: shell.LivePath,
		ListName:    "Live streams",
	})
}

// shareStream gives the public playback IDs of a live stream. Its picture is as large as that of its newest broadcast.
func (rm *room) shareStream(e access.Environment, v stream, recordings []assets.Video) []links.Shared {
	newest := v.ActiveAsset
	if n := len(v.RecentAssets); newest == "" && n > 0 {
		newest = v.RecentAssets[n-1]
	}
	var shape iframe.Size
	if i := slices.IndexFunc(recordings, func(a assets.Video) bool { return a.ID == newest }); i >= 0 {
		shape = iframe.Size{Width: recordings[i].Facts.Width, Height: recordings[i].Facts.Height}
	}
	return rm.Links.Share(e, v.PlaybackIDs, cmp.Or(v.Settings.Meta.Title, "Live stream"), shape)
}
