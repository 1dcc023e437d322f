package srt

import (
	"strings"
	"testing"
)

func TestParseStreamID(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]streamID{
		"sk-1":                              {key: "sk-1"},
		"a=b,c":                             {key: "a=b,c"},
		"#!::r=sk-1,m=publish":              {key: "sk-1", mode: "publish"},
		"#!::u=studio 1,r=sk-1":             {key: "sk-1", user: "studio 1"},
		"#!::h=live.example.org,r=sk-1,t=x": {key: "sk-1"},
		"#!::r=sk-1,m=request":              {key: "sk-1", mode: "request"},
		"#!::r=sk=1,s=":                     {key: "sk=1"},
		"#!::r=sk-1,u=a\nb\x00c":            {key: "sk-1", user: "abc"},
		"#!::r=sk-1,u=\xff" + strings.Repeat("é", 40): {key: "sk-1", user: strings.Repeat("é", 32)},
	} {
		got, err := parseStreamID(in)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{
		"", "#!::", "#!::m=publish", "#!:{r=sk-1}", "#!::r", "#!::r=", strings.Repeat("k", 129),
	} {
		if got, err := parseStreamID(in); err == nil {
			t.Errorf("%q is read as %+v", in, got)
		}
	}
}

func FuzzParseStreamID(f *testing.F) {
	for _, s := range []string{"sk-1", "#!::r=sk-1,m=publish,u=x", "#!:{r=1}", "#!::,,,="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := parseStreamID(s)
		if err == nil &&
			(id.key == "" || len(id.key) > maxKey || len(id.user) > maxUser ||
				strings.ContainsAny(id.user, "\r\n\x00")) {
			t.Fatalf("%+v", id)
		}
		if err == nil && !strings.HasPrefix(s, "#!") && id.key != s {
			t.Fatalf("%q has the key %q", s, id.key)
		}
	})
}
