package captions

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no inputs", err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []struct{ name, text string }{
				{"lf", string(data)},
				{"crlf", strings.ReplaceAll(string(data), "\n", "\r\n")},
				{"cr", strings.ReplaceAll(string(data), "\n", "\r")},
				{"bom", "\uFEFF" + string(data)},
			} {
				d, err := Parse([]byte(v.text))
				if err != nil {
					t.Fatal(v.name, err)
				}
				got := fmt.Sprintf("%s\nNOTE dropped %+v\n", d.AppendVTT(nil), d.Dropped())
				golden := strings.TrimSuffix(input, ".in") + ".golden"
				if *update && v.name == "lf" {
					if err = os.WriteFile(golden, []byte(got), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("%s: got\n%s\nwant\n%s", v.name, got, want)
				}
			}
		})
	}
}
