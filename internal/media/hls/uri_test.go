package hls_test

import (
	"strings"
	"testing"

	"millrace/internal/media/hls"
)

func TestResourceNamesAreReadBack(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]hls.Resource{
		hls.InitURI("v", 0):                 {Init: 0, Part: -1, Ext: "mp4"},
		hls.InitURI("v", 12):                {Init: 12, Part: -1, Ext: "mp4"},
		hls.SegmentURI("v", 0, "m4s"):       {Init: -1, Part: -1, Ext: "m4s"},
		hls.SegmentURI("t", 43200, "vtt"):   {Init: -1, MSN: 43200, Part: -1, Ext: "vtt"},
		hls.PartURI("v", 7, 0):              {Init: -1, MSN: 7, Part: 0, Ext: "m4s"},
		hls.PartURI("v", 999999999999, 100): {Init: -1, MSN: 999999999999, Part: 100, Ext: "m4s"},
	} {
		_, name, _ := strings.Cut(uri, "/")
		if got, ok := hls.ParseResource(name); !ok || got != want {
			t.Errorf("%s: %+v %v, want %+v", uri, got, ok, want)
		}
	}
}

func TestResourceNamesRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", ".", "..", ".m4s", "m4s", "7", "7.", "7.mp4", "07.m4s", "-1.m4s", "+1.m4s", "1e3.m4s", "7.00.m4s", "7.-1.m4s", "7.1.2.m4s", "7.0.vtt", "7..m4s",
		"init.mp4", "init-.mp4", "init-01.mp4", "init-1.m4s", "init--1.mp4", "9999999999999999.m4s", "7.9999999999999999.m4s", "7.m4s/", "a/7.m4s", "７.m4s", "7.m4s\x00", "7.M4S",
	} {
		if got, ok := hls.ParseResource(name); ok {
			t.Errorf("%q is read as %+v", name, got)
		}
	}
}

// FuzzParseResource: a name that is read is the only name of what it names.
func FuzzParseResource(f *testing.F) {
	for _, s := range []string{"init-0.mp4", "7.m4s", "7.3.m4s", "12.vtt", "..m4s", "0.0.m4s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r, ok := hls.ParseResource(name)
		if !ok {
			return
		}
		uri := hls.SegmentURI("x", r.MSN, r.Ext)
		if r.Part >= 0 {
			uri = hls.PartURI("x", r.MSN, r.Part)
		}
		if r.Init >= 0 {
			uri = hls.InitURI("x", r.Init)
		}
		if uri != "x/"+name || r.MSN < 0 {
			t.Errorf("%q is read as %+v, which is called %q", name, r, uri)
		}
	})
}
