package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// deployed is where the files for Prometheus and Grafana are.
const deployed = "../../deploy/"

// TestMonitoring: a real Prometheus reads the service while it does a bit of everything. Each panel of the dashboard
// shows something then, the alerts are evaluated without an error, and the series that their tests make up are like
// those that the service has.
func TestMonitoring(t *testing.T) {
	rig.Parallel(t)
	programtest.Inputs(t, deployed+"prometheus")
	programtest.Inputs(t, deployed+"grafana")
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := &stage{Server: rig.Start(t, rig.Options{Pair: p, Args: []string{"--metrics-addr", "127.0.0.1:0"}})}
		t.Cleanup(func() { cleanLog(t, s.Server, s.keys...) })
		l := s.stream(t, "low", nil)
		c := small()
		c.GOP, c.NoAudio = 8, true // so that it has problems
		s.Publish(t, l.Text("stream_key"), c)
		prometheus := rig.StartPrometheus(t, metricsAddress.FindStringSubmatch(s.Log())[1])
		playback := s.PlayURL(l.Text("playback_ids.0.id"))
		s.AwaitPlayable(t, playback, patience)
		watching := func() {
			for _, m := range mediaPlaylists(t, playback) {
				s.Get(t, m.url)
			}
			s.Get(t, strings.TrimSuffix(playback, ".m3u8")+"/thumbnail.jpg")
		}
		t.Run("dashboard", func(t *testing.T) { panelsShow(t, prometheus, watching) })
		t.Run("alerts", func(t *testing.T) { alertsEvaluate(t, prometheus) })
	})
}

// panelsShow waits until each query of the dashboard has a result.
func panelsShow(t *testing.T, p *rig.Prometheus, again func()) {
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	text, err := os.ReadFile(deployed + "grafana/millrace.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	empty := map[string]string{} // by query, the panel's title
	for _, panel := range dashboard.Panels {
		for _, q := range panel.Targets {
			empty[strings.NewReplacer("$node", ".*", "$__rate_interval", "10s").Replace(q.Expr)] = panel.Title
		}
	}
	if len(empty) < 20 {
		t.Fatalf("the dashboard has %d queries", len(empty))
	}
	for end := time.Now().Add(patience); len(empty) > 0; rig.Pause(500 * time.Millisecond) {
		again()
		for expr := range empty {
			found, err := p.Query(t.Context(), expr)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 {
				delete(empty, expr)
			}
		}
		if time.Now().After(end) {
			for expr, title := range empty {
				t.Errorf("the panel %q shows nothing: %s", title, expr)
			}
			return
		}
	}
}

var (
	alertName = regexp.MustCompile(`(?m)^ *- alert: (\w+)$`)
	testName  = regexp.MustCompile(`(?m)^ *- name: (\w+)$`)
	madeUp    = regexp.MustCompile(`(?m)^ *- series: '(\w+)\{(.*)\}'$`)
	labelName = regexp.MustCompile(`(\w+)=`)
)

// alertsEvaluate has the alerts' own tests run, one for each, and holds the series in them against the service's.
func alertsEvaluate(t *testing.T, p *rig.Prometheus) {
	promtool := exec.CommandContext(t.Context(), programtest.Path(t, "promtool"), "test", "rules", "alerts_test.yml")
	promtool.Dir = deployed + "prometheus"
	if out, err := promtool.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	alerts, err := os.ReadFile(deployed + "prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(deployed + "prometheus/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := func(re *regexp.Regexp, in []byte) (all []string) {
		for _, m := range re.FindAllSubmatch(in, -1) {
			all = append(all, string(m[1]))
		}
		return all
	}
	if a, tested := names(alertName, alerts), names(testName, tests); len(a) == 0 || !slices.Equal(a, tested) {
		t.Errorf("the alerts are %v, and tests are of %v", a, tested)
	}
	for _, m := range madeUp.FindAllSubmatch(tests, -1) {
		metric, labels := string(m[1]), map[string]bool{}
		for _, name := range labelName.FindAllSubmatch(m[2], -1) {
			labels[string(name[1])] = true
		}
		found, err := p.Query(t.Context(), metric)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("the service has no %s", metric)
		}
		for _, series := range found {
			delete(series.Labels, "__name__")
			if !slices.Equal(slices.Sorted(maps.Keys(labels)), slices.Sorted(maps.Keys(series.Labels))) {
				t.Errorf("%s has the labels %v, and a test of alerts gives it %v", metric, series.Labels, labels)
				break
			}
		}
	}
	for end := time.Now().Add(patience); ; rig.Pause(500 * time.Millisecond) {
		rules, err := p.Rules(t.Context())
		waits := func(r rig.Rule) bool { return r.Health == "unknown" } // for its first evaluation
		switch {
		case err != nil || time.Now().After(end):
			t.Fatalf("rules: %+v, %v", rules, err)
		case slices.ContainsFunc(rules, waits):
			continue
		case len(rules) == 0:
			t.Error("there are no rules")
		}
		for _, r := range rules {
			if r.Health != "ok" {
				t.Errorf("the rule %s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
		return
	}
}

// TestMetricsLint: promtool finds nothing against the names and help texts of the metrics.
func TestMetricsLint(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p, Args: []string{"--metrics-addr", "127.0.0.1:0"}})
		if code, _, _ := s.Get(t, s.HTTP+"/absent.m3u8"); code != http.StatusNotFound {
			t.Errorf("status %d", code)
		}
		lint := exec.CommandContext(t.Context(), programtest.Path(t, "promtool"), "check", "metrics")
		lint.Stdin = strings.NewReader(metrics(t, s))
		if out, err := lint.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	})
}
