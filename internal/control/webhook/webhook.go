// Package webhook is the endpoint to which events are sent, and the delivery of one event to it: types, rules and
// service. It must never know what events are about, SQL, HTTP or the clock (`now` is an argument).
package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/id"
)

// Webhook is an endpoint of an environment.
type Webhook struct {
	ID           id.Webhook
	Environment  id.Environment
	Address      string // http or https URL; unique in its environment; it may hold a secret
	Enabled      bool
	Types        []string // of the events that are sent; none: all
	Secret       string   // signs; shown when it is made, and never again
	OldSecret    string   // signs too until OldUntil
	OldUntil     time.Time
	FailingSince time.Time // since when no attempt has succeeded; zero: the last one did
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Revision     int64 // counts writes; the store compares-and-sets on it
}

// The events of an endpoint.
const (
	EventTest     = "system.webhook.test"     // asked for by Test, and sent to that endpoint alone
	EventDisabled = "system.webhook.disabled" // it has failed for Patience, or responded with 410

	// EventObject is the kind of object of these events.
	EventObject = "webhook"
)

// Bounds of deliveries.
const (
	// Patience is how long an event is tried to be delivered, and for how long an endpoint may fail until it is
	// disabled.
	Patience = 24 * time.Hour
	// MaxAttempts is how often an event is sent at most.
	MaxAttempts = 36
	// Timeout is how long an endpoint may take to respond.
	Timeout = 5 * time.Second
	// KeptBody is how much of a response is kept, in bytes.
	KeptBody = 1 << 10
	// KeptHeaders is how many headers of a response are kept.
	KeptHeaders = 32
	// KeptHeaderBytes is how long the names and values of these headers are together.
	KeptHeaderBytes = 2 << 10

	// FirstDelay is how long after the first failed attempt the second one is made, with a spread of a quarter.
	FirstDelay = 5 * time.Second

	gone = 410 // RFC 9110, 15.5.11; Standard Webhooks: the sender disables the endpoint

	longestDelay = time.Hour
)

// Wants reports whether an event is sent to the endpoint.
func (w Webhook) Wants(e event.Event) bool {
	if e.Environment != w.Environment {
		return false
	}
	if e.Type == EventTest {
		return e.ObjectID == string(w.ID)
	}
	return len(w.Types) == 0 || slices.Contains(w.Types, e.Type)
}

const (
	secretPrefix = "whsec_"
	secretBytes  = 32 // Standard Webhooks allows 24 to 64
)

// NewSecret returns a fresh random secret as Standard Webhooks writes it: the prefix whsec_, then the key in base64.
func NewSecret() string {
	var key [secretBytes]byte
	_, _ = rand.Read(key[:]) // crypto/rand.Read never fails (it aborts the program instead)
	return secretPrefix + base64.StdEncoding.EncodeToString(key[:])
}

// standardKey is the key of Standard Webhooks in a secret. Secrets that earlier versions made hold none.
func standardKey(secret string) (key []byte, some bool) {
	text, some := strings.CutPrefix(secret, secretPrefix)
	if !some {
		return nil, false
	}
	key, err := base64.StdEncoding.DecodeString(text)
	return key, err == nil
}

// Headers are those that prove to the endpoint where body is from, which is the event with this ID, sent now.
//
// Mux-Signature is the time and the hexadecimal HMAC-SHA256 of time, full stop and body, once for each secret that is
// valid; its key is the secret as it is shown. Webhook-Id, Webhook-Timestamp and Webhook-Signature are those of
// Standard Webhooks; the key is what the secret has in base64, and without such a secret there is no Webhook-Signature.
func (w Webhook) Headers(event string, body []byte, now time.Time) map[string]string {
	t := strconv.FormatInt(now.Unix(), 10)
	mux, standard := "t="+t, []string(nil)
	for _, secret := range w.secrets(now) {
		mux += ",v1=" + hex.EncodeToString(mac([]byte(secret), t+".", body))
		if key, some := standardKey(secret); some {
			sum := mac(key, event+"."+t+".", body)
			standard = append(standard, "v1,"+base64.StdEncoding.EncodeToString(sum))
		}
	}
	all := map[string]string{"Mux-Signature": mux, "Webhook-Id": event, "Webhook-Timestamp": t}
	if len(standard) > 0 {
		all["Webhook-Signature"] = strings.Join(standard, " ")
	}
	return all
}

// mac is the HMAC-SHA256 of a prefix and a body.
func mac(key []byte, prefix string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(prefix))
	h.Write(body)
	return h.Sum(nil)
}

func (w Webhook) secrets(now time.Time) []string {
	if w.OldSecret != "" && now.Before(w.OldUntil) {
		return []string{w.Secret, w.OldSecret}
	}
	return []string{w.Secret}
}

// State is what has become of a delivery.
type State string

// The states.
const (
	Waiting   State = "waiting" // it is sent, or sent again, or waits for an earlier event of its resource
	Delivered State = "delivered"
	Failed    State = "failed"  // it is not tried any more
	Skipped   State = "skipped" // its owner does not want it to be delivered
)

// Delivery is one event for one endpoint.
type Delivery struct {
	Sequence  int64
	EventID   string
	EventType string
	Resource  string
	State     State
	Attempts  []Attempt
	NextAt    time.Time    // not before; zero: at once
	Earlier   EarlierEvent // comes first, where it waits; zero: there is none
	Reason    Reason       // why it waits; empty: it does not
}

// Attempt is one request to an endpoint.
type Attempt struct {
	At      time.Time `json:"at"`
	Address string    `json:"address"`
	Status  int       `json:"status,omitempty"` // of the response; 0: there was none
	// of the response, bounded; values of one name with commas between
	Headers  map[string]string `json:"headers,omitempty"`
	Body     string            `json:"body,omitempty"`  // its first KiB
	Error    string            `json:"error,omitempty"` // why there was no response, or no attempt
	Duration time.Duration     `json:"duration,omitempty"`

	// Given by the store when it is read.
	Webhook id.Webhook `json:"-"`
	Number  int        `json:"-"` // counts the attempts to send the event to the webhook, from 1
}

// Succeeded reports whether the endpoint has taken the event.
func (a Attempt) Succeeded() bool { return a.Status >= 200 && a.Status <= 299 }

// Gone reports whether the endpoint wants no more events.
func (a Attempt) Gone() bool { return a.Status == gone }

// Delay is how long after a failed attempt the next one is made, counted from 1. random is from 0 to 1: the delay is up
// to a quarter shorter or longer, so that those who failed together do not come again together.
func Delay(attempt int, random float64) time.Duration {
	d := longestDelay
	if attempt < 11 {
		d = min(FirstDelay<<(attempt-1), longestDelay)
	}
	return d*3/4 + time.Duration(random*float64(d/2))
}
