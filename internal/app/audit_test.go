package app

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/event"
	nodes "millrace/internal/control/node"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// commandLine runs commands on a database of their own, and reads its audit log.
type commandLine struct {
	t    *testing.T
	cfg  config.Config
	seen map[string]bool // entries
	ran  map[string]bool // commands
}

// run runs a command and returns the first word that it printed, or what stands behind its equals sign: the ID of what
// was made.
func (c *commandLine) run(command string, args ...string) string {
	c.t.Helper()
	c.ran[command] = true
	var out, bad bytes.Buffer
	environ := []string{"MILLRACE_DATA_DIR=" + c.cfg.DataDir, "USER=ann"}
	args = append(strings.Fields(command), args...)
	if code := cli.Run(c.t.Context(), args, environ, &out, &bad, actions(&out, &bad)); code != cli.ExitOK {
		c.t.Fatalf("%s %q: code %d: %s", command, args, code, &bad)
	}
	word := append(strings.Fields(out.String()), "")[0]
	if _, value, named := strings.Cut(word, "="); named {
		return value
	}
	return word
}

// queue has an event wait for a webhook, as the service does.
func (c *commandLine) queue(hook id.Webhook, tested string) {
	c.t.Helper()
	const node = "node"
	d, err := openDatabase(c.t.Context(), c.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	newest, err := d.ListEvents(c.t.Context(), event.Query{NewestFirst: true, Limit: 1})
	if err == nil && (len(newest) != 1 || newest[0].ID != tested) {
		c.t.Fatalf("the newest event is %+v, not %s", newest, tested)
	}
	if err == nil {
		_, err = d.Claim(c.t.Context(), node, time.Hour)
	}
	if err == nil {
		step := webhook.Step{Webhook: hook, To: newest[0].Sequence, Events: newest}
		_, err = d.Queue(c.t.Context(), node, []webhook.Step{step})
	}
	if err = errors.Join(err, d.Close()); err != nil {
		c.t.Fatal(err)
	}
}

// asset makes an asset, once, and returns its ID.
func (c *commandLine) asset() string {
	c.t.Helper()
	const name = "a"
	d, err := openDatabase(c.t.Context(), c.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	env, err := access.New(access.Options{Store: d.Access()}).Named(c.t.Context(), "", clock())
	if err == nil {
		made := asset.Asset{ID: name, Environment: env.ID, Status: asset.Ready, CreatedAt: clock(), UpdatedAt: clock()}
		err = d.Assets().Insert(c.t.Context(), asset.Change{Asset: made})
	}
	if fault.Is(err, fault.Conflict) {
		err = nil
	}
	if err = errors.Join(err, d.Close()); err != nil {
		c.t.Fatal(err)
	}
	return name
}

// register has a node be there.
func (c *commandLine) register(name id.Node) {
	c.t.Helper()
	d, err := openDatabase(c.t.Context(), c.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	_, _, err = d.Nodes().Register(c.t.Context(), nodes.Node{Name: name, Run: "run"}, time.Hour)
	if err = errors.Join(err, d.Close()); err != nil {
		c.t.Fatal(err)
	}
}

// fresh are the entries that were not there before.
func (c *commandLine) fresh() (out []audit.Entry) {
	c.t.Helper()
	d, err := openDatabase(c.t.Context(), c.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := d.AuditLog(c.t.Context(), audit.Query{Limit: 1000})
	if err != nil {
		c.t.Fatal(err)
	}
	if err = d.Close(); err != nil {
		c.t.Fatal(err)
	}
	for _, e := range all {
		if !c.seen[e.ID] {
			out, c.seen[e.ID] = append(out, e), true
		}
	}
	return out
}

// changes runs a command that changes a resource of a type.
func (c *commandLine) changes(resource, command string, args ...string) string {
	c.t.Helper()
	word := c.run(command, args...)
	switch all := c.fresh(); {
	case len(all) != 1:
		c.t.Errorf("%s: %d entries in the audit log: %+v", command, len(all), all)
	case all[0].Operation != command, all[0].Resource.Type != resource, all[0].Resource.ID == "",
		all[0].Actor.Type != audit.CommandLine:
		c.t.Errorf("%s: the audit log says %+v", command, all[0])
	}
	return word
}

// reads runs a command that changes nothing.
func (c *commandLine) reads(command string, args ...string) {
	c.t.Helper()
	c.run(command, args...)
	if all := c.fresh(); len(all) > 0 {
		c.t.Errorf("%s: in the audit log is %+v", command, all)
	}
}

// TestEveryCommandIsAudited runs all commands that open the database: each that changes something writes one entry with
// what it is about, and none of the others does.
func TestEveryCommandIsAudited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := &commandLine{
		t: t, cfg: config.Config{DataDir: dir, Database: config.Database{Path: filepath.Join(dir, "millrace.db")}},
		seen: map[string]bool{}, ran: map[string]bool{},
	}
	vendors := filepath.Join(dir, "vendors.yaml")
	if err := os.WriteFile(vendors, []byte("widevine:\n  url: https://licences.example/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.fresh() // makes the database
	c.reads("environment list")
	env := c.changes("environment", "environment create", "Shop")
	c.changes("environment", "environment rename", env, "Other shop")
	c.changes("environment", "environment video-quality", "premium", "--environment="+env)
	c.changes("environment", "environment live-rungs", "always", "--environment="+env)
	c.changes("environment", "environment captions", "default", "--environment="+env)
	c.changes("environment", "environment frame-ancestors", "none", "--environment="+env)
	c.changes("retention_policy", "retention on", "--max-age=90d", "--yes")
	c.reads("retention on", "--max-age=30d")
	c.reads("retention preview")
	c.changes("retention_policy", "retention off")
	c.changes("asset", "retention exempt", c.asset())
	c.changes("asset", "retention include", c.asset())
	token := c.changes("access_token", "token create", "--name=ci")
	c.changes("access_token", "token revoke", token)
	c.reads("token list")
	key := c.changes("signing_key", "signing-key create")
	c.reads("signing-key list")
	c.changes("signing_key", "signing-key delete", key)
	hook := c.changes("webhook", "webhook create", "https://hooks.example/")
	c.reads("webhook list")
	c.changes("webhook", "webhook disable", hook)
	c.changes("webhook", "webhook enable", hook)
	c.changes("webhook", "webhook rotate-secret", hook)
	tested := c.changes("webhook", "webhook test", hook)
	c.queue(id.Webhook(hook), tested)
	c.changes("webhook", "webhook skip", hook, tested)
	c.changes("webhook", "webhook retry", hook)
	c.changes("webhook", "webhook replay", hook, "--since=2026-01-02T15:04:05Z")
	c.reads("webhook deliveries", hook)
	c.changes("webhook", "webhook delete", hook)
	encrypts := c.changes("drm_configuration", "drm-configuration create", "--clear-key")
	c.reads("drm-configuration list")
	c.changes("drm_configuration", "drm-configuration set-vendors", encrypts, vendors)
	c.changes("drm_configuration", "drm-configuration delete", encrypts)
	c.changes("dashboard_link", "dashboard link")
	c.changes("master_key", "master-key rotate")
	c.reads("master-key fingerprint")
	c.reads("audit")
	c.reads("nodes")
	c.register("here")
	c.changes("node", "nodes drain", "here")
	c.changes("node", "nodes resume", "here")
	if err := os.Mkdir(filepath.Join(dir, "storage"), 0o700); err != nil { // serve makes it
		t.Fatal(err)
	}
	place := filepath.Join(t.TempDir(), "backup")
	c.reads("backup", place)
	c.reads("backup verify", place)
	// The new database has the entry.
	c.reads("migrate", "--to=sqlite:"+filepath.Join(t.TempDir(), "new.db"), "--storage="+t.TempDir())
	// It comes behind the audit log of the backup.
	c.changes("snapshot", "restore", place, "--overwrite")
	for _, without := range []string{ // they run the service or ask it, or open no database, or only follow it
		"serve", "demo", "doctor", "health", "size", "upload", "token sign", "events tail", "config check", "version",
		"help", "completion",
	} {
		c.ran[without] = true
	}
	var help bytes.Buffer
	cli.Run(t.Context(), []string{"help"}, nil, &help, &help, cli.Actions{})
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+(?: [a-z-]+)?)  `).FindAllStringSubmatch(help.String(), -1) {
		if !c.ran[m[1]] {
			t.Errorf("%s was not run: does it change anything?", m[1])
		}
	}
}
