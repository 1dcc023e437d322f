package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// insteadOf gives the word to use for each one that no identifier has: names that meant something in this code only.
var insteadOf = map[string]string{
	"anew":       "again, new",
	"cascade":    "live ladder",
	"crowd":      "connection limiter, viewers",
	"desk":       "probe limiter, claimer",
	"errand":     "outbox",
	"filler":     "slate, slate writer",
	"forgo":      "skip",
	"hasty":      "fast preset",
	"haste":      "fast preset",
	"laid":       "overlay files",
	"lane":       "rendition",
	"ledger":     "recorder",
	"reel":       "what it is: file, recording, frames",
	"settle":     "flush, resolve, asset files",
	"shade":      "derived",
	"shadow":     "derived",
	"shelf":      "stale cache",
	"sore":       "what it is: failed, late",
	"starve":     "idle",
	"starving":   "idle",
	"tape":       "what it is: file, recording",
	"transcode":  "just-in-time, encode",
	"transcoder": "encoder",
}

// fieldsOwn are identifiers with such a word that standards, other modules or the wire format use.
var fieldsOwn = []string{
	"TypeFiller", // a NAL unit of ITU-T H.264
}

// usualFill has the packages in which a filler is the field's word: filler data of MPEG and H.264, filler words of
// speech.
var usualFill = []string{"internal/media/codec/h264", "internal/media/container/mpegts", "internal/media/speech/worker"}

// wordsOf splits an identifier: fooBarBaz, FooBar and FOO_BAR are words in lower case.
func wordsOf(name string) (out []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = nil
	}
	for _, r := range name {
		upper := unicode.IsUpper(r)
		if upper && len(word) > 0 && !unicode.IsUpper(word[len(word)-1]) || !unicode.IsLetter(r) {
			flush()
		}
		if unicode.IsLetter(r) {
			word = append(word, r)
		}
	}
	flush()
	return out
}

// privateWord gives the word of a name that no identifier is to have, in any of its usual forms.
func privateWord(name string) (string, bool) {
	for _, word := range wordsOf(name) {
		word = strings.TrimPrefix(word, "un")
		for _, end := range []string{"", "s", "d", "ed", "r", "er", "rs"} {
			base, ok := strings.CutSuffix(word, end)
			if ok && insteadOf[base] != "" && word != "crowded" { // of cues and queues: the usual word
				return base, true
			}
		}
	}
	return "", false
}

// misnamed says which identifiers of a tree have a word that they should not have.
func misnamed(tree fs.FS) (complaints []string, err error) {
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") {
			return err
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			name, ok := n.(*ast.Ident)
			if !ok || slices.Contains(fieldsOwn, name.Name) {
				return true
			}
			word, is := privateWord(name.Name)
			if is && (word != "filler" || !slices.Contains(usualFill, path.Dir(p))) {
				complaints = append(complaints,
					fmt.Sprintf("%s: %s; instead of %q use %s", p, name.Name, word, insteadOf[word]))
			}
			return true
		})
		return nil
	})
	slices.Sort(complaints)
	return slices.Compact(complaints), err
}

func TestWords(t *testing.T) {
	t.Parallel()
	complaints, err := misnamed(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complaints {
		t.Error(c)
	}
}

func TestWordsComplains(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		src  string
		want int
	}{
		"plain":           {"package a\nfunc Seal() {}", 0},
		"a part of one":   {"package a\nfunc planeOf(restored, scaffold int) {}", 0},
		"a field's":       {"package a\nconst TypeFiller = 12", 0},
		"a function":      {"package a\nfunc settleFiles() {}", 1},
		"past":            {"package a\nvar TestUnsettled int", 1},
		"a parameter":     {"package a\nfunc f(tapes int) {}", 1},
		"crowded":         {"package a\nvar crowded int", 0},
		"a field":         {"package a\ntype T struct{ oldFillers int }", 1},
		"another package": {"package a\nvar _ = b.Cascade", 1},
		"words in text":   {"package a // a cascade\nvar s = \"tape\"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := misnamed(fstest.MapFS{"internal/a/x.go": {Data: []byte(tt.src)}})
			if err != nil || len(got) != tt.want {
				t.Errorf("got %q, %v, want %d", got, err, tt.want)
			}
		})
	}
}
