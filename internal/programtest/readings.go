package programtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
)

// ReadingsVariable names a folder of recordings of people who read aloud. It has the form of the LJ Speech dataset:
// metadata.csv, of which a line has the name of a recording, its text and what is spoken, between bars, and
// wavs/NAME.wav. Recordings whose names differ only behind the last hyphen follow each other.
const ReadingsVariable = "MILLRACE_TEST_READINGS"

// Reading is what one person reads aloud.
type Reading struct {
	Name  string
	Words []string // as Plain gives them
	// Ends is about when each word ends: by the letters of those of its recording, which lasts for some seconds.
	Ends  []time.Duration
	Sound []byte // signed 16-bit samples, 16 kHz, one channel
}

// Readings are the recordings of the folder that ReadingsVariable names. Without one the test is skipped, whatever is
// required: they are not part of the project.
func Readings(t testing.TB) []Reading {
	t.Helper()
	folder := os.Getenv(ReadingsVariable)
	if folder == "" {
		t.Skip(ReadingsVariable + " names no folder of recordings")
	}
	all, err := ReadReadings(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ReadReadings reads the recordings of a folder, in the order of its list.
func ReadReadings(ctx context.Context, folder string) (all []Reading, err error) {
	list, err := os.ReadFile(filepath.Join(folder, "metadata.csv")) //nolint:gosec // who runs tests names it
	if err != nil {
		return nil, fmt.Errorf("read list of recordings: %w", err)
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) < 2 {
			continue
		}
		sound, err := samplesOf(ctx, filepath.Join(folder, "wavs", filepath.Base(fields[0])+".wav"))
		if err != nil {
			return nil, err
		}
		name := fields[0][:max(strings.LastIndexByte(fields[0], '-'), 0)]
		if n := len(all); n == 0 || all[n-1].Name != name {
			all = append(all, Reading{Name: name})
		}
		all[len(all)-1].append(Plain(fields[len(fields)-1]), sound)
	}
	if len(all) == 0 {
		return nil, errors.New("the list of recordings is empty")
	}
	return all, nil
}

// append puts a recording behind the others.
func (r *Reading) append(words []string, sound []byte) {
	begins, long := lasts(r.Sound), lasts(sound)
	letters, all := 0, len(strings.Join(words, ""))
	for _, w := range words {
		letters += len(w)
		r.Ends = append(r.Ends, begins+long*time.Duration(letters)/time.Duration(all))
	}
	r.Words, r.Sound = append(r.Words, words...), append(r.Sound, sound...)
}

// lasts is how long samples last.
func lasts(sound []byte) time.Duration { return time.Duration(len(sound)/2) * time.Second / 16000 }

// Plain are the words of a text in small letters and without punctuation, of which apostrophes stay.
func Plain(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	})
}

// samplesOf decodes a recording.
func samplesOf(ctx context.Context, path string) ([]byte, error) {
	args := []string{"-v", "error", "-i", path, "-ar", "16000", "-ac", "1", "-f", "s16le", "-"}
	out, err := exec.CommandContext(ctx, "ffmpeg", args...).Output() //nolint:gosec // who runs tests names the folder
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", path, err)
	}
	return out, nil
}

// WordErrors is how many words have to be put in, taken out or changed to make got of want: the numerator of the word
// error rate. Capitals don't count.
func WordErrors(want, got []string) int {
	table := alignment(want, got)
	return table[len(want)][len(got)]
}

// SameWords gives for each word of got which one of want it is; -1: none.
func SameWords(want, got []string) []int {
	table, same := alignment(want, got), make([]int, len(got))
	i := len(want)
	for j := len(got); j > 0; j-- {
		for i > 0 && table[i-1][j]+1 == table[i][j] { // a word that is missing
			i--
		}
		same[j-1] = -1
		if i > 0 && table[i-1][j-1]+differ(want[i-1], got[j-1]) == table[i][j] {
			if i--; strings.EqualFold(want[i], got[j-1]) {
				same[j-1] = i
			}
		}
	}
	return same
}

// alignment has the fewest changes that make the first j words of got of the first i of want.
func alignment(want, got []string) [][]int {
	table := make([][]int, len(want)+1)
	for i := range table {
		table[i] = make([]int, len(got)+1)
		table[i][0] = i
		for j := range got {
			switch i {
			case 0:
				table[i][j+1] = j + 1
			default:
				changed := table[i-1][j] + differ(want[i-1], got[j])
				table[i][j+1] = min(table[i-1][j+1]+1, table[i][j]+1, changed)
			}
		}
	}
	return table
}

func differ(a, b string) int {
	if strings.EqualFold(a, b) {
		return 0
	}
	return 1
}
