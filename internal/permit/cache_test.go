package permit_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"millrace/internal/programtest"
)

// nginxConfig is a cache as operators set one up, and one whose key leaves the query out, as those do who do not want a
// token to split it. What has no lifetime of its own is kept for ten minutes by both.
const nginxConfig = `daemon off;
%[5]s
pid %[1]s/pid;
error_log stderr error;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  proxy_cache_path %[1]s/usual keys_zone=usual:1m;
  proxy_cache_path %[1]s/careless keys_zone=careless:1m;
  proxy_cache_valid any 10m;
  add_header X-Cache $upstream_cache_status always;
  server {
    listen %[2]s;
    location / { proxy_pass http://%[4]s; proxy_cache usual; }
  }
  server {
    listen %[3]s;
    location / { proxy_pass http://%[4]s; proxy_cache careless; proxy_cache_key $uri; }
  }
}
`

// nginx runs two caches in front of an address and gives theirs. It inherits its listeners, so that they are there at
// once.
func nginx(t *testing.T, behind string) (usual, careless string) {
	t.Helper()
	dir := t.TempDir()
	a, b := listen(t), listen(t)
	config := filepath.Join(dir, "nginx.conf")
	user := ""
	if os.Getuid() == 0 { // else its workers are somebody who may not look into the folder
		user = "user root;"
	}
	text := fmt.Sprintf(nginxConfig, dir, a.Addr(), b.Addr(), behind, user)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, "nginx"), "-p", dir, "-e", "stderr", "-c", config)
	for _, ln := range []net.Listener{a, b} {
		f, err := ln.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		_ = ln.Close() // the copy is open
	}
	cmd.Env = []string{"NGINX=3;4;"}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close() // nginx has it
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return a.Addr().String(), b.Addr().String()
}

// step is a request to the cache.
type step struct {
	what, target, fields string
	status               int
	from                 string // X-Cache; empty: any
}

// TestCachePoisoning: behind a cache, no viewer gets what another one may have, whatever either asks for first, and
// none keeps another from what is his.
func TestCachePoisoning(t *testing.T) {
	t.Parallel()
	f := newBattle(t)
	usual, careless := nginx(t, f.addrs["express"])
	token := func(c claims) string { return "?token=" + f.own.token(c) }
	const page, evil = "Referer: https://www.example.com/\r\n", "Referer: https://evil.test/\r\n"
	at := "/" + signedID
	stories := map[string][]step{
		"the viewer with a token first": {
			{"with a token", at + ".m3u8" + token(nil), "", 200, "MISS"},
			{"without", at + ".m3u8", "", 403, "MISS"},
			{"another's token", at + ".m3u8" + token(claims{"sub": otherID}), "", 403, "MISS"},
			{"with a token again", at + ".m3u8" + token(nil), "", 200, "MISS"},
		},
		"the viewer without first": {
			{"without", at + "/thumbnail.jpg", "", 403, "MISS"},
			{"with a token", at + "/thumbnail.jpg" + token(claims{"aud": "t"}), "", 200, "MISS"},
			{"without again", at + "/thumbnail.jpg", "", 403, "MISS"},
			{"by the wrong token", at + "/thumbnail.jpg" + token(nil), "", 403, "MISS"},
		},
		"a segment by the token itself": {
			{"with a token", at + "/m1/v/7.m4s" + token(nil), "", 200, "MISS"},
			{"without", at + "/m1/v/7.m4s", "", 403, "MISS"},
			{"with a range", at + "/m1/v/7.m4s", "Range: bytes=0-3\r\n", 403, "MISS"},
			{"as somebody else", at + "/m1/v/7.m4s", "X-Forwarded-For: 127.0.0.1\r\n", 403, "MISS"},
		},
		"a file": {
			{"with a token", at + "/high.mp4" + token(nil), "", 200, "MISS"},
			{"without", at + "/high.mp4", "", 403, "MISS"},
		},
		"viewers of one path share": {
			{"the first", at + "/" + f.path + "/m1/v/8.m4s", "", 200, "MISS"},
			{"the second", at + "/" + f.path + "/m1/v/8.m4s", "", 200, "HIT"},
			{"at another playback ID", "/" + otherID + "/" + f.path + "/m1/v/8.m4s", "", 403, "MISS"},
			{"with a forged MAC", at + "/" + f.path[:len(f.path)-2] + "AA/m1/v/8.m4s", "", 403, "MISS"},
			{"without a path", at + "/m1/v/8.m4s", "", 403, "MISS"},
		},
		"a restricted path": {
			{"from the page", at + "/" + f.restricted + "/m1/v/7.m4s", page, 200, "MISS"},
			{"from another page", at + "/" + f.restricted + "/m1/v/7.m4s", evil, 403, "MISS"},
			{"from none", at + "/" + f.restricted + "/m1/v/7.m4s", "", 403, "MISS"},
			{"from the page again", at + "/" + f.restricted + "/m1/v/7.m4s", page, 200, "MISS"},
		},
		"a restricted playlist, refused first": {
			{"from another page", at + "/" + f.restricted + "/m1/v.m3u8", evil, 403, "MISS"},
			{"from the page", at + "/" + f.restricted + "/m1/v.m3u8", page, 200, "MISS"},
		},
		"a mistake does not stay": {
			{"a query that is wrong", at + "/" + f.path + "/m1/v.m3u8?_HLS_part=2", "", 400, "MISS"},
			{"as it should be", at + "/" + f.path + "/m1/v.m3u8", "", 200, "MISS"},
		},
		"a range does not stay": {
			{"one byte", at + "/" + f.path + "/m1/v/9.m4s", "Range: bytes=0-0\r\n", 206, ""},
			{"nothing of it", at + "/" + f.path + "/m1/v/9.m4s", "Range: bytes=99999-\r\n", 416, ""},
			{"all of it", at + "/" + f.path + "/m1/v/9.m4s", "", 200, ""},
		},
		"compressed and not": {
			{"compressed", at + "/" + f.path + "/m1/a.m3u8", "Accept-Encoding: gzip\r\n", 200, "MISS"},
			{"not", at + "/" + f.path + "/m1/a.m3u8", "", 200, "MISS"},
		},
		"a path that a deleted key ended": {
			{"once", at + "/" + f.replay + "/m1/v/7.m4s", "", 403, "MISS"},
			{"twice", at + "/" + f.replay + "/m1/v/7.m4s", "", 403, "MISS"},
		},
		"an address that the cache reads otherwise": {
			{"dots", "/" + publicID + "/..%2f" + signedID + "/m1/v/7.m4s", "", 404, ""},
			{"a question mark", at + "/m1/v/7.m4s%3f" + token(nil)[1:], "", 403, ""},
			{"a picture's name", at + ".m3u8/x.jpg" + token(nil), "", 404, ""},
			{"the same without a token", at + ".m3u8/x.jpg", "", 404, ""},
			{"two slashes", "//" + signedID + "/m1/v/7.m4s", "", 404, ""},
			{"a public one in front", "/" + publicID + "/../" + signedID + "/m1/v/7.m4s", "", 404, ""},
		},
	}
	for name, addr := range map[string]string{"usual": usual, "careless": careless} {
		for story, steps := range stories {
			for _, s := range steps {
				r := send(t, addr, ask(http.MethodGet, s.target, s.fields))
				served := strings.Contains(r.body, secret) || s.fields == "Range: bytes=0-0\r\n" && len(r.body) == 1
				if r.status != s.status || served != (s.status < 300) || s.from != "" && r.from != s.from {
					t.Errorf("%s cache: %s: %s: %d from %s, want %d from %s: %.200s", name, story, s.what, r.status,
						r.from, s.status, s.from, r.body)
				}
				if s.what == "not" && strings.HasPrefix(r.body, "compressed") {
					t.Errorf("%s cache: %s: %s", name, story, r.body)
				}
			}
		}
	}
}
