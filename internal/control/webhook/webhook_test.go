package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/storage/db/dbtest"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestWants(t *testing.T) {
	t.Parallel()
	w := webhook.Webhook{ID: "w", Environment: "env", Types: []string{"a", "b"}}
	all := webhook.Webhook{ID: "w", Environment: "env"}
	for _, tt := range []struct {
		e         event.Event
		some, any bool
	}{
		{event.Event{Environment: "env", Type: "a"}, true, true},
		{event.Event{Environment: "env", Type: "c"}, false, true},
		{event.Event{Environment: "other", Type: "a"}, false, false},
		{event.Event{Environment: "env", Type: webhook.EventTest, ObjectID: "w"}, true, true},
		{event.Event{Environment: "env", Type: webhook.EventTest, ObjectID: "x"}, false, false},
	} {
		if w.Wants(tt.e) != tt.some || all.Wants(tt.e) != tt.any {
			t.Errorf("%+v: %t and %t", tt.e, w.Wants(tt.e), all.Wants(tt.e))
		}
	}
}

func mac(key, text string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func muxSigned(secret, text string) string { return ",v1=" + hex.EncodeToString(mac(secret, text)) }

func standardSigned(key, text string) string {
	return "v1," + base64.StdEncoding.EncodeToString(mac(key, text))
}

// TestHeaders: each kind has a signature by each secret that is valid; the old one is for a day. What is no base64
// behind whsec_, as secrets of earlier versions, signs for Mux's library alone.
func TestHeaders(t *testing.T) {
	t.Parallel()
	const (
		first, second = "whsec_Zmlyc3Q=", "whsec_c2Vjb25k" // keys first and second
		before, after = "1767268799", "1767268800"
	)
	for name, tt := range map[string]struct {
		secret, old   string
		now           time.Time
		at            string
		mux, standard string
	}{
		"both": {
			second, first, noon.Add(-time.Second), before,
			muxSigned(second, before+".body") + muxSigned(first, before+".body"),
			standardSigned("second", "e1."+before+".body") + " " + standardSigned("first", "e1."+before+".body"),
		},
		"the old one's day is over": {
			second, first, noon, after, muxSigned(second, after+".body"), standardSigned("second", "e1."+after+".body"),
		},
		"the old one is of an earlier version": {
			second, "zmlyc3Q", noon.Add(-time.Second), before,
			muxSigned(second, before+".body") + muxSigned("zmlyc3Q", before+".body"),
			standardSigned("second", "e1."+before+".body"),
		},
		"of an earlier version": {"Zmlyc3Q=", "", noon, after, muxSigned("Zmlyc3Q=", after+".body"), ""},
		"no base64":             {"whsec_Zmlyc3Q", "", noon, after, muxSigned("whsec_Zmlyc3Q", after+".body"), ""},
	} {
		w := webhook.Webhook{Secret: tt.secret, OldSecret: tt.old, OldUntil: noon}
		want := map[string]string{
			"Mux-Signature": "t=" + tt.at + tt.mux, "Webhook-Id": "e1", "Webhook-Timestamp": tt.at,
		}
		if tt.standard != "" {
			want["Webhook-Signature"] = tt.standard
		}
		if got := w.Headers("e1", []byte("body"), tt.now); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// TestNewSecret: it is written as Standard Webhooks has it, and no other is the same.
func TestNewSecret(t *testing.T) {
	t.Parallel()
	one, other := webhook.NewSecret(), webhook.NewSecret()
	text, prefixed := strings.CutPrefix(one, "whsec_")
	if key, err := base64.StdEncoding.DecodeString(text); err != nil || !prefixed || len(key) != 32 || one == other {
		t.Errorf("%d bytes, %v", len(key), err)
	}
}

// TestSucceeded: any 2xx is success and nothing else, and only 410 says that the endpoint is gone.
func TestSucceeded(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{
		0: false, 100: false, 199: false, 200: true, 204: true, 299: true, 300: false, 301: false, 304: false,
		400: false, 410: false, 429: false, 500: false, 503: false,
	} {
		a := webhook.Attempt{Status: status}
		if a.Succeeded() != want || a.Gone() != (status == 410) {
			t.Errorf("%d: succeeded %t, gone %t", status, a.Succeeded(), a.Gone())
		}
	}
}

// TestDelay grows up to an hour, and is spread.
func TestDelay(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	for attempt := 1; attempt < 100; attempt++ {
		low, high := webhook.Delay(attempt, 0), webhook.Delay(attempt, 1)
		if low < last || high > 75*time.Minute || high-low < low/2 {
			t.Errorf("attempt %d: %v to %v", attempt, low, high)
		}
		last = low
	}
	if webhook.Delay(1, 0.5) != 5*time.Second || last != 45*time.Minute {
		t.Errorf("%v to %v", webhook.Delay(1, 0.5), last)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		s := webhook.New(dbtest.Open(t, url), []string{"video.asset.ready", "video.asset.track.ready"})
		for address, want := range map[string]string{
			"": "address is required", "ftp://example.com": "absolute http or https URL",
			"https://user:pw@example.com":                      "must not hold a user name",
			"https://example.com/" + strings.Repeat("x", 2000): "at most 2000 bytes",
			"https://exa\x00mple.com":                          "U+0000",
		} {
			_, err := s.Create(t.Context(), "env", webhook.CreateInput{
				Address: address, Types: []string{"video.asset.ready", "x", "video.asset.raedy"},
			}, noon)
			text := strings.Join(fault.Messages(err), "; ")
			if !strings.Contains(text, want) || !strings.Contains(text, "event_types[1] must be a type of event") ||
				!strings.Contains(text,
					"event_types[2] is no type of event that can happen; did you mean video.asset.ready?") ||
				strings.Contains(text, "event_types[0]") {
				t.Errorf("%.40q: %s", address, text)
			}
		}
		w, err := s.Create(t.Context(), "env", webhook.CreateInput{Address: "https://example.com/a"}, noon)
		if err != nil || !strings.HasPrefix(w.Secret, "whsec_") || !w.Enabled {
			t.Fatalf("%+v, %v", w, err)
		}
		if _, err = s.Create(t.Context(), "other", webhook.CreateInput{Address: w.Address}, noon); err != nil {
			t.Errorf("the address in another environment: %v", err)
		}
		other, err := s.Create(t.Context(), "env", webhook.CreateInput{Address: "https://example.com/b"}, noon)
		if err != nil {
			t.Fatal(err)
		}
		for name, taken := range map[string]error{
			"create": second(s.Create(t.Context(), "env", webhook.CreateInput{Address: w.Address}, noon)),
			"patch":  second(s.Patch(t.Context(), "env", other.ID, webhook.PatchInput{Address: &w.Address}, noon)),
		} {
			if fault.KindOf(taken) != fault.Conflict || !strings.Contains(taken.Error(), "another webhook") {
				t.Errorf("%s with an address that is taken: %v", name, taken)
			}
		}
		if _, err = s.Patch(t.Context(), "env", w.ID, webhook.PatchInput{Types: &[]string{"video.asset.redy"}},
			noon); fault.KindOf(err) != fault.Invalid {
			t.Errorf("patch with a type that there is not: %v", err)
		}
		if _, err = s.Patch(t.Context(), "env", w.ID, webhook.PatchInput{}, noon); fault.KindOf(err) != fault.Invalid {
			t.Errorf("patch of nothing: %v", err)
		}
		rotated, err := s.RotateSecret(t.Context(), "env", w.ID, noon)
		if err != nil || rotated.Secret == w.Secret || !strings.HasPrefix(rotated.Secret, "whsec_") ||
			rotated.OldSecret != w.Secret || !rotated.OldUntil.Equal(noon.Add(24*time.Hour)) {
			t.Errorf("rotated %+v, %v", rotated, err)
		}
		for name, strange := range map[string]func(context.Context) error{
			"get":    func(ctx context.Context) error { return second(s.Get(ctx, "other", w.ID)) },
			"delete": func(ctx context.Context) error { return s.Delete(ctx, "other", w.ID) },
			"test":   func(ctx context.Context) error { return second(s.Test(ctx, "other", w.ID, noon)) },
			"list": func(ctx context.Context) error {
				return second(s.Deliveries(ctx, "other", w.ID, webhook.DeliveryQuery{}))
			},
		} {
			if err := strange(t.Context()); fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s from another environment: %v", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
