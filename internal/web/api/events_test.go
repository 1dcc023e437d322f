package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// happened is one event of each kind of object, with all that a noun would store of it.
func happened() []event.Event {
	stream, film := fullStream(), offeredAsset()
	stream.State = live.Recording
	warned := live.Warned{
		ID: stream.ID, Environment: envID, State: live.Reconnecting, ActiveAsset: "asset1", Passthrough: "p",
		CreatedAt: noon,
		Warning:   live.Warning{Type: live.CustomSlateUnavailable, Message: "it can't be fetched"},
	}
	troubled := asset.Warned{
		ID: film.ID, Environment: envID, Status: asset.Ready, LiveStream: "live1", SourceAsset: "asset0",
		Upload: "upload0", Passthrough: "p", CreatedAt: noon,
		Warning: asset.Warning{Type: asset.InputTruncated, Message: "it ends early"},
	}
	failed := film.Static.Files[0]
	failed.Asset, failed.Errors = film.ID, &asset.Errors{Type: "invalid_input", Messages: []string{"broken"}}
	track := film.Tracks[0]
	track.Asset = film.ID
	list := []event.Event{
		event.New(envID, live.EventRecording, live.EventObject, string(stream.ID), noon, stream),
		event.New(envID, live.EventWarning, live.EventObject, string(stream.ID), noon, warned),
		event.New(envID, live.EventTargetCreated, live.EventTargetObject,
			string(stream.Settings.SimulcastTargets[0].ID), noon,
			stream.Settings.SimulcastTargets[0]).Of(string(stream.ID)),
		event.New(envID, asset.EventReady, asset.EventObject, string(film.ID), noon, film),
		event.New(envID, asset.EventWarning, asset.EventObject, string(film.ID), noon, troubled),
		event.New(envID, asset.EventTrackReady, asset.EventTrackObject, string(track.ID), noon,
			track).Of(string(film.ID)),
		event.New(envID, asset.EventStaticErrored, asset.EventFileObject, string(failed.ID), noon,
			failed).Of(string(film.ID)),
		event.New(envID, upload.EventCreated, upload.EventObject, "upload1", noon, upload.Upload{
			ID: "upload1", Status: upload.Waiting, Timeout: 3600, CORSOrigin: "*",
		}),
		event.New(envID, "test.other", "other_thing", "other1", noon, map[string]int{"n": 1}),
	}
	for i := range list {
		list[i].ID, list[i].Number, list[i].Sequence = fmt.Sprintf("event%d", i+1), int64(i+1), int64(100+i)
	}
	list[0].RequestID = "request1"
	return list
}

// offeredAsset has a master that can be had.
func offeredAsset() asset.Asset {
	a := fullAsset()
	a.Master = &asset.Master{ID: "m1", Status: asset.FileReady, Signature: "signature1", Expires: noon.Add(time.Hour)}
	return a
}

func testForm() EventForm {
	return EventForm{
		PublicURL: "https://video.example.com",
		Environment: func(context.Context, id.Environment) (access.Environment, error) {
			return access.Environment{ID: envID, Name: "Production"}, nil
		},
		LiveStream: func(context.Context, id.LiveStream) (live.Stream, error) { return fullStream(), nil },
		Upload: func(context.Context, id.Upload) (upload.Upload, error) {
			return upload.Upload{ID: "upload1", Status: upload.Waiting, Secret: "opens"}, nil
		},
		Asset: func(context.Context, id.Asset) (asset.Asset, error) { return offeredAsset(), nil },
	}
}

// secretsOf are the secrets that the sample resources have.
func secretsOf() []string {
	stream, film := fullStream(), offeredAsset()
	return []string{
		stream.StreamKey, stream.SRTPassphrase, stream.Settings.SimulcastTargets[0].StreamKey, film.Master.Signature,
		"opens",
	}
}

// TestEventForm: all objects in the form of the API, shown without secrets although the rows have some, and sent with
// them.
func TestEventForm(t *testing.T) {
	t.Parallel()
	shown, sent := "", ""
	for _, e := range happened() {
		for out, form := range map[*string]func(context.Context, event.Event) (Event, error){
			&shown: testForm().Show, &sent: testForm().Send,
		} {
			v, err := form(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			*out += string(text) + "\n"
		}
	}
	golden(t, "events_shown.txt", []byte(shown))
	golden(t, "events_sent.txt", []byte(sent))
	for _, secret := range secretsOf() {
		if secret == "" || strings.Contains(shown, `"`+secret) || strings.Contains(shown, "="+secret) ||
			strings.Contains(shown, "/"+secret) {
			t.Errorf("the log of events shows %q", secret)
		}
		if !strings.Contains(sent, secret) {
			t.Errorf("webhooks are not sent %q", secret)
		}
	}
}

// TestEventsOfEarlierVersions: rows as they were stored before events had resources, with the secrets of then, have the
// form of today. What is sent has the secrets of today; those of a target are not found without its stream.
func TestEventsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/events_stored_earlier.json")
	var rows []event.Event
	if err == nil {
		err = json.Unmarshal(text, &rows) //nolint:musttag // with the names of Go
	}
	if err != nil {
		t.Fatal(err)
	}
	form := testForm()
	form.LiveStream = func(_ context.Context, s id.LiveStream) (live.Stream, error) {
		if s != "live1" {
			return live.Stream{}, fault.New(fault.NotFound, "gone")
		}
		today := fullStream()
		today.StreamKey, today.SRTPassphrase = "key-of-today", "pass-of-today"
		return today, nil
	}
	var shown []Event
	for _, e := range rows {
		one, failed := form.Show(t.Context(), e)
		if failed != nil {
			t.Fatal(failed)
		}
		shown = append(shown, one)
		sent, failed := form.Send(t.Context(), e)
		if failed != nil {
			t.Fatal(failed)
		}
		if text, err = json.Marshal(sent); err != nil || bytes.Contains(text, []byte(`"key1"`)) ||
			e.ObjectKind == live.EventObject != bytes.Contains(text, []byte("key-of-today")) {
			t.Errorf("%s: sent %s, %v", e.Type, text, err)
		}
	}
	if text, err = json.MarshalIndent(shown, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "events_shown_earlier.txt", append(text, '\n'))
	for _, secret := range []string{`"key1"`, "pass1", `"k"`, "signature1"} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the log of events shows %s", secret)
		}
	}
}

// TestEventOfWhatIsGone: it is sent without secrets.
func TestEventOfWhatIsGone(t *testing.T) {
	t.Parallel()
	form := testForm()
	gone := func() error { return fault.New(fault.NotFound, "gone") }
	form.LiveStream = func(context.Context, id.LiveStream) (live.Stream, error) { return live.Stream{}, gone() }
	form.Asset = func(context.Context, id.Asset) (asset.Asset, error) { return asset.Asset{}, gone() }
	form.Upload = func(context.Context, id.Upload) (upload.Upload, error) { return upload.Upload{}, gone() }
	form.Environment = func(context.Context, id.Environment) (access.Environment, error) {
		return access.Environment{}, gone()
	}
	for _, e := range happened() {
		if v, err := form.Send(t.Context(), e); err != nil || v.ID != e.ID || v.Environment.ID != string(envID) {
			t.Errorf("%s: %+v, %v", e.Type, v, err)
		}
	}
	form.LiveStream = func(context.Context, id.LiveStream) (live.Stream, error) {
		return live.Stream{}, fault.New(fault.Unavailable, "away")
	}
	if _, err := form.Send(t.Context(), happened()[0]); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("with the database away: %v", err)
	}
}

// logOf is an API over a database with events.
func logOf(t *testing.T, events int) (*db.DB, http.Handler) {
	t.Helper()
	d := dbtest.Open(t, dbtest.SQLite(t))
	o := (&notebook{}).options()
	o.Events, o.EventForm = d, testForm()
	streams := live.New(live.Options{Store: d.LiveStreams()})
	for range events {
		if _, err := streams.Create(t.Context(), envID, live.CreateInput{}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return d, New(o)
}

type shownEvent struct {
	Type     string `json:"type"`
	Sequence int64  `json:"sequence"`
}

type eventPage struct {
	Data []shownEvent `json:"data"`
	Next *string      `json:"next_cursor"`
}

func askEvents(t *testing.T, h http.Handler, query string) (page eventPage) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, eventPath+"?"+query, nil)
	r.SetBasicAuth(tokenID, tokenValue)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	return page
}

// TestEventPages: both orders lead through all events, and the oldest first go on with what comes later.
func TestEventPages(t *testing.T) {
	t.Parallel()
	d, h := logOf(t, 7)
	for order, want := range map[string][]int64{"asc": {1, 2, 3, 4, 5, 6, 7}, "desc": {7, 6, 5, 4, 3, 2, 1}} {
		var got []int64
		cursor := ""
		for range 10 {
			page := askEvents(t, h, "limit=3&order="+order+"&cursor="+cursor)
			for _, e := range page.Data {
				got = append(got, e.Sequence)
			}
			if page.Next == nil || len(page.Data) == 0 {
				break
			}
			cursor = *page.Next
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", order, got)
		}
	}
	if _, err := live.New(live.Options{Store: d.LiveStreams()}).Create(t.Context(), envID, live.CreateInput{},
		time.Now()); err != nil {
		t.Fatal(err)
	}
	if page := askEvents(t, h, "order=asc&cursor=7&type="+live.EventCreated+",x"); len(page.Data) != 1 ||
		page.Data[0].Sequence != 8 {
		t.Errorf("what came later: %+v", page)
	}
	if page := askEvents(t, h, "since=2100-01-01T00:00:00Z"); len(page.Data) != 0 || page.Next != nil {
		t.Errorf("of the future: %+v", page)
	}
}

// refusedEvents is what is said to a request for events that is refused.
func refusedEvents(t *testing.T, h http.Handler, path, query string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path+"?"+query, nil)
	r.SetBasicAuth(tokenID, tokenValue)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	return w.Body.String()
}

// TestLostCursor: who goes on behind an event that is not there yet, or in front of which some were removed that it may
// have missed, is told so; and a cursor that has come to the end stays good when nothing happens for long to the
// environment.
func TestLostCursor(t *testing.T) {
	t.Parallel()
	d, h := logOf(t, 7)
	quiet := *askEvents(t, h, "order=asc&object_id=none").Next
	if quiet != "7" {
		t.Errorf("the cursor of one who has seen all there is is %s", quiet)
	}
	for path, query := range map[string]string{eventPath: "order=asc&cursor=8", followPath: "after=8"} {
		if said := refusedEvents(t, h, path, query); !strings.Contains(said, "is 8, and the last event is 7") {
			t.Errorf("%s: %s", path, said)
		}
	}
	if n, err := d.PruneEvents(t.Context(), time.Now().Add(time.Hour), 4); err != nil || n != 4 {
		t.Fatal(n, err)
	}
	for path, query := range map[string]string{eventPath: "order=asc&cursor=3", followPath: "after=3"} {
		if said := refusedEvents(t, h, path, query); !strings.Contains(said,
			"is 3, and the first event that is kept is 5") {
			t.Errorf("%s: %s", path, said)
		}
	}
	for cursor, want := range map[string]int{"0": 3, "4": 3, "5": 2, quiet: 0} {
		if page := askEvents(t, h, "order=asc&cursor="+cursor); len(page.Data) != want || page.Next == nil ||
			*page.Next != "7" {
			t.Errorf("from %s: %+v", cursor, page)
		}
	}
	if n, err := d.PruneEvents(t.Context(), time.Now().Add(time.Hour), 4); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if page := askEvents(t, h, "order=asc&cursor=7"); len(page.Data) != 0 || *page.Next != "7" {
		t.Errorf("when nothing is kept: %+v", page)
	}
}

// TestEnvironmentOfPage: the environment of a page of events is read once.
func TestEnvironmentOfPage(t *testing.T) {
	t.Parallel()
	d, _ := logOf(t, 7)
	o, lookups := (&notebook{}).options(), 0
	o.Events = d
	o.EventForm.Environment = func(_ context.Context, e id.Environment) (access.Environment, error) {
		lookups++
		return access.Environment{ID: e, Name: "Production"}, nil
	}
	if page := askEvents(t, New(o), "limit=7"); len(page.Data) != 7 || lookups != 1 {
		t.Errorf("%d events, and %d times the environment", len(page.Data), lookups)
	}
}

// follower reads a stream of events.
type follower struct {
	t     *testing.T
	lines *bufio.Reader
}

func followEvents(t *testing.T, base, query, last string) follower {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+followPath+"?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(tokenID, tokenValue)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := new(http.Client).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	return follower{t, bufio.NewReader(resp.Body)}
}

// next gives the ID of the next event, whose data must be an event with that sequence.
func (f follower) next() string {
	f.t.Helper()
	key := ""
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			f.t.Fatal(err)
		}
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			key = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			var e shownEvent
			if err := json.Unmarshal([]byte(v), &e); err != nil || fmt.Sprint(e.Sequence) != key || e.Type == "" {
				f.t.Fatalf("data %s behind id %s: %v", v, key, err)
			}
			return key
		}
	}
}

// TestFollowEvents: a stream begins with the next event, or behind one that was seen, and goes on with what comes.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	d, h := logOf(t, 3)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	streams := live.New(live.Options{Store: d.LiveStreams()})
	all, resumed, fresh := followEvents(t, srv.URL, "after=0", ""), followEvents(t, srv.URL, "after=0", "2"),
		followEvents(t, srv.URL, "", "")
	for i := range 3 {
		if got := all.next(); got != fmt.Sprint(i+1) {
			t.Errorf("event %s, want %d", got, i+1)
		}
	}
	if got := resumed.next(); got != "3" {
		t.Errorf("behind 2 comes %s", got)
	}
	if _, err := streams.Create(t.Context(), envID, live.CreateInput{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]follower{"all": all, "resumed": resumed, "fresh": fresh} {
		if got := f.next(); got != "4" {
			t.Errorf("%s: the new event is %s", name, got)
		}
	}
}

// TestRequestOfEvent: events name the API request that caused them.
func TestRequestOfEvent(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	o := (&notebook{}).options()
	o.Live = live.New(live.Options{Store: d.LiveStreams()})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/video/v1/live-streams", strings.NewReader("{}"))
	r.SetBasicAuth(tokenID, tokenValue)
	w := httptest.NewRecorder()
	New(o).ServeHTTP(w, r)
	got, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
	if err != nil || len(got) != 1 || got[0].RequestID != w.Header().Get(requestIDHeader) || got[0].RequestID == "" {
		t.Errorf("%+v, %v; the request was %s", got, err, w.Header().Get(requestIDHeader))
	}
}

func TestEventRequests(t *testing.T) {
	t.Parallel()
	runScenarios(t, "events.txt", []scenario{
		{name: "newest first", method: "GET", path: eventPath, status: 200},
		{
			name: "with every filter", method: "GET",
			path: eventPath +
				"?type=a,b&object_id=x&since=2026-01-02T03:04:05Z&until=1767225600&order=asc&cursor=7&limit=2",
			status: 200,
		},
		{
			name: "with nothing right", method: "GET",
			path: eventPath + "?type=" + strings.Repeat("a,", 30) +
				"&since=yesterday&until=-1&order=up&cursor=x&limit=0", status: 400,
		},
		{
			name: "by a token that may not", method: "GET", path: eventPath,
			auth: func(r *http.Request) { r.SetBasicAuth(readerID, tokenValue) }, status: 403,
		},
		{name: "follow with a bad cursor", method: "GET", path: followPath + "?after=x", status: 400},
	})
}
