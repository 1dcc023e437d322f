// Makes an endpoint, takes what it is sent, and has the Go library of Standard Webhooks check the signatures; ends with
// status 1 at the first surprise. Mux's Go library has nothing for webhooks.
// Usage: go run ./webhooks BASE_URL TOKEN_ID TOKEN_SECRET
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const path = "/system/v1/webhooks"

// hook is what the API says of an endpoint.
type hook struct {
	ID     string `json:"id"`
	Secret string `json:"signing_secret"`
}

// delivery is one request to the endpoint.
type delivery struct {
	header http.Header
	body   []byte
}

func main() {
	if len(os.Args) != 4 {
		fatal(errors.New("usage: go run ./webhooks BASE_URL TOKEN_ID TOKEN_SECRET"))
	}
	if err := run(caller{os.Args[1], os.Args[2], os.Args[3]}); err != nil {
		fatal(err)
	}
	fmt.Println("webhooks: everything as expected")
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func run(api caller) error {
	deliveries, statuses := make(chan delivery), make(chan int, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			fatal(err)
		}
		deliveries <- delivery{r.Header, body}
		w.WriteHeader(<-statuses)
	}))
	defer receiver.Close()
	var made, rotated hook
	var event struct {
		ID string `json:"id"`
	}
	if err := api.post(path, fmt.Sprintf(`{"address":%q}`, receiver.URL), &made); err != nil {
		return err
	}
	if err := api.post(path+"/"+made.ID+"/test", "", &event); err != nil {
		return err
	}
	first := <-deliveries
	statuses <- http.StatusServiceUnavailable
	second := <-deliveries
	statuses <- http.StatusNoContent
	for _, d := range []delivery{first, second} {
		if err := errors.Join(genuine(d, made.Secret), forged(d)); err != nil {
			return err
		}
		if got := d.header.Get(standardwebhooks.HeaderWebhookID); got != event.ID {
			return fmt.Errorf("webhook-id is %s, want %s", got, event.ID)
		}
	}
	if string(first.body) == string(second.body) {
		return errors.New("the second attempt does not tell of the first")
	}
	if err := api.post(path+"/"+made.ID+"/rotate-secret", "", &rotated); err != nil {
		return err
	}
	if err := api.post(path+"/"+made.ID+"/test", "", &event); err != nil {
		return err
	}
	both := <-deliveries
	statuses <- http.StatusNoContent
	return errors.Join(genuine(both, made.Secret), genuine(both, rotated.Secret), forged(both))
}

// genuine fails unless the library accepts a delivery.
func genuine(d delivery, secret string) error {
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return w.Verify(d.body, d.header)
}

// forged fails unless the library refuses the delivery by another secret.
func forged(d delivery) error {
	err := genuine(d, "whsec_"+strings.Repeat("A", 44))
	if !errors.Is(err, standardwebhooks.ErrNoMatchingSignature) {
		return fmt.Errorf("by another secret: %v", err)
	}
	return nil
}

// caller calls the API.
type caller struct{ base, token, secret string }

// post sends a body and decodes the data of the response.
func (c caller) post(path, body string, data any) error {
	r, err := http.NewRequest(http.MethodPost, c.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.SetBasicAuth(c.token, c.secret)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusCreated {
		return fmt.Errorf("POST %s: %s: %s (%v)", path, response.Status, text, err)
	}
	return json.Unmarshal(text, &struct{ Data any }{data})
}
