package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

func sign(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// TestSignature: one for each secret that is valid; the old one is for a day.
func TestSignature(t *testing.T) {
	t.Parallel()
	w := webhook.Webhook{Secret: "new", OldSecret: "old", OldUntil: noon}
	before, after := "t=1767268799", "t=1767268800"
	if got, want := w.Signature([]byte("body"), noon.Add(-time.Second)), before+","+sign("new", before[2:]+".body")+","+sign("old", before[2:]+".body"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := w.Signature([]byte("body"), noon), after+","+sign("new", after[2:]+".body"); got != want {
		t.Errorf("got %s, want %s", got, want)
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
			"": "address is required", "ftp://example.com": "absolute http or https URL", "https://user:pw@example.com": "must not hold a user name",
			"https://example.com/" + strings.Repeat("x", 2000): "at most 2000 bytes", "https://exa\x00mple.com": "U+0000",
		} {
			_, err := s.Create(t.Context(), "env", webhook.CreateInput{Address: address, Types: []string{"video.asset.ready", "x", "video.asset.raedy"}}, noon)
			text := strings.Join(fault.Messages(err), "; ")
			if !strings.Contains(text, want) || !strings.Contains(text, "event_types[1] must be a type of event") ||
				!strings.Contains(text, "event_types[2] is no type of event that can happen; did you mean video.asset.ready?") || strings.Contains(text, "event_types[0]") {
				t.Errorf("%.40q: %s", address, text)
			}
		}
		w, err := s.Create(t.Context(), "env", webhook.CreateInput{Address: "https://example.com/a"}, noon)
		if err != nil || len(w.Secret) < 32 || !w.Enabled {
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
		if _, err = s.Patch(t.Context(), "env", w.ID, webhook.PatchInput{Types: &[]string{"video.asset.redy"}}, noon); fault.KindOf(err) != fault.Invalid {
			t.Errorf("patch with a type that there is not: %v", err)
		}
		if _, err = s.Patch(t.Context(), "env", w.ID, webhook.PatchInput{}, noon); fault.KindOf(err) != fault.Invalid {
			t.Errorf("patch of nothing: %v", err)
		}
		rotated, err := s.RotateSecret(t.Context(), "env", w.ID, noon)
		if err != nil || rotated.Secret == w.Secret || rotated.OldSecret != w.Secret || !rotated.OldUntil.Equal(noon.Add(24*time.Hour)) {
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
