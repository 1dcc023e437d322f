package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/speech"
)

// busy is a server that responds when it is told to. It notes how much sound each request has, in seconds.
type busy struct {
	mu      sync.Mutex
	seconds []int64
	respond chan struct{}
}

func (b *busy) RoundTrip(r *http.Request) (*http.Response, error) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.seconds = append(b.seconds, n/(2*speech.SampleRate))
	b.mu.Unlock()
	select {
	case <-b.respond:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	return &http.Response{
		StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"text":""}`)), Request: r,
	}, nil
}

func (b *busy) asked() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seconds
}

// TestLiveGoesFirst: a server is sent so much at once and no more, and of what waits that is first which is live.
func TestLiveGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &busy{respond: make(chan struct{})}
		e := NewHTTP(HTTPOptions{
			Name: "openai", URL: "http://server", Client: &http.Client{Transport: server}, AtOnce: 2,
		})
		var wait sync.WaitGroup
		recorded := func(ctx context.Context, seconds int) {
			wait.Go(func() {
				_ = e.Transcribe(ctx, bytes.NewReader(make([]byte, 2*seconds*speech.SampleRate)), speech.Config{}, func(
					speech.Result,
				) error {
					return nil
				})
			})
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		recorded(t.Context(), 20)
		recorded(t.Context(), 19)
		recorded(gone, 18)
		recorded(t.Context(), 17)
		if got := server.asked(); len(got) != 2 {
			t.Fatalf("sent at once: %v", got)
		}
		stream, err := e.Open(t.Context(), speech.Config{})
		if err != nil {
			t.Fatal(err)
		}
		loud := make([]int16, 4*speech.SampleRate)
		for i := range loud[:3*speech.SampleRate] {
			loud[i] = 5000
		}
		stream.Write(0, loud)
		leave() // who does not wait any more is in nobody's way
		synctest.Wait()
		for i, want := range []int64{3, 17} {
			server.respond <- struct{}{}
			synctest.Wait()
			if got := server.asked(); len(got) != 3+i || got[2+i] != want {
				t.Fatalf("response %d: sent %v, want %d", i, got, want)
			}
		}
		stream.End()
		close(server.respond)
		wait.Wait()
		for r := range stream.Results() {
			if r.Until < 3*time.Second {
				t.Errorf("known up to %s", r.Until)
			}
		}
		if e.gate.taken != 0 {
			t.Errorf("%d places are taken in the end", e.gate.taken)
		}
	})
}

// TestStillWanted: what nobody wants any more once there is a place is not sent.
func TestStillWanted(t *testing.T) {
	t.Parallel()
	gone := errors.New("deleted")
	server := roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("the server is asked")
		return nil, gone
	})
	client := &http.Client{Transport: server}
	for _, e := range []speech.Engine{
		NewHTTP(HTTPOptions{URL: "http://server", Client: client}),
		NewSocket(SocketOptions{URL: "ws://server", Client: client}),
	} {
		c := speech.Config{Wanted: func(context.Context) error { return gone }}
		if err := e.Transcribe(t.Context(), bytes.NewReader(make([]byte, 3200)), c, nil); !errors.Is(err, gone) {
			t.Errorf("%T: %v", e, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (rt roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }
