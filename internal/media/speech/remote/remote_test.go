package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"millrace/internal/media/speech"
)

// TestParse: what servers send, as it was recorded of each or stands in its sources.
func TestParse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want, language string }{
		"OpenAI": {
			`{"task":"transcribe","language":"english","duration":2.5,"text":"Hello, world.","words":[{"word":"Hello,","start":0.1,"end":0.5},{"word":"world.","start":0.6,"end":1.2}],
			"segments":[{"id":0,"start":0,"end":2.5,"text":" Hello, world.","avg_logprob":-0.2,"no_speech_prob":0.01}]}`, "Hello,@100-500 world.@600-1200", "en",
		},
		"vLLM: a length that is text, and no words": {
			`{"duration":"2.0","language":"en","text":"Hello world","words":null,"segments":[{"start":0,"end":2,"text":"Hello world"}]}`, "Hello@0-1000 world@1000-2000", "en",
		},
		"LocalAI: nanoseconds": {
			`{"text":"Hi there","segments":[{"id":0,"start":500000000,"end":1500000000,"text":"Hi there"}]}`,
			"Hi@500-785 there@785-1500", "",
		},
		"whisper.cpp: tokens": {
			`{"task":"transcribe","language":"german","duration":2,"detected_language_probability":0.93,"text":" Guten Morgen","segments":[{"start":0,"end":2,"text":" Guten Morgen","words":[
			{"word":" Gut","start":0.1,"end":0.3,"probability":0.9},{"word":"en","start":0.3,"end":0.5,"probability":0.8},{"word":" Morgen","start":0.6,"end":1,"probability":0.9},
			{"word":".","start":1,"end":1.1,"probability":0.9}]}]}`, "Guten@100-500 Morgen.@600-1100", "de",
		},
		"descriptions of sounds": {
			`{"text":"[Music] Hello (he said) there [laughter]","words":[
			{"word":"[Music]","start":0,"end":0.2},{"word":"Hello","start":0.4,"end":0.6},
			{"word":"(he","start":0.6,"end":0.8},{"word":"said)","start":0.8,"end":1},
			{"word":"there","start":1,"end":1.2},{"word":"[loud","start":1.2,"end":1.4},
			{"word":"laughter]","start":1.4,"end":1.6},{"word":"[open","start":2,"end":2.2}]}`,
			"Hello@400-600 (he@600-800 said)@800-1000 there@1000-1200 [open@2000-2200", "",
		},
		"nothing but a description": {`{"text":" (upbeat music)\n"}`, "", ""},
		"Chinese: no spaces": {
			`{"language":"chinese","segments":[{"start":0,"end":1,"words":[
			{"word":" 你","start":0,"end":0.4},{"word":"好","start":0.4,"end":1}]}]}`,
			"你@0-400 好@400-1000", "zh",
		},
		"a language that few speak": {`{"text":"a","language":"haitian creole"}`, "a@0-2500", "ht"},
		"a language of its own":     {`{"text":"a","language":"jw"}`, "a@0-2500", "jv"},
		"a language that is none":   {`{"text":"a","language":"<b>"}`, "a@0-2500", ""},
		"music": {
			`{"text":"Thank you.","segments":[{"start":0,"end":2,"text":"Thank you.","avg_logprob":-1.4,"no_speech_prob":0.9}]}`, "", "",
		},
		"text alone": {`{"text":"one two"}`, "one@0-1250 two@1250-2500", ""},
		"times that are none": {
			`{"text":"a","words":[{"word":"a","start":-5,"end":1e300},{"word":"b","start":null,"end":"x"}]}`,
			"a@0-2500 b@0-0", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := parse([]byte(tt.body), 2500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(tt.body, "detected_language_probability"); said != (r.Confidence > 0) {
				t.Errorf("sure by %f", r.Confidence)
			}
			if got := shown(r.Words); got != tt.want || r.Language != tt.language {
				t.Errorf("got %q in %q, want %q in %q", got, r.Language, tt.want, tt.language)
			}
		})
	}
	for _, bad := range []string{"", "<html>", "[]", `"text"`, `{"segments":7}`} {
		if _, err := parse([]byte(bad), time.Second); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"text":"a","words":[{"word":" a","start":1,"end":"2"}],"segments":[{"text":"b","start":1e9}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse(data, time.Second)
		for _, w := range r.Words {
			if err != nil || w.Start < 0 || w.End > time.Second || w.End < w.Start {
				t.Errorf("%+v", w)
			}
		}
		_, _ = readSherpa(data)
		_, _ = (&Socket{}).read(data)
	})
}

func shown(words []speech.Word) string {
	var out []string
	for _, w := range words {
		out = append(out, fmt.Sprintf("%s@%d-%d", w.Text, w.Start.Milliseconds(), w.End.Milliseconds()))
	}
	return strings.Join(out, " ")
}

func words(t *testing.T, e speech.Engine, c speech.Config) (string, error) {
	t.Helper()
	var all []speech.Word
	err := e.Transcribe(t.Context(), bytes.NewReader(make([]byte, 2*speech.SampleRate)), c, func(
		r speech.Result,
	) error {
		all = append(all, r.Words...)
		return nil
	})
	return shown(all), err
}

// TestHTTP: what is asked for, and what is said where a server is not ready, has not the model, or refuses the key.
func TestHTTP(t *testing.T) {
	t.Parallel()
	var asked http.Request
	var sound []byte
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err == nil {
			if f, _, err := r.FormFile("file"); err == nil {
				sound, _ = io.ReadAll(f)
			}
		}
		asked = *r
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"text":"yes","words":[{"word":"yes","start":0,"end":1}]}`)
	}))
	defer server.Close()
	e := NewHTTP(HTTPOptions{Name: "openai", URL: server.URL + "/", Model: "m", Key: "sk-1", Client: server.Client()})
	got, err := words(t, e, speech.Config{
		Language: "en-US", Phrases: []string{"Zorvex", strings.Repeat("x", 600), strings.Repeat("y", 600)},
	})
	if err != nil || got != "yes@0-1000" {
		t.Fatalf("%q, %v", got, err)
	}
	if asked.URL.Path != "/v1/audio/transcriptions" || asked.Header.Get("Authorization") != "Bearer sk-1" ||
		asked.FormValue("language") != "en" ||
		asked.FormValue("model") != "m" || asked.FormValue("response_format") != "verbose_json" ||
		len(asked.Form["timestamp_granularities[]"]) != 2 ||
		!strings.HasPrefix(asked.FormValue("prompt"), "Zorvex, x") || strings.Contains(asked.FormValue("prompt"), "y") {
		t.Errorf("asked %s with %v", asked.URL, asked.Form)
	}
	if len(sound) != 44+2*speech.SampleRate || string(sound[:4]) != "RIFF" ||
		binary.LittleEndian.Uint32(sound[24:]) != speech.SampleRate {
		t.Errorf("%d bytes of sound", len(sound))
	}
	whisper := NewHTTP(HTTPOptions{Name: "whisper", Flavour: WhisperCPP, URL: server.URL, Client: server.Client()})
	if _, err = words(t, whisper, speech.Config{Language: "auto"}); err != nil || asked.URL.Path != "/inference" ||
		asked.FormValue("language") != "auto" {
		t.Errorf("asked %s for %q, %v", asked.URL, asked.FormValue("language"), err)
	}
	if asked.FormValue("no_language_probabilities") != "false" || asked.FormValue("split_on_word") != "true" {
		t.Errorf("to find out a language: asked with %v", asked.Form)
	}
	_, err = words(t, whisper, speech.Config{Language: "de"})
	if err != nil || asked.FormValue("no_language_probabilities") != "true" {
		t.Errorf("in a language: asked with %v, %v", asked.Form, err)
	}
	can, _ := whisper.Abilities()
	if bad := whisper.Probe(t.Context()); bad != nil || asked.URL.Path != "/health" || !can.Speaks("de") ||
		!can.Speaks("auto") {
		t.Errorf("probed %s, %v", asked.URL, bad)
	}
	for code, want := range map[int]string{
		http.StatusServiceUnavailable: "loading its model (503)", http.StatusNotFound: "not the model m",
		http.StatusUnauthorized: "refuses the key", http.StatusInternalServerError: "status 500",
	} {
		status = code
		if _, err = words(t, e, speech.Config{}); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "sk-1") {
			t.Errorf("%d: %v", code, err)
		}
	}
	server.Close()
	if err = e.Probe(t.Context()); err == nil {
		t.Error("a server that is away")
	}
}

// TestSockets: a server that speaks as vosk does, or as sherpa-onnx.
func TestSockets(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dialect    Dialect
		end        string
		perSample  int
		replies    []string
		closesWith string
	}{
		"vosk": {
			Vosk, `{"eof" : 1}`, 2,
			[]string{
				`{"partial" : "good"}`,
				`{"result":[{"conf":1.0,"end":0.5,"start":0.1,"word":"good"},{"conf":0.9,"end":0.9,"start":0.5,"word":"morning"}],"text":"good morning"}`,
			},
			"",
		},
		"sherpa": {
			Sherpa, "Done", 4,
			[]string{
				`{"text":" GOOD","tokens":[" GO","OD"],"timestamps":[0.1,0.3],"segment":0,"start_time":0,"is_final":false,"is_eof":false}`,
				`{"text":" good morning","tokens":[" go","od"," morn","ing"],"timestamps":[0.1,0.3,0.5,0.7],"segment":0,"start_time":0,"is_final":true,"is_eof":false}`,
			},
			"Done!",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := websocket.Accept(w, r, nil)
				if err != nil {
					return
				}
				defer func() { _ = c.CloseNow() }()
				bytes := 0
				for {
					kind, data, err := c.Read(r.Context())
					if err != nil {
						return
					}
					if kind == websocket.MessageBinary {
						bytes += len(data)
						continue
					}
					if string(data) == tt.end {
						break
					}
				}
				if bytes != tt.perSample*speech.SampleRate {
					t.Errorf("%d bytes came", bytes)
				}
				for _, reply := range tt.replies {
					_ = c.Write(r.Context(), websocket.MessageText, []byte(reply))
				}
				if tt.closesWith != "" {
					_ = c.Write(r.Context(), websocket.MessageText, []byte(tt.closesWith))
				}
				_ = c.Close(websocket.StatusNormalClosure, "")
			}))
			defer server.Close()
			e := NewSocket(SocketOptions{
				Name: name, Dialect: tt.dialect, URL: "ws" + strings.TrimPrefix(server.URL, "http"),
				Client: server.Client(),
			})
			got, err := words(t, e, speech.Config{})
			if err != nil || !strings.HasPrefix(got, "good@100-500 morning@500-900") {
				t.Errorf("%q, %v", got, err)
			}
			if err = e.Probe(t.Context()); err != nil {
				t.Error(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			s, err := e.Open(ctx, speech.Config{})
			if err != nil {
				t.Fatal(err)
			}
			s.Write(3*time.Second, make([]int16, speech.SampleRate))
			s.End()
			r, ok := <-s.Results()
			if !ok || !strings.HasPrefix(shown(r.Words), "good@3100-3500") {
				t.Errorf("live: %q", shown(r.Words))
			}
			cancel()
			s.Close()
		})
	}
}
