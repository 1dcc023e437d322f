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

		hls.InGeneration(0, hls.SegmentURI("v", 7, "m4s")): {Init: -1, MSN: 7, Part: -1, Ext: "m4s"},
		hls.InGeneration(3, hls.SegmentURI("v", 7, "m4s")): {Generation: 3, Init: -1, MSN: 7, Part: -1, Ext: "m4s"},
		hls.InGeneration(3, hls.PartURI("v", 7, 2)):        {Generation: 3, Init: -1, MSN: 7, Part: 2, Ext: "m4s"},
		hls.InGeneration(12, hls.InitURI("v", 1)):          {Generation: 12, Init: 1, Part: -1, Ext: "mp4"},
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
		"", ".", "..", ".m4s", "m4s", "7", "7.", "7.mp4", "07.m4s", "-1.m4s", "+1.m4s", "1e3.m4s", "7.00.m4s",
		"7.-1.m4s", "7.1.2.m4s", "7.0.vtt", "7..m4s",
		"init.mp4", "init-.mp4", "init-01.mp4", "init-1.m4s", "init--1.mp4", "9999999999999999.m4s",
		"7.9999999999999999.m4s", "7.m4s/", "a/7.m4s", "７.m4s", "7.m4s\x00", "7.M4S",
		"0-7.m4s", "01-7.m4s", "1-2-7.m4s", "-7.m4s", "1-.m4s", "1-init.mp4", "1-", "x-7.m4s", "0-init-1.mp4",
	} {
		if got, ok := hls.ParseResource(name); ok {
			t.Errorf("%q is read as %+v", name, got)
		}
	}
}

// FuzzParseResource: a name that is read is the only name of what it names.
func FuzzParseResource(f *testing.F) {
	for _, s := range []string{
		"init-0.mp4", "7.m4s", "7.3.m4s", "2-7.3.m4s", "4-init-1.mp4", "12.vtt", "..m4s", "0.0.m4s",
	} {
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
		if uri = hls.InGeneration(r.Generation, uri); uri != "x/"+name || r.MSN < 0 {
			t.Errorf("%q is read as %+v, which is called %q", name, r, uri)
		}
	})
}
