package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
	"millrace/internal/delivery"
	"millrace/internal/fetch"
	"millrace/internal/id"
	"millrace/internal/programtest"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// fakeWebhooks note what they are asked for.
type fakeWebhooks struct{ *notebook }

func sampleWebhook() webhook.Webhook {
	return webhook.Webhook{
		ID: "hook1", Environment: envID, Address: "https://example.com/hook", Enabled: true,
		Types: []string{"video.asset.ready"}, Secret: "signs",
		FailingSince: noon, CreatedAt: noon,
	}
}

func sampleDelivery() webhook.Delivery {
	const address = "https://example.com/hook"
	return webhook.Delivery{
		Sequence: 7, EventID: "event1", EventType: "video.asset.ready", State: webhook.Waiting,
		NextAt: noon.Add(time.Minute), Reason: webhook.AfterEarlier,
		Earlier: webhook.EarlierEvent{Sequence: 5, ID: "event0"},
		Attempts: []webhook.Attempt{
			{
				Webhook: "hook1", Number: 1, At: noon, Address: address, Status: 503,
				Headers: map[string]string{"Retry-After": "5"}, Body: "busy", Duration: 12 * time.Millisecond,
			},
			{Webhook: "hook1", Number: 2, At: noon, Address: address, Error: "connection refused"},
		},
	}
}

func (f fakeWebhooks) Create(
	_ context.Context, _ id.Environment, in webhook.CreateInput, _ time.Time,
) (webhook.Webhook, error) {
	f.note("webhook.Create", in)
	return sampleWebhook(), outcome(in.Address)
}

func (f fakeWebhooks) Get(_ context.Context, _ id.Environment, w id.Webhook) (webhook.Webhook, error) {
	f.note("webhook.Get", w)
	return sampleWebhook(), outcome(string(w))
}

func (f fakeWebhooks) List(_ context.Context, _ id.Environment, page, limit int) ([]webhook.Webhook, error) {
	f.note("webhook.List", page, limit)
	return []webhook.Webhook{sampleWebhook()}, nil
}

func (f fakeWebhooks) Patch(
	_ context.Context, _ id.Environment, w id.Webhook, in webhook.PatchInput, _ time.Time,
) (webhook.Webhook, error) {
	f.note("webhook.Patch", w, in)
	return sampleWebhook(), outcome(string(w))
}

func (f fakeWebhooks) Delete(_ context.Context, _ id.Environment, w id.Webhook) error {
	f.note("webhook.Delete", w)
	return outcome(string(w))
}

func (f fakeWebhooks) RotateSecret(
	_ context.Context, _ id.Environment, w id.Webhook, _ time.Time,
) (webhook.Webhook, error) {
	f.note("webhook.RotateSecret", w)
	return sampleWebhook(), outcome(string(w))
}

func (f fakeWebhooks) Test(_ context.Context, _ id.Environment, w id.Webhook, _ time.Time) (event.Event, error) {
	f.note("webhook.Test", w)
	e := event.New(envID, webhook.EventTest, webhook.EventObject, string(w), noon, webhook.EventData{
		ID: w, Enabled: true,
	})
	e.ID = "event1"
	return e, outcome(string(w))
}

func (f fakeWebhooks) Deliveries(
	_ context.Context, _ id.Environment, w id.Webhook, q webhook.DeliveryQuery,
) ([]webhook.Delivery, error) {
	f.note("webhook.Deliveries", w, q)
	return []webhook.Delivery{sampleDelivery()}, outcome(string(w))
}

func (f fakeWebhooks) ReplayEvent(
	_ context.Context, _ id.Environment, w id.Webhook, e string,
) (webhook.Delivery, error) {
	f.note("webhook.ReplayEvent", w, e)
	return sampleDelivery(), outcome(e)
}

func (f fakeWebhooks) ReplaySince(
	_ context.Context, _ id.Environment, w id.Webhook, since time.Time,
) (webhook.Webhook, error) {
	f.note("webhook.ReplaySince", w, since)
	return sampleWebhook(), outcome(string(w))
}

func (f fakeWebhooks) ReplayFailed(_ context.Context, _ id.Environment, w id.Webhook, since time.Time) (int, error) {
	f.note("webhook.ReplayFailed", w, since)
	return 3, outcome(string(w))
}

func (f fakeWebhooks) Retry(_ context.Context, _ id.Environment, w id.Webhook) (int, error) {
	f.note("webhook.Retry", w)
	return 2, outcome(string(w))
}

func (f fakeWebhooks) Skip(_ context.Context, _ id.Environment, w id.Webhook, e string) (webhook.Delivery, error) {
	f.note("webhook.Skip", w, e)
	d := sampleDelivery()
	d.State, d.NextAt, d.Reason, d.Earlier = webhook.Skipped, time.Time{}, "", webhook.EarlierEvent{}
	return d, outcome(e)
}

func TestWebhookRequests(t *testing.T) {
	t.Parallel()
	const one = webhookPath + "/hook1"
	runScenarios(t, "webhooks.txt", []scenario{
		{
			name: "create", method: "POST", path: webhookPath, body: `{"address":"https://example.com/hook"}`,
			status: 201,
		},
		{
			name: "create with types", method: "POST", path: webhookPath,
			body: `{"address":"https://example.com/hook","event_types":["video.asset.ready"]}`, status: 201,
		},
		{
			name: "create disabled", method: "POST", path: webhookPath,
			body: `{"address":"https://example.com/hook","enabled":false}`, status: 201,
		},
		{
			name: "create by a token that may not", method: "POST", path: webhookPath, body: `{"address":"x"}`,
			auth: func(r *http.Request) { r.SetBasicAuth(readerID, tokenValue) }, status: 403,
		},
		{name: "list, which shows no secret", method: "GET", path: webhookPath + "?limit=2&page=3", status: 200},
		{name: "retrieve", method: "GET", path: one, status: 200},
		{name: "retrieve none", method: "GET", path: webhookPath + "/absent", status: 404},
		{name: "disable", method: "PATCH", path: one, body: `{"enabled":false}`, status: 200},
		{
			name: "change", method: "PATCH", path: one,
			body: `{"address":"https://example.com/other","event_types":null}`, status: 200,
		},
		{name: "delete", method: "DELETE", path: one, status: 204},
		{name: "rotate the secret", method: "POST", path: one + "/rotate-secret", status: 201},
		{name: "test", method: "POST", path: one + "/test", status: 201},
		{name: "deliveries", method: "GET", path: one + "/deliveries?status=waiting&limit=1&cursor=9", status: 200},
		{name: "deliveries that were skipped", method: "GET", path: one + "/deliveries?status=skipped", status: 200},
		{name: "deliveries with nothing right", method: "GET", path: one + "/deliveries?limit=0&cursor=x", status: 400},
		{name: "replay one", method: "POST", path: one + "/deliveries/event1/replay", status: 201},
		{name: "replay one that is gone", method: "POST", path: one + "/deliveries/absent/replay", status: 404},
		{
			name: "replay since a time", method: "POST", path: one + "/replay",
			body: `{"since":"2026-01-02T03:04:05Z"}`, status: 201,
		},
		{name: "replay since nothing", method: "POST", path: one + "/replay", body: `{}`, status: 400},
		{name: "replay what failed", method: "POST", path: one + "/replay-failed", status: 201},
		{
			name: "replay what failed since a time", method: "POST", path: one + "/replay-failed",
			body: `{"since":"2026-01-02T03:04:05Z"}`, status: 201,
		},
		{
			name: "replay what failed since no time", method: "POST", path: one + "/replay-failed",
			body: `{"since":"yesterday"}`, status: 400,
		},
		{name: "send what waits now", method: "POST", path: one + "/retry", status: 201},
		{name: "send what waits for none now", method: "POST", path: webhookPath + "/absent/retry", status: 404},
		{name: "skip one", method: "POST", path: one + "/deliveries/event1/skip", status: 201},
		{name: "skip one that is gone", method: "POST", path: one + "/deliveries/absent/skip", status: 404},
		{
			name: "skip by a token that may not", method: "POST", path: one + "/deliveries/event1/skip",
			auth: func(r *http.Request) { r.SetBasicAuth(readerID, tokenValue) }, status: 403,
		},
	})
}

// hooked is the API over the real services on a database, with deliveries that may reach this host.
func hooked(t *testing.T, url string) http.Handler {
	t.Helper()
	d := dbtest.Open(t, url)
	tokens := access.New(access.Options{Store: d.Access()})
	if _, err := tokens.SeedToken(t.Context(), tokenID, tokenValue, time.Now()); err != nil {
		t.Fatal(err)
	}
	form := EventForm{
		Environment: d.Access().Environment, LiveStream: d.LiveStreams().Find, Asset: d.Assets().Find,
		Upload: d.Uploads().Find, PublicURL: "https://video.example.com",
	}
	client := fetch.New(fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(client.Close)
	sender := delivery.New(delivery.Options{
		Outbox: d, Node: "node", Now: time.Now, Logger: quietLogger(io.Discard),
		Body: func(ctx context.Context, e event.Event, attempts []webhook.Attempt) ([]byte, error) {
			shown, err := form.Send(ctx, e)
			if err != nil {
				return nil, err
			}
			return json.Marshal(shown.Attempted(attempts))
		},
		Post: func(ctx context.Context, to string, headers map[string]string, body []byte) (delivery.Response, error) {
			header := http.Header{"Content-Type": {"application/json"}}
			for name, value := range headers {
				header.Set(name, value)
			}
			a, err := client.Post(ctx, to, header, body, webhook.KeptBody)
			return delivery.Response{Status: a.Status, Headers: a.Header, Body: a.Body, RetryAfter: a.RetryAfter}, err
		},
	})
	background(t, sender, d)
	return New(Options{
		Live: live.New(live.Options{Store: d.LiveStreams()}), Assets: asset.New(asset.Options{Store: d.Assets()}),
		Callers:  Callers{Access: tokens},
		Webhooks: webhook.New(d, EventTypes()), Events: d, EventForm: form, Logger: quietLogger(io.Discard),
	})
}

// background runs services until the test ends.
func background(t *testing.T, sender *delivery.Dispatcher, d *db.DB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{}, 2)
	go func() { _ = d.Run(ctx); ended <- struct{}{} }()
	go func() { _ = sender.Run(ctx); ended <- struct{}{} }()
	t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
	})
}

// TestOfficialSDKWebhooks: the official client makes endpoints, takes what they are sent, and accepts its signatures;
// so do the libraries of Standard Webhooks.
func TestOfficialSDKWebhooks(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	program := goProgram(t, "./webhooks")
	dbtest.Each(t, func(t *testing.T, url string) {
		srv := httptest.NewServer(hooked(t, url))
		t.Cleanup(srv.Close)
		runProgram(t, srv.URL, "node", "webhooks.mjs")
		runProgram(t, srv.URL, program)
	})
}

// TestPrivateAddress: an endpoint on an address that is not public is not reached, and its delivery says why.
func TestPrivateAddress(t *testing.T) {
	t.Parallel()
	h := hooked(t, dbtest.SQLite(t))
	ask := func(method, path, body string) []byte {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.SetBasicAuth(tokenID, tokenValue)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.Bytes()
	}
	var made struct {
		Data Webhook `json:"data"`
	}
	if err := json.Unmarshal(ask("POST", webhookPath, `{"address":"http://10.1.2.3/hook"}`), &made); err != nil ||
		made.Data.ID == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	ask("POST", webhookPath+"/"+made.Data.ID+"/test", "")
	wait := time.NewTicker(20 * time.Millisecond)
	defer wait.Stop()
	for range 3000 {
		<-wait.C
		if got := ask("GET", webhookPath+"/"+made.Data.ID+"/deliveries", ""); bytes.Contains(got,
			[]byte("10.1.2.3 is not allowed: private network; add it with --fetch-allow")) {
			return
		}
	}
	t.Error("the delivery does not say that the address is not allowed")
}
