// Calls every endpoint that the Go client library has and the server serves, and ends with status 1 at the first
// surprise. Usage: go run . BASE_URL TOKEN_ID TOKEN_SECRET
//
// The library is used as it is published. It has no setting for the base URL, only http.DefaultTransport, which it
// takes like every program: there its host is replaced. The server handles POST /test/… by doing what an encoder or a
// worker would do.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	mux "github.com/muxinc/mux-go/v6"
)

type run struct {
	*mux.APIClient
	base   *url.URL
	server *elsewhere
}

func main() {
	if len(os.Args) != 4 {
		fatal("usage: go run . BASE_URL TOKEN_ID TOKEN_SECRET")
	}
	base, err := url.Parse(os.Args[1])
	if err != nil {
		fatal(err)
	}
	there := &elsewhere{base: base, next: http.DefaultTransport}
	http.DefaultTransport = there
	config := mux.NewConfiguration(mux.WithBasicAuth(os.Args[2], os.Args[3]), mux.WithTimeout(time.Minute))
	r := run{mux.NewAPIClient(config), base, there}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"asset", r.asset},
		{"asset: what was sent is what is there", r.assetFields},
		{"asset: updates change what they name", r.assetUpdate},
		{"asset: playback IDs", r.assetPlaybackIDs},
		{"asset: tracks", r.tracks},
		{"asset: files to download", r.files},
		{"asset: bad requests", r.assetRefused},
		{"live stream", r.stream},
		{"live stream: updates change what they name", r.streamUpdate},
		{"live stream: keys, playback IDs, states", r.streamParts},
		{"live stream: simulcast targets", r.targets},
		{"live stream: a broadcast", r.broadcast},
		{"delivery usage", r.usage},
		{"uploads", r.uploads},
		{"playback restrictions", r.restrictions},
		{"signing keys, and tokens that they sign", r.signingKeys},
		{"DRM configurations", r.drm},
		{"transcription vocabularies", r.vocabularies},
		{"errors have their classes", r.trouble},
		{"every operation is there, or says why not", r.operations},
	} {
		if err := step.do(); err != nil {
			fatal("FAIL ", step.name, ": ", err)
		}
		fmt.Println("ok", step.name)
	}
}

func fatal(what ...any) {
	fmt.Fprintln(os.Stderr, fmt.Sprint(what...))
	os.Exit(1)
}

// elsewhere sends the library's requests to the server that is tested.
type elsewhere struct {
	base *url.URL
	next http.RoundTripper
	said []byte // the body of the last refusal, which the library's errors keep to themselves
}

func (e *elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = e.base.Scheme, e.base.Host, e.base.Host
	response, err := e.next.RoundTrip(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	if e.said, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(e.said))
	return response, nil
}

// world has the server do what happens outside of the API.
func (r run) world(path string) error {
	response, err := http.Post(r.base.String()+path, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("POST %s: %s: %s", path, response.Status, text)
	}
	return nil
}

// want fails unless got is right; what names it.
func want[T comparable](what string, got, right T) error {
	if got != right {
		return fmt.Errorf("%s is %v, want %v", what, got, right)
	}
	return nil
}

// refused wants err to be the library's E.
func refused[E error](what string, err error) error {
	if _, ok := errors.AsType[E](err); !ok {
		return fmt.Errorf("%s: %T (%v), want %T", what, err, err, *new(E))
	}
	return nil
}
