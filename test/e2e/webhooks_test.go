package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestWebhooksPage runs every command of docs/webhooks.md, in order, against a server.
func TestWebhooksPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Abs("../sdk/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = os.Stat(filepath.Join(packages, "@mux/mux-node")); err != nil {
		rig.Missing(t, "the client library is not installed: run npm ci in test/sdk")
	}
	folder := t.TempDir()
	if err = os.Symlink(packages, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	programs := blocks(string(page), "js")
	if len(programs) != 1 {
		t.Fatalf("%d programs", len(programs))
	}
	commands := append([]string{"set -euxo pipefail", "trap 'kill $(jobs -p)' EXIT"}, blocks(string(page), "sh")...)
	for name, text := range map[string]string{"receiver.mjs": programs[0], "page.sh": strings.Join(commands, "\n")} {
		if err = os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := rig.Start(t, rig.Options{})
	key, secret := s.Token()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "page.sh")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "BASE="+s.HTTP, "PORT="+freePort(t), "MILLRACE_TOKEN_ID="+key, "MILLRACE_TOKEN_SECRET="+secret,
		"MILLRACE_DATA_DIR="+s.Dir, "PATH="+filepath.Dir(rig.Binary(t))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if strings.Contains(s.Log(), secret) || strings.Contains(s.Log(), "WEBHOOK_SECRET") {
		t.Error("a secret is in the log")
	}
}

// blocks are the parts of a page in one language.
func blocks(page, language string) (all []string) {
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		all = append(all, found[1])
	}
	return all
}

// freePort is a port that nobody listens on, and that nobody else is given: the system chooses from higher ones, for servers and for clients.
func freePort(t *testing.T) string {
	t.Helper()
	for port := 20000 + os.Getpid()%1000; port < 32000; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return strconv.Itoa(port)
		}
	}
	t.Fatal("no port is free")
	return ""
}
