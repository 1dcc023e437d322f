package dashboard_test

import (
	"html"
	"regexp"
	"slices"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
)

// TestSharing: each public playback ID has its watch page, embed code and playlist to copy, and no other ID has.
func TestSharing(t *testing.T) {
	t.Parallel()
	s := newSite(t, "https://video.example/tv")
	shut := newSite(t, "https://video.example/tv")
	if err := shut.tokens.SetFrameAncestors(t.Context(), shut.env(t), []string{"none"}, shut.now); err != nil {
		t.Fatal(err)
	}
	upright := s.asset(t, hostile, playbackid.Public)
	err := s.assets.Finish(t.Context(), upright.ID, asset.Finished{
		Index: "index", Facts: asset.Facts{Duration: 9, Width: 1080, Height: 1920, HasVideo: true},
		Tracks: []asset.Track{{Type: asset.VideoTrack, Rendition: "v", Duration: 9}},
	}, s.now)
	upright = s.again(t, upright.ID, err)
	twice := s.ready(t, "", playbackid.Public, playbackid.Signed, playbackid.Public)
	bad := s.asset(t, "Failed", playbackid.Public)
	bad = s.again(t, bad.ID, s.assets.Fail(t.Context(), bad.ID, asset.Errors{Type: "invalid_input"}, s.now))
	streamPage := func(v live.Stream) string { return "/dashboard/live/" + string(v.ID) }
	assetPage := func(a asset.Asset) string { return "/dashboard/assets/" + string(a.ID) }
	shown, framed := s.stream(t, hostile, false, playbackid.Public), shut.ready(t, "Shut", playbackid.Public)
	given := func(of playbackid.ID, frame string) []string {
		base, name := "https://video.example/tv", string(of.ID)
		out := []string{base + "/watch/" + name}
		if frame != "" {
			out = append(out, `<iframe src="`+base+`/embed/`+name+`" `+frame+` style="border: 0" `+
				`allow="autoplay; encrypted-media; fullscreen; picture-in-picture" allowfullscreen></iframe>`)
		}
		return append(out, base+"/"+name+".m3u8")
	}
	copyLine := regexp.MustCompile(`<div class="copyline"><code tabindex="0">([^<]*)</code>` +
		`<button type="button" data-copy="([^"]*)"`)
	toViewers := regexp.MustCompile(`/watch/|/embed/|\.m3u8`)
	title := ` title="` + html.EscapeString(hostile) + `"`
	usual := func(title string) string { return `width="640" height="360" title="` + title + `"` }
	for name, tt := range map[string]struct {
		on   *site
		page string
		want []string
	}{
		"live stream": {s, streamPage(shown), given(shown.PlaybackIDs[0], `width="640" height="360"`+title)},
		"no name": {s, assetPage(twice), slices.Concat(
			given(twice.PlaybackIDs[0], usual("Video")), given(twice.PlaybackIDs[2], usual("Video")),
		)},
		"upright":    {s, assetPage(upright), given(upright.PlaybackIDs[0], `width="203" height="360"`+title)},
		"signed":     {s, streamPage(s.stream(t, "Closed", false, playbackid.Signed)), nil},
		"failed":     {s, assetPage(bad), nil},
		"no framing": {shut, assetPage(framed), given(framed.PlaybackIDs[0], "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := tt.on.ask(t, tt.on.cookie, tt.page, nil).Body.String()
			var read, copied []string
			for _, m := range copyLine.FindAllStringSubmatch(page, -1) {
				if line := html.UnescapeString(m[1]); toViewers.MatchString(line) {
					read, copied = append(read, line), append(copied, html.UnescapeString(m[2]))
				}
			}
			if !slices.Equal(read, tt.want) {
				t.Errorf("shown is %q, want %q", read, tt.want)
			}
			if !slices.Equal(copied, tt.want) {
				t.Errorf("copied is %q, want %q", copied, tt.want)
			}
		})
	}
}
