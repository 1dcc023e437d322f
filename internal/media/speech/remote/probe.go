package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"millrace/internal/media/speech"
)

// Probe implements speech.Engine: whisper.cpp says whether it is ready, others recognise a moment of silence.
func (h *HTTP) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if h.opt.Flavour == WhisperCPP {
		return h.health(ctx)
	}
	_, err := h.send(ctx, make([]byte, speech.SampleRate), speech.Config{Language: "en"}) // half a second
	return err
}

// tried is the sound that Try sends, in bytes: whisper.cpp's server looks at nothing that is shorter than a second.
const tried = 2 * 2 * speech.SampleRate

// Try has the server recognise two seconds of silence, as it would speech, and reads its answer. The error says whether
// it can't be reached, refuses, answers something else, or is busy: then it is speech.ErrBusy. It may take as long as
// what the server does at the moment.
func (h *HTTP) Try(ctx context.Context) error {
	if h.opt.Flavour == WhisperCPP {
		if err := h.health(ctx); err != nil {
			return err
		}
	}
	answer, err := h.send(ctx, make([]byte, tried), speech.Config{Language: "en"})
	if h.opt.Flavour == WhisperCPP && errors.Is(err, context.DeadlineExceeded) { // it has answered just now
		return fmt.Errorf("%w: it runs, and has not recognised 2 s of sound in time. It does one thing at a time: "+
			"something else was before, or its model is too large for its machine", speech.ErrBusy)
	}
	if err != nil {
		return err
	}
	_, err = parse(answer, 2*time.Second)
	return err
}

// health asks whisper.cpp's server whether it has loaded its model.
func (h *HTTP) health(ctx context.Context) error {
	base := h.endpoint()
	for _, path := range []string{"/inference", "/v1/audio/transcriptions"} {
		base = strings.TrimSuffix(base, path)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/health", http.NoBody)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	_, err = h.do(req)
	return err
}

// do sends a request. What the server says of an error is told to nobody: it may repeat the key.
func (h *HTTP) do(req *http.Request) ([]byte, error) {
	resp, err := h.opt.Client.Do(req) //nolint:gosec // the address is of the settings, and the client is fetch's
	if err != nil {
		return nil, unreached(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		return nil, fmt.Errorf("%w, or is still loading its model (503)", speech.ErrBusy)
	case resp.StatusCode == http.StatusNotFound && h.opt.Flavour == OpenAI:
		return nil, fmt.Errorf("the server has no such path, or not the model %s (404)", h.opt.Model)
	case resp.StatusCode == http.StatusNotFound:
		return nil, errors.New("the server has no such path (404): is it whisper.cpp's, and is its --inference-path " +
			"/inference or /v1/audio/transcriptions, as the URL says?")
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("the server refuses the key (%d): set MILLRACE_SPEECH_KEY", resp.StatusCode)
	case resp.StatusCode/100 != 2:
		return nil, fmt.Errorf("the server responds with status %d", resp.StatusCode)
	case err != nil:
		return nil, unreached(err)
	case len(data) > maxResponse:
		return nil, errors.New("the server's response is too long")
	}
	return data, nil
}
