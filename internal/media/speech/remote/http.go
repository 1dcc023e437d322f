// Package remote has the engines that are servers: anything that offers OpenAI's /v1/audio/transcriptions,
// whisper.cpp's server, and the websockets of vosk and sherpa-onnx. Audio is only sent to the configured address.
//
// Their responses are bounded in size and time; what is peculiar to each server is noted beside its code.
package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"millrace/internal/media/speech"
)

const (
	// maxResponse of a server, in bytes.
	maxResponse = 8 << 20
	// maxSound that is sent at once, in bytes: servers take 25 MB.
	maxSound = 20 << 20
	// patience is how long a server may take for what it is sent: twice its length, and this.
	patience = time.Minute
	// longestPiece bounds how long what has ended keeps what is live from a server that does one thing at a time: it is
	// recognised in a few seconds.
	longestPiece = 20 * time.Second
	// promptLength is how much of a vocabulary fits into a prompt: about 180 tokens of 224.
	promptLength = 700
)

// Flavour is which server speaks HTTP.
type Flavour int

// The flavours.
const (
	OpenAI Flavour = iota
	WhisperCPP
)

// HTTPOptions of an HTTP engine.
type HTTPOptions struct {
	Name    string
	Flavour Flavour
	// without the path; OpenAI: /v1/audio/transcriptions, WhisperCPP: /inference is added unless it ends so
	URL    string
	Model  string
	Key    string
	Client *http.Client
	// AtOnce is how many requests the server is sent at once; zero is one. Those of live streams go first.
	AtOnce int
}

// HTTP is an engine that is sent files.
type HTTP struct {
	opt  HTTPOptions
	gate *gate
}

// NewHTTP returns an engine; nothing is sent yet.
func NewHTTP(o HTTPOptions) *HTTP {
	o.URL = strings.TrimSuffix(o.URL, "/")
	return &HTTP{o, newGate(o.AtOnce)}
}

// Name implements speech.Engine.
func (h *HTTP) Name() string { return h.opt.Name }

func (h *HTTP) endpoint() string {
	path := "/v1/audio/transcriptions"
	if h.opt.Flavour == WhisperCPP {
		path = "/inference"
	}
	switch {
	case strings.HasSuffix(h.opt.URL, path), strings.HasSuffix(h.opt.URL, "/transcriptions"):
		return h.opt.URL
	case strings.HasSuffix(h.opt.URL, "/v1"):
		return h.opt.URL + strings.TrimPrefix(path, "/v1")
	}
	return h.opt.URL + path
}

// Abilities implements speech.Engine.
func (h *HTTP) Abilities() (speech.Abilities, error) {
	return speech.Abilities{
		WordTimes:    true,
		Punctuation:  true,
		Detects:      true,
		Bias:         speech.PromptBias,
		Languages:    []string{speech.AnyLanguage},
		LongestPiece: longestPiece,
	}, nil
}

// Open implements speech.Engine.
func (h *HTTP) Open(ctx context.Context, c speech.Config) (speech.Stream, error) {
	return speech.Windowed(ctx, live{h}, c), nil
}

// live is the engine as live streams have it: what they send goes first.
type live struct{ *HTTP }

// Transcribe implements speech.Engine.
func (l live) Transcribe(ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error) error {
	return l.transcribe(ctx, pcm, c, emit, true)
}

// errTooLong says that more sound came than a server takes.
var errTooLong = errors.New("the sound is longer than the server takes at once")

// Transcribe implements speech.Engine. It waits for the server to have nothing else to do.
func (h *HTTP) Transcribe(ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error) error {
	return h.transcribe(ctx, pcm, c, emit, false)
}

func (h *HTTP) transcribe(
	ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error, first bool,
) error {
	data, err := io.ReadAll(io.LimitReader(pcm, maxSound+1))
	if err != nil {
		return fmt.Errorf("read sound: %w", err)
	}
	if len(data) > maxSound {
		return errTooLong
	}
	length := speech.Duration(int64(len(data) / 2))
	release, err := h.gate.acquire(ctx, first)
	if err != nil {
		return err
	}
	defer release()
	if err = c.StillWanted(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience+2*length)
	defer cancel()
	response, err := h.send(ctx, data, c)
	if err != nil {
		return err
	}
	r, err := parse(response, length)
	if err != nil {
		return err
	}
	return emit(r)
}

// send posts sound as a WAV file.
func (h *HTTP) send(ctx context.Context, pcm []byte, c speech.Config) ([]byte, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "sound.wav")
	if err == nil {
		_, err = file.Write(wav(pcm))
	}
	fields := [][2]string{{"response_format", "verbose_json"}, {"temperature", "0"}}
	if h.opt.Flavour == OpenAI { // word times come only by the name with brackets
		fields = append(fields, [2]string{"model", h.opt.Model}, [2]string{
			"timestamp_granularities[]", "word",
		}, [2]string{"timestamp_granularities[]", "segment"})
	}
	if base, _, _ := strings.Cut(c.Language, "-"); base != "" && base != "auto" {
		fields = append(fields, [2]string{"language", base})
	} else if h.opt.Flavour == WhisperCPP { // it takes a missing one for English
		fields = append(fields, [2]string{"language", "auto"})
	}
	if h.opt.Flavour == WhisperCPP {
		// It wraps segments after 60 characters, within words unless it is told not to. The probabilities of all
		// languages cost it as much as the recognition of a short piece.
		detects := c.Language == "auto" || c.Language == ""
		fields = append(fields,
			[2]string{"split_on_word", "true"}, [2]string{"no_language_probabilities", strconv.FormatBool(!detects)})
	}
	if p := prompt(c.Phrases); p != "" {
		fields = append(fields, [2]string{"prompt", p})
	}
	for _, f := range fields {
		err = errors.Join(err, form.WriteField(f[0], f[1]))
	}
	if err = errors.Join(err, form.Close()); err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.endpoint(), &body)
	if err != nil {
		return nil, fmt.Errorf("ask the server: %w", err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	if h.opt.Key != "" {
		req.Header.Set("Authorization", "Bearer "+h.opt.Key)
	}
	return h.do(req)
}

// prompt is as many phrases as a prompt holds, the most important first.
func prompt(phrases []string) string {
	out := ""
	for _, p := range phrases {
		if len(out)+len(p)+2 > promptLength {
			break
		}
		if out != "" {
			out += ", "
		}
		out += p
	}
	return out
}

// wav is samples as a file.
func wav(pcm []byte) []byte {
	const head = 44
	out := make([]byte, 0, head+len(pcm))
	out = append(out, "RIFF"...)
	out = binary.LittleEndian.AppendUint32(out, uint32(head-8+len(pcm)))
	out = append(out, "WAVEfmt "...)
	out = binary.LittleEndian.AppendUint32(out, 16)
	out = binary.LittleEndian.AppendUint16(out, 1) // PCM
	out = binary.LittleEndian.AppendUint16(out, 1) // channel
	out = binary.LittleEndian.AppendUint32(out, speech.SampleRate)
	out = binary.LittleEndian.AppendUint32(out, 2*speech.SampleRate)
	out = binary.LittleEndian.AppendUint16(out, 2)
	out = binary.LittleEndian.AppendUint16(out, 16)
	out = append(out, "data"...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(pcm)))
	return append(out, pcm...)
}

// isJSON reports whether a response is an object at all: a page of a proxy is not.
func isJSON(data []byte) bool {
	var v map[string]json.RawMessage
	return json.Unmarshal(data, &v) == nil
}
