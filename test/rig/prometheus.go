package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/programtest"
)

// Prometheus is a server that reads the metrics of nodes. It ends with the test.
type Prometheus struct{ url string }

// StartPrometheus starts one as deploy/prometheus configures it, but reading a target, given as host:port, each second.
func StartPrometheus(t testing.TB, target string) *Prometheus {
	t.Helper()
	const deployed = "../../deploy/prometheus"
	text, err := os.ReadFile(filepath.Join(deployed, "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\n" + string(text)
	for old, now := range map[string]string{
		"127.0.0.1:9464": target, "alerts.yml": absolute(t, deployed+"/alerts.yml"),
	} {
		if strings.Count(config, old) != 1 {
			t.Fatalf("prometheus.yml has %q %d times", old, strings.Count(config, old))
		}
		config = strings.Replace(config, old, now, 1)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := programtest.Path(t, "prometheus")
	for range 3 {
		p, listen := &Prometheus{}, freePort(t)
		p.url = "http://" + listen
		//nolint:noctx // ended by the test's cleanup
		if p.start(t, exec.Command(bin, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, listen),
			"--web.listen-address="+listen, "--log.level=warn")) {
			return p
		}
	}
	t.Fatal("Prometheus does not start")
	return nil
}

func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs Prometheus and reports whether it responds; its port may have been taken in between.
func (p *Prometheus) start(t testing.TB, cmd *exec.Cmd) bool {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start prometheus: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("prometheus:\n%s", out.String())
		}
	})
	for end := time.Now().Add(startWait); time.Now().Before(end); Pause(50 * time.Millisecond) {
		select {
		case <-ended:
			return false
		default:
		}
		if _, err := fetchAll(http.DefaultClient, p.url+"/-/ready"); err == nil {
			return true
		}
	}
	return false
}

// Series is a result of a query: labels and the newest value.
type Series struct {
	Labels map[string]string `json:"metric"`
	Value  [2]any            `json:"value"` // Unix seconds, and the value as text
}

// Query evaluates a PromQL expression at the current time. An error says why Prometheus refuses it.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	var data struct {
		Result []Series `json:"result"`
	}
	err := p.get(ctx, "/api/v1/query?"+url.Values{"query": {expr}}.Encode(), &data)
	return data.Result, err
}

// Rule is an alert, with how its last evaluation went: ok, err, or unknown before the first.
type Rule struct {
	Name      string `json:"name"`
	Health    string `json:"health"`
	LastError string `json:"lastError"`
}

// Rules are all alerts.
func (p *Prometheus) Rules(ctx context.Context) (all []Rule, err error) {
	var data struct {
		Groups []struct {
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	}
	err = p.get(ctx, "/api/v1/rules", &data)
	for _, g := range data.Groups {
		all = append(all, g.Rules...)
	}
	return all, err
}

// get reads the data of a response of the HTTP API.
func (p *Prometheus) get(ctx context.Context, path string, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	out := struct {
		Error string `json:"error"`
		Data  any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return err
	}
	if out.Error != "" {
		return fmt.Errorf("%s: %s", path, out.Error)
	}
	return nil
}
