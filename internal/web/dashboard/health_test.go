package dashboard_test

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
)

// sent are samples of an encoder that sends evenly, the last one at a time.
func sent(n int, last time.Time) []live.Sample {
	var all []live.Sample
	for i := range n {
		all = append(all, live.Sample{
			At: last.Add(time.Duration(i-n+1) * 5 * time.Second), Span: 5 * time.Second, GOP: 2 * time.Second, Pace: 1,
			Video: live.Flow{Bitrate: 5.9e6, Rate: 50}, Audio: live.Flow{Bitrate: 128e3, Rate: 47},
		})
	}
	return all
}

// TestHealth: what the page says of an encoder, whatever is known of it.
func TestHealth(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 30, 0, time.UTC)
	link := sent(1, at)
	link[0].RTT, link[0].VariableFrameRate = 38*time.Millisecond, true
	sound := sent(3, at)
	for i := range sound {
		sound[i].Video, sound[i].GOP = live.Flow{}, 0
	}
	lost := live.Counts{Packets: 900, PacketsDropped: 100, FramesDropped: 7}
	const charts, rate = `<svg viewBox="0 0 600 96"`, "Frame rate"
	tests := map[string]struct {
		is         live.Health
		want, none []string
	}{
		"sends": {live.Health{Status: live.HealthLive, Samples: sent(120, at)}, []string{
			charts, "<dd>6.0 Mbit/s</dd>", "picture 5.9 Mbit/s, sound 128 kbit/s",
			"<dd>50.0 fps</dd>", "<dd>2.0 s</dd>",
			`aria-label="Bitrate: 6.0 Mbit/s now, steady in the last 10 minutes."`,
			`aria-label="Between key frames: 2.0 s now`,
			"<td>6.0 Mbit/s</td><td>50.0 fps</td><td>2.0 s</td>", `<time datetime="2026-05-01T12:00:00Z"`,
			`<time datetime="2026-05-01T11:51:00Z"`,
		}, []string{"Round trip", "never came", "left out", "sends nothing"}},
		"a link that counts": {live.Health{
			Status: live.HealthLive, Samples: link,
			Encoder: &live.Encoder{Counts: lost},
		}, []string{
			"<dd>38 ms</dd>", "it varies", `<dd>100</dd><dd class="s">of 1000</dd>`, "<dd>7</dd>",
		}, nil},
		"sound only": {live.Health{Status: live.HealthLive, Samples: sound}, []string{
			charts, "<dd>128 kbit/s</dd>", "<td>–</td>",
		}, []string{"<h3>" + rate, "Between key frames</dt>", "picture 0"}},
		"has come": {live.Health{Status: live.HealthLive}, []string{
			"The first figures come in a few seconds",
		}, []string{charts}},
		"silent": {live.Health{Status: live.HealthSilent, Samples: sent(2, at)}, []string{
			"connected but sends nothing", charts,
		}, nil},
		"elsewhere": {live.Health{Status: live.HealthElsewhere}, []string{"another node"}, []string{charts, "answer"}},
		"lost": {live.Health{Status: live.HealthElsewhere, Unanswered: true}, []string{
			"another node of this service, which does not answer",
		}, []string{charts, "Open this page there"}},
		"never": {live.Health{Status: live.HealthIdle}, []string{
			"measured while an encoder is connected",
		}, []string{charts, "The last one"}},
		"has gone": {live.Health{
			Status: live.HealthAway, Encoder: &live.Encoder{Until: at, Cause: "read packet: " + hostile},
		}, []string{`The last one left at <time datetime="2026-05-01T12:00:30Z"`, "read packet: "}, []string{charts}},
		"in trouble": {live.Health{Status: live.HealthLive, Samples: sent(2, at), Trouble: []live.Trouble{{
			Warning: live.Warning{Type: "audio_missing", Message: "The encoder sends no sound."}, Since: at,
		}}}, []string{"The encoder sends no sound.", "chosen and not muted"}, nil},
	}
	s := newSite(t, "http://example.com")
	s.health = func(v live.Stream) live.Health { return tests[v.Settings.Meta.Title].is }
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := s.stream(t, name, true, playbackid.Public)
			w := s.ask(t, s.cookie, "/dashboard/live/"+string(v.ID), nil)
			closedPage(t, w)
			harmless(t, name, w)
			for _, want := range tt.want {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("the page lacks %q:\n%s", want, w.Body)
				}
			}
			for _, none := range tt.none {
				if strings.Contains(w.Body.String(), none) {
					t.Errorf("the page has %q", none)
				}
			}
		})
	}
}

// TestFollowHealth: an open page is told how the encoder does although no event tells of it, and again the whole page
// when something happens.
func TestFollowHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	var samples atomic.Int64
	samples.Store(1)
	s.health = func(live.Stream) live.Health {
		all := sent(int(samples.Load()), s.now)
		for i := range all {
			all[i].Video.Bitrate = float64(samples.Load()) * 1e6
		}
		return live.Health{Status: live.HealthLive, Samples: all}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	v := s.stream(t, "One", true, playbackid.Public)
	e := s.follow(t, server, "/dashboard/live/"+string(v.ID)+"/follow")
	e.until("<dd>1.1 Mbit/s</dd>")
	samples.Store(2)
	if part := e.until("<dd>2.1 Mbit/s</dd>"); strings.Contains(part, `id="recordings"`) {
		t.Error("figures bring the whole page along")
	}
	in := live.PatchInput{Passthrough: new("passthrough-2")}
	if _, err := s.live.Patch(t.Context(), s.env(t), v.ID, in, s.now); err != nil {
		t.Fatal(err)
	}
	if page := e.until("passthrough-2"); !strings.Contains(page, "<dd>2.1 Mbit/s</dd>") {
		t.Error("the page has older figures")
	}
}
