package h2_test

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"millrace/internal/web/express/h2"
)

// h2spec is where the program of that name is, which is built first if need be.
func h2spec(t *testing.T) string {
	t.Helper()
	if os.Getenv("MILLRACE_TEST_REQUIRE") == "" {
		t.Skip("h2spec may have to be built")
	}
	path, err := exec.CommandContext(t.Context(), "../../../../scripts/tool.sh", "h2spec").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(path))
}

// TestSpec runs h2spec, whose tests are what RFC 9113 and RFC 7541 ask of a server.
func TestSpec(t *testing.T) {
	t.Parallel()
	spec := h2spec(t)
	h := http.HandlerFunc(echo)
	s := serve(t, h2.Options{}, h, h)
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v/large", "/large"} {
		cmd := exec.CommandContext(t.Context(), spec, "-t", "-k", "-S", "-o", "30", "-h", host, "-p", port, "-P", path)
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("146 tests, 146 passed")) {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}
