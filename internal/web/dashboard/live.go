package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	livePath = Path + "/live"
	perPage  = 50
	// maxSearched is how many live streams, the newest, a search looks through.
	maxSearched, searchPage = 1000, 100
	maxQuery                = 255 // bytes
)

func (s *server) routeLive(mux *http.ServeMux) {
	mux.Handle("GET "+livePath, s.person("", reads, s.listLive))
	mux.Handle("GET "+livePath+"/new", s.person("", writes, s.showNew))
	mux.Handle("POST "+livePath, s.person("create-live-stream", writes, s.create))
	mux.Handle("GET "+livePath+"/follow", s.person("", reads, s.followList))
	mux.Handle("GET "+livePath+"/{id}", s.person("", reads, s.showStream))
	mux.Handle("GET "+livePath+"/{id}/follow", s.person("", reads, s.followStream))
	mux.Handle("GET "+livePath+"/{id}/edit", s.person("", writes, s.showEdit))
	mux.Handle("POST "+livePath+"/{id}/edit", s.person("update-live-stream", writes, s.edit))
	mux.Handle("GET "+livePath+"/{id}/targets/new", s.person("", writes, s.showNewTarget))
	mux.Handle("POST "+livePath+"/{id}/targets",
		s.person("create-live-stream-simulcast-target", writes, s.addTarget))
	mux.Handle("GET "+livePath+"/{id}/targets/{target}/delete", s.person("", writes, s.askDeleteTarget))
	mux.Handle("POST "+livePath+"/{id}/targets/{target}/delete",
		s.person("delete-live-stream-simulcast-target", writes, s.deleteTarget))
	mux.Handle("POST "+livePath+"/{id}/key", s.person("show-stream-key", reads, s.showKey))
	for name, a := range acts {
		if a.Title != "" {
			mux.Handle("GET "+livePath+"/{id}/"+name, s.person("", writes, s.ask(name)))
		}
		mux.Handle("POST "+livePath+"/{id}/"+name, s.person(a.operation, writes, s.act(name)))
	}
}

// stream is a live stream as pages show it.
type stream struct {
	live.Stream

	Now     time.Time
	Encoder *live.Encoder // the connected one, where this node has it
	Trouble []live.Trouble
}

// Title is its name; without one the beginning and the end of its ID.
func (s stream) Title() string {
	if t := strings.TrimSpace(s.Settings.Meta.Title); t != "" {
		return t
	}
	return short(s.ID)
}

// Address is that of its page.
func (s stream) Address() string { return livePath + "/" + url.PathEscape(string(s.ID)) }

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
func (s stream) Public() id.Playback { return public(s.PlaybackIDs) }

func public(ids []playbackid.ID) id.Playback {
	for _, p := range ids {
		if p.Policy == playbackid.Public {
			return p.ID
		}
	}
	return ""
}

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
	Status, Query string
	Rows          []stream
	Page          int
	Prev, Next    string // addresses
	Searched      int    // how many were looked through when there are more; 0: all
	Cut           bool   // more than a page fit
	Filtered      bool

	counts live.Numbers
}

func (s *server) listLive(w http.ResponseWriter, r *http.Request, p access.Person) {
	l, err := s.listing(r.Context(), p, r.URL.Query())
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	s.render(w, r, p, http.StatusOK, "live", l)
}

// listing reads what the page shows that a query asks for.
func (s *server) listing(ctx context.Context, p access.Person, q url.Values) (listing, error) {
	l := listing{Status: q.Get("status"), Query: strings.TrimSpace(q.Get("q")), Page: max(1, number(q.Get("page")))}
	switch live.Status(l.Status) {
	case live.StatusActive, live.StatusIdle, live.StatusDisabled:
	default:
		l.Status = ""
	}
	if len(l.Query) > maxQuery || !utf8.ValidString(l.Query) {
		l.Query = ""
	}
	l.Filtered = l.Query != "" || l.Status != ""
	if l.Query != "" {
		err := s.search(ctx, p, &l)
		return l, err
	}
	var err error
	if l.counts, err = s.Live.Count(ctx, p.Environment.ID); err == nil {
		err = s.list(ctx, p, &l)
	}
	return l, err
}

// atMost is a number as text, which says so when there are more than most; 0 is empty.
func atMost(n, most int) string {
	switch {
	case n == 0:
		return ""
	case n > most:
		return strconv.Itoa(most) + "+"
	}
	return strconv.Itoa(n)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n > 1_000_000 {
		return 0
	}
	return n
}

// list reads a page, and looks whether there is another one.
func (s *server) list(ctx context.Context, p access.Person, l *listing) error {
	found, err := s.Live.List(ctx, p.Environment.ID, live.ListQuery{
		Status: live.Status(l.Status), Page: l.Page,
		Limit: perPage,
	})
	if err != nil {
		return err
	}
	for _, v := range found {
		l.Rows = append(l.Rows, s.stream(v))
	}
	if l.Page > 1 {
		l.Prev = l.address(l.Page - 1)
	}
	if len(found) == perPage {
		more, err := s.Live.List(ctx, p.Environment.ID,
			live.ListQuery{Status: live.Status(l.Status), Page: l.Page*perPage + 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(more) > 0 {
			l.Next = l.address(l.Page + 1)
		}
	}
	return nil
}

// search looks through the newest streams for a text. An ID finds its stream however old it is.
func (s *server) search(ctx context.Context, p access.Person, l *listing) error {
	l.Page = 1
	want := strings.ToLower(l.Query)
	all := maxSearched / searchPage
	for page := 1; page <= all && !l.Cut; page++ {
		found, err := s.Live.List(ctx, p.Environment.ID,
			live.ListQuery{Status: live.Status(l.Status), Page: page, Limit: searchPage})
		if err != nil {
			return err
		}
		for _, v := range found {
			if !matches(v, want) {
				continue
			}
			if l.Cut = len(l.Rows) == perPage; l.Cut {
				break
			}
			l.Rows = append(l.Rows, s.stream(v))
		}
		if len(found) < searchPage {
			break
		}
		if page == all {
			l.Searched = maxSearched
		}
	}
	if len(l.Rows) > 0 {
		return nil
	}
	v, err := s.Live.Get(ctx, p.Environment.ID, id.LiveStream(l.Query))
	if err == nil && (l.Status == "" || string(v.Status()) == l.Status) {
		l.Rows = append(l.Rows, s.stream(v))
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// matches reports whether a text is in what a person knows of a stream; want is in lower case.
func matches(v live.Stream, want string) bool {
	for _, text := range []string{
		v.Settings.Meta.Title, string(v.ID), v.Settings.Passthrough,
		v.Settings.Meta.ExternalID,
	} {
		if strings.Contains(strings.ToLower(text), want) {
			return true
		}
	}
	for _, p := range v.PlaybackIDs {
		if strings.ToLower(string(p.ID)) == want {
			return true
		}
	}
	return false
}

// fits reports whether a stream is one of those that are asked for.
func (l listing) fits(v live.Stream) bool {
	return (l.Status == "" || string(v.Status()) == l.Status) &&
		(l.Query == "" || matches(v, strings.ToLower(l.Query)))
}

// query is what the address of a page of the list says.
func (l listing) query(page int) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"status": l.Status, "q": l.Query} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	return q
}

func (l listing) address(page int) string {
	if q := l.query(page); len(q) > 0 {
		return livePath + "?" + q.Encode()
	}
	return livePath
}

// Self is the address of the page.
func (l listing) Self() string { return l.address(l.Page) }

// New is empty: a page that is loaded has what is new.
func (l listing) New() string { return "" }

// Follow is the address of the events that change the page, with the rows that it has.
func (l listing) Follow() string {
	q := l.query(l.Page)
	for _, row := range l.Rows {
		q.Add("row", string(row.ID))
	}
	return livePath + "/follow?" + q.Encode()
}

// stream adds to a row what this node knows of its encoder.
func (s *server) stream(v live.Stream) stream {
	out := stream{Stream: v, Now: s.Now()}
	if v.State.HasEncoder() {
		h := s.Health.Health(v)
		out.Trouble = h.Trouble
		if h.Encoder != nil && h.Encoder.Until.IsZero() {
			out.Encoder = h.Encoder
		}
	}
	return out
}
