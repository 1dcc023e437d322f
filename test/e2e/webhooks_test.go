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

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// TestWebhooksPage runs every command of docs/webhooks.md, in order, against a server.
func TestWebhooksPage(t *testing.T) {
	rig.Parallel(t)
	programtest.NodePackages(t, "../sdk")
	for _, program := range []string{"curl", "bash", "openssl", "go"} {
		programtest.Path(t, program)
	}
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	project, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	packages := filepath.Join(project, "test/sdk/node_modules")
	if err = os.Symlink(packages, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	inNode, inGo := blocks(string(page), "js"), blocks(string(page), "go")
	if len(inNode) != 1 || len(inGo) != 1 {
		t.Fatalf("%d programs in JavaScript, %d in Go", len(inNode), len(inGo))
	}
	commands := append([]string{
		"set -euxo pipefail", "trap 'kill $(jobs -p)' EXIT",
		// A reader has a module with the library; here it is the project's.
		"go() { command go \"$1\" -C " + project + "/tools/sdk \"$2\" \"$PWD/$3\" \"$PWD/$4\"; }",
	}, blocks(string(page), "sh")...)
	for name, text := range map[string]string{
		"receiver.mjs": inNode[0], "receiver.go": inGo[0], "page.sh": strings.Join(commands, "\n"),
	} {
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
	ports := freePorts(t, 2)
	cmd.Env = append(os.Environ(), "BASE="+s.HTTP, "PORT="+ports[0], "GO_PORT="+ports[1],
		"MILLRACE_TOKEN_ID="+key, "MILLRACE_TOKEN_SECRET="+secret,
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

// freePorts are ports that nobody listens on, and that nobody else is given: the system chooses from higher ones, for
// servers and for clients.
func freePorts(t *testing.T, count int) (ports []string) {
	t.Helper()
	for port := 20000 + os.Getpid()%1000; port < 32000 && len(ports) < count; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			ports = append(ports, strconv.Itoa(port))
		}
	}
	if len(ports) < count {
		t.Fatal("no port is free")
	}
	return ports
}
