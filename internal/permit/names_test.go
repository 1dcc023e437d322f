package permit_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// audiencesOfNames says whom each kind of name behind a playback ID belongs to: the audience of its token, or nobody,
// and whether a signed path leads to it. There is no name that is not one of these kinds.
func audiencesOfNames() map[string]struct {
	names    []string
	audience string // empty: nobody's
	below    string // the uses of the paths that lead to it
} {
	return map[string]struct {
		names    []string
		audience string
		below    string
	}{
		"multivariant playlist": {[]string{".m3u8", ""}, "v", ""},
		"of a rendition": {[]string{
			"/m1/v.m3u8", "/m1/a.m3u8", "/m1/t.m3u8", "/m1/tiles.m3u8",
			"/m1/v/init-0.mp4", "/m1/v/7.m4s", "/m1/v/7.0.m4s", "/m1/t/7.vtt",
		}, "v", "v"},
		"text":      {[]string{"/text/t.vtt", "/text/t.txt"}, "v", "v"},
		"metadata":  {[]string{"/metadata.json"}, "v", "v"},
		"file":      {[]string{"/low.mp4", "/high.mp4", "/audio.m4a", "/thumbnail.mp4", "/storyboard.m4a"}, "v", ""},
		"thumbnail": {[]string{"/thumbnail.jpg", "/thumbnail.png", "/thumbnail.webp"}, "t", ""},
		"animation": {[]string{"/animated.gif", "/animated.webp"}, "g", ""},
		"storyboard": {[]string{
			"/storyboard.jpg", "/storyboard.png", "/storyboard.webp", "/storyboard.vtt", "/storyboard.json",
		}, "s", "vs"},
		"nothing": {[]string{
			"/", "/m1", "/metadata", "/metadata.xml", "/metadata.json.jpg", "/Metadata.json", "/chapters.json",
			"/key.bin",
			"/poster.jpg", "/thumbnail", "/thumbnail.jpeg", "/thumbnail.gif", "/thumbnail.JPG", "/thumbnail.json",
			"/thumbnail.vtt", "/animated.jpg", "/storyboard.txt", "/storyboard.gif", "/v.m3u8", "/7.m4s", "/t.vtt",
			"/.jpg",
		}, "", ""},
	}
}

// TestAudienceOfEachName asks for each kind of name with the token of each audience, with none, and below the path of
// each, by both ways that requests take.
func TestAudienceOfEachName(t *testing.T) {
	t.Parallel()
	f := newBattle(t)
	tokens := map[string]string{}
	for _, aud := range []string{"v", "t", "g", "s", "d", "playback_id", "asset_id", "live_stream_id"} {
		tokens[aud] = f.own.token(claims{"aud": aud})
	}
	paths := map[string]string{"v": f.path, "s": strings.SplitN(f.board, "/", 2)[0]}
	expect := func(what, target string, want int) {
		t.Helper()
		for way, addr := range f.addrs {
			r := send(t, addr, ask(http.MethodGet, "/"+target, ""))
			if r.status != want || want != http.StatusOK && strings.Contains(r.body, secret) {
				t.Errorf("%s by %s: %d, want %d: %.200s", what, way, r.status, want, r.body)
			}
		}
	}
	for kind, k := range audiencesOfNames() {
		for _, name := range k.names {
			refused := http.StatusForbidden
			if k.audience == "" {
				refused = http.StatusNotFound
			}
			expect(kind+" "+name+" without a token", signedID+name, refused)
			for aud, token := range tokens {
				want := refused
				if aud == k.audience {
					want = http.StatusOK
				}
				expect(kind+" "+name+" with a token of "+aud, signedID+name+"?token="+token, want)
			}
			for use, path := range paths {
				want := http.StatusNotFound
				switch {
				case strings.Contains(k.below, use):
					want = http.StatusOK
				case k.below != "":
					want = http.StatusForbidden
				}
				expect(kind+" "+name+" below a path of "+use, signedID+"/"+path+name, want)
			}
		}
	}
}

// uriOf finds what a line of a playlist names.
var uriOf = regexp.MustCompile(`(?m)(?:URI="([^"]+)"|^([^#\n]+)$)`)

// TestAllThatPlaylistsName: whoever has the token to watch gets all that the multivariant playlist names, and all that
// is named there. Each is there: a title, sound, texts, pictures for winding, parts.
func TestAllThatPlaylistsName(t *testing.T) {
	t.Parallel()
	f := newBattle(t)
	first, err := url.Parse("/" + signedID + ".m3u8?token=" + f.own.token(claims{"roku_trick_play": true}))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var follow func(at *url.URL)
	follow = func(at *url.URL) {
		for way, addr := range f.addrs {
			r := send(t, addr, ask(http.MethodGet, at.RequestURI(), ""))
			if r.status != http.StatusOK {
				t.Errorf("%s by %s: %d %.200s", at, way, r.status, r.body)
				return
			}
			if !strings.HasSuffix(at.Path, ".m3u8") {
				continue
			}
			for _, m := range uriOf.FindAllStringSubmatch(r.body, -1) {
				next, err := at.Parse(m[1] + m[2])
				if err != nil {
					t.Fatal(err)
				}
				_, below, _ := strings.Cut(next.Path, "/signed-v.")
				if _, name, _ := strings.Cut(below, "/"); !seen[name] {
					seen[name] = true
					follow(next)
				}
			}
		}
	}
	follow(first)
	for _, name := range []string{
		"metadata.json", "m1/v.m3u8", "m1/large.m3u8", "m1/a.m3u8", "m1/t.m3u8", "m1/tiles.m3u8", "storyboard.jpg",
		"m1/t/7.vtt", "m1/v/init-0.mp4", "m1/v/7.m4s", "m1/v/8.0.m4s", "m1/v/8.1.m4s",
	} {
		if !seen[name] {
			t.Errorf("%s is not named: %v", name, seen)
		}
	}
}
