// Package worker is the speech recognition process: PocketSphinx, a system library that is loaded at run time, behind
// the pipes of package wire. It is a separate process because the library may crash, and because loading it needs a
// dynamically linked program.
//
// It reads its model and nothing else, writes no file and knows nothing of the service. It starts no goroutine.
package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"millrace/internal/media/speech/wire"
)

// Main recognises what comes in until that ends, and returns the exit status.
func Main(in io.Reader, out, errs io.Writer) int {
	if err := run(bufio.NewReader(in), out); err != nil { // a small one: what it holds can't be left out any more
		fmt.Fprintln(errs, err)
		line, _ := json.Marshal(wire.Result{Error: err.Error()}) //nolint:errchkjson // strings and numbers
		_, _ = out.Write(append(line, '\n'))                     // the exit status tells, too
		return 1
	}
	return 0
}

func run(in io.Reader, out io.Writer) error {
	kind, body, err := wire.Read(in, nil)
	if err != nil || kind != wire.KindStart {
		return fmt.Errorf("read how to start: kind %q: %w", kind, err)
	}
	var start wire.Start
	if err = json.Unmarshal(body, &start); err != nil {
		return fmt.Errorf("read how to start: %w", err)
	}
	lines := json.NewEncoder(out)
	tell := func(r wire.Result) error {
		if bad := lines.Encode(r); bad != nil {
			return fmt.Errorf("tell result: %w", bad)
		}
		return nil
	}
	d, err := newDecoder(start, tell)
	if err != nil {
		return err
	}
	if err = tell(wire.Result{}); err != nil { // ready
		return err
	}
	return serve(in, d)
}

// engine is what a decoder asks of the library.
type engine interface {
	startStream()
	startUtterance() error
	process(samples []int16, whole bool) error
	speaking() bool
	endUtterance() []segment
	// soFar is what is known while an utterance goes on; the words at its end may change.
	soFar() []segment
}

// decoder recognises sound.
type decoder interface {
	// feed takes samples, the first of which has a number. One that does not follow begins a stream of its own.
	feed(first int64, samples []int16) error
	// end ends the stream.
	end() error
}

func serve(in io.Reader, d decoder) error {
	var body []byte
	var samples []int16
	for {
		var kind byte
		var err error
		kind, body, err = wire.Read(in, body)
		if errors.Is(err, io.EOF) {
			return d.end()
		}
		if err != nil {
			return err
		}
		switch kind {
		case wire.KindSound:
			var first int64
			if first, samples, err = wire.Sound(body, samples); err == nil {
				err = d.feed(first, samples)
			}
		case wire.KindEnd:
			err = d.end()
		default:
			err = fmt.Errorf("frame of unknown kind %q", kind)
		}
		if err != nil {
			return err
		}
	}
}

// beams are the arguments for each effort: how many guesses are followed.
func beams(effort int) []string {
	switch effort {
	case 0:
		return []string{"-fwdflat", "no", "-maxhmmpf", "3000", "-maxwpf", "5"}
	case 1:
		return nil
	}
	return []string{
		"-beam", "1e-60", "-wbeam", "1e-40", "-pbeam", "1e-60", "-lpbeam", "1e-50", "-fwdflatwbeam", "1e-40",
		"-maxhmmpf", "-1",
	}
}

// newDecoder loads the library and its model.
func newDecoder(start wire.Start, tell func(wire.Result) error) (decoder, error) {
	lib, err := loadSphinx()
	if err != nil {
		return nil, err
	}
	dictionary, general := filepath.Join(start.Model, "cmudict-en-us.dict"), filepath.Join(start.Model, "en-us.lm.bin")
	lex, err := newLexicon(dictionary, start.Phrases)
	if err != nil {
		return nil, err
	}
	if lex.dictionary != "" {
		dictionary = lex.dictionary
	}
	args := append([]string{
		"-hmm", filepath.Join(start.Model, "en-us"), "-dict", dictionary, "-lm", general, "-logfn", "/dev/null",
	}, beams(start.Effort)...)
	if start.Whole {
		args = append(args, wholeArgs()...)
	}
	r, err := lib.newRecogniser(args)
	if err != nil {
		return nil, err
	}
	if lex.model != "" {
		if err = r.favour(general, lex.model); err != nil {
			return nil, err
		}
	}
	said := report{tell: tell, text: lex.text}
	if start.Whole {
		return &wholeDecoder{report: said, engine: r}, nil
	}
	return &streamDecoder{report: said, engine: r, longest: int64(start.MaxSamples)}, nil
}

// shown is how a word of the dictionary is written.
func shown(word string) string {
	switch {
	case word == "i", strings.HasPrefix(word, "i'"):
		return "I" + word[1:]
	}
	return word
}
