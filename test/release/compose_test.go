package release

import (
	"encoding/json"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/programtest"
)

// stopping is how long the service may take to stop: shutdown-timeout, and ten seconds until it is ended.
func stopping(of config.Config) time.Duration { return of.ShutdownTimeout + 10*time.Second }

// settingsOf are the settings that an environment gives. Each variable has to be one, and its value has to be valid.
func settingsOf(t *testing.T, where string, environ []string) config.Config {
	t.Helper()
	c, err := config.Parse(nil, environ, os.ReadFile)
	if err != nil || len(c.Warnings) > 0 {
		t.Errorf("%s: %v %q", where, err, c.Warnings)
	}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return s.Env() == name }) {
			t.Errorf("%s: %s is no setting", where, name)
		}
	}
	return c
}

// deployed runs tools/deploy.
func deployed(t *testing.T, into any, args ...string) {
	t.Helper()
	programtest.Inputs(t, repository+"/tools/deploy")
	programtest.Inputs(t, repository+"/deploy")
	out := programtest.Run(t, "go", append([]string{"-C", repository + "/tools/deploy", "run", "."}, args...)...)
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// composition is a Compose file as Docker Compose reads it.
type composition struct {
	Services map[string]composed `json:"services"`
	Volumes  map[string]struct{} `json:"volumes"`
	Networks map[string]struct {
		IPAM struct {
			Config []struct{ Subnet netip.Prefix }
		}
	} `json:"networks"`
}

// composed is one service of it.
type composed struct {
	Image       string            `json:"image"`
	Restart     string            `json:"restart"`
	Command     []string          `json:"command"`
	Environment map[string]string `json:"environment"`
	ReadOnly    bool              `json:"read_only"`
	CapDrop     []string          `json:"cap_drop"`
	SecurityOpt []string          `json:"security_opt"`
	Tmpfs       []string          `json:"tmpfs"`
	StopGrace   string            `json:"stop_grace_period"`
	DependsOn   map[string]struct {
		Condition string `json:"condition"`
	} `json:"depends_on"`
	Healthcheck struct {
		Test []string `json:"test"`
	} `json:"healthcheck"`
	Networks map[string]struct {
		Address string `json:"ipv4_address"`
	} `json:"networks"`
	Ports []struct {
		Target    int    `json:"target"`
		Published string `json:"published"`
		Protocol  string `json:"protocol"`
	} `json:"ports"`
	Volumes []struct {
		Type, Source, Target string
	} `json:"volumes"`
}

// settings are those of a node.
func (c composed) settings(t *testing.T, name string) config.Config {
	t.Helper()
	var environ []string
	for _, key := range slices.Sorted(maps.Keys(c.Environment)) {
		environ = append(environ, key+"="+c.Environment[key])
	}
	return settingsOf(t, name, environ)
}

// listens are the ports on which a node listens, as an image names them.
func listens(c config.Config) (ports []string) {
	for protocol, addresses := range map[string][]string{
		"tcp": {c.HTTPAddr, c.RTMPAddr, c.WebRTCTCPAddr}, "udp": {c.SRTAddr, c.WebRTCUDPAddr},
	} {
		for _, a := range addresses {
			ports = append(ports, a[strings.LastIndex(a, ":")+1:]+"/"+protocol)
		}
	}
	return ports
}

// checkNode checks a service that is the image.
func checkNode(t *testing.T, name string, c composed) config.Config {
	t.Helper()
	of := c.settings(t, name)
	grace, err := time.ParseDuration(c.StopGrace)
	if err != nil || grace <= stopping(of) {
		t.Errorf("%s: %s (%v) is not longer than it may take to stop, %s", name, c.StopGrace, err, stopping(of))
	}
	if c.Image != "millrace" || c.Restart != "unless-stopped" || !c.ReadOnly ||
		!slices.Equal(c.CapDrop, []string{"ALL"}) ||
		!slices.Equal(c.SecurityOpt, []string{"no-new-privileges:true"}) || !slices.Equal(c.Tmpfs, []string{"/tmp"}) {
		t.Errorf("%s is not confined: %+v", name, c)
	}
	if !slices.Equal(c.Healthcheck.Test, []string{"CMD", "millrace", "health"}) {
		t.Errorf("%s: the check is %q", name, c.Healthcheck.Test)
	}
	for _, p := range c.Ports {
		port := strconv.Itoa(p.Target) + "/" + p.Protocol
		if !slices.Contains(listens(of), port) {
			t.Errorf("%s: nothing listens on %s", name, port)
		}
		if port != strings.TrimPrefix(of.WebRTCUDPAddr, ":")+"/udp" &&
			port != strings.TrimPrefix(of.WebRTCTCPAddr, ":")+"/tcp" {
			continue
		}
		if p.Published != strconv.Itoa(p.Target) {
			t.Errorf("%s: publishers are told port %d, which is %s outside", name, p.Target, p.Published)
		}
	}
	data := slices.IndexFunc(c.Volumes, func(v struct{ Type, Source, Target string }) bool {
		return v.Type == "volume" && v.Target == "/var/lib/millrace"
	})
	if data < 0 {
		t.Errorf("%s: the data folder is no volume: %+v", name, c.Volumes)
	}
	return of
}

// checkAll checks what holds for every service of a file.
func checkAll(t *testing.T, of composition) {
	t.Helper()
	outside := map[string]string{}
	for name, c := range of.Services {
		if len(c.Healthcheck.Test) < 2 || c.Healthcheck.Test[0] != "CMD" || c.Restart == "" {
			t.Errorf("%s: check %q, restart %q", name, c.Healthcheck.Test, c.Restart)
		}
		for other, d := range c.DependsOn {
			if d.Condition != "service_healthy" {
				t.Errorf("%s waits for %s until %s", name, other, d.Condition)
			}
		}
		for _, p := range c.Ports {
			port := p.Published + "/" + p.Protocol
			if before := outside[port]; before != "" {
				t.Errorf("%s and %s both have port %s", name, before, port)
			}
			outside[port] = name
		}
		if _, version, ok := strings.Cut(c.Image, ":"); c.Image != "millrace" && (!ok || version == "latest") {
			t.Errorf("%s has %s, of no version", name, c.Image)
		}
	}
}

// example are the variables of an example.env, with a value for those that have none.
func example(t *testing.T, folder string) (variables []string) {
	t.Helper()
	for line := range strings.Lines(string(read(t, folder, "example.env"))) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		name, value, ok := strings.Cut(line, "=")
		if ok && regexp.MustCompile(`^[A-Z_]+$`).MatchString(name) && name != "IMAGE" {
			if value == "" {
				value = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
			}
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// TestCompose: the file for one node starts without settings, and with all that example.env has.
func TestCompose(t *testing.T) {
	folder := repository + "/deploy/compose"
	for _, variables := range [][]string{nil, example(t, folder)} {
		var of composition
		deployed(t, &of, append([]string{"compose", "../../deploy/compose/compose.yaml"}, variables...)...)
		checkAll(t, of)
		node := checkNode(t, "millrace", of.Services["millrace"])
		if got := len(of.Services["millrace"].Ports); got != len(listens(node)) {
			t.Errorf("%d ports are published, but it listens on %q", got, listens(node))
		}
		base := node.PublicBase(":8080").String()
		if variables != nil && (base != "http://video.example.org:8080" || node.TokenID != "first") {
			t.Errorf("example.env changes nothing: %+v", node)
		}
	}
}

// TestComposeFleet: the nodes share all that they have to, nginx knows both, and starts when they are up.
func TestComposeFleet(t *testing.T) {
	folder := repository + "/deploy/compose/fleet"
	var of composition
	deployed(t, &of, append([]string{"compose", "../../deploy/compose/fleet/compose.yaml"}, example(t, folder)...)...)
	checkAll(t, of)
	nodes := []string{"node1", "node2"}
	services := []string{"nginx", "node1", "node2", "postgres", "storage"}
	if got := slices.Sorted(maps.Keys(of.Services)); !slices.Equal(got, services) {
		t.Fatalf("it has %q", got)
	}
	nginx := string(read(t, repository, "docs/front/nginx.conf"))
	subnet := of.Networks["default"].IPAM.Config[0].Subnet
	var shared []string
	for _, name := range nodes {
		c := of.Services[name]
		node := checkNode(t, name, c)
		want := "http://" + name + node.InternalAddr
		if node.AdvertiseURL == nil || node.AdvertiseURL.String() != want || node.Node.ID != name {
			t.Errorf("%s is called %s, at %s, want %s", name, node.Node.ID, node.AdvertiseURL, want)
		}
		address := c.Networks["default"].Address
		if !strings.Contains(nginx, "server "+address+node.HTTPAddr+" ") ||
			!subnet.Contains(netip.MustParseAddr(address)) {
			t.Errorf("%s has the address %s, which nginx.conf does not have, or %s", name, address, subnet)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(c.DependsOn)), []string{"postgres", "storage"}) {
			t.Errorf("%s waits for %+v", name, c.DependsOn)
		}
		has := ""
		for _, variable := range []string{
			"MILLRACE_DATABASE_URL", "MILLRACE_STORAGE_URL", "MILLRACE_MASTER_KEY", "AWS_ACCESS_KEY_ID",
			"AWS_SECRET_ACCESS_KEY",
		} {
			has += c.Environment[variable] + " "
		}
		shared = append(shared, has)
	}
	if shared[0] != shared[1] {
		t.Errorf("the nodes have other databases, storages or keys: %q", shared)
	}
	one := of.Services["node1"].Environment
	front, database, storage := of.Services["nginx"], of.Services["postgres"].Environment, of.Services["storage"]
	want := "postgres://" + database["POSTGRES_USER"] + ":" + database["POSTGRES_PASSWORD"] + "@postgres/"
	if !strings.HasPrefix(one["MILLRACE_DATABASE_URL"], want) {
		t.Errorf("the database is %s, want %s", one["MILLRACE_DATABASE_URL"], want)
	}
	if one["AWS_ACCESS_KEY_ID"] != storage.Environment["ROOT_ACCESS_KEY"] ||
		one["AWS_SECRET_ACCESS_KEY"] != storage.Environment["ROOT_SECRET_KEY"] ||
		!strings.Contains(one["MILLRACE_STORAGE_URL"], "endpoint=http://storage:7070&") {
		t.Errorf("the nodes don't reach the storage: %q", one)
	}
	if got := front.Networks["default"].Address + "/32"; got != one["MILLRACE_TRUSTED_PROXIES"] {
		t.Errorf("the nodes trust %s, but nginx has %s", one["MILLRACE_TRUSTED_PROXIES"], got)
	}
	if !slices.Equal(slices.Sorted(maps.Keys(front.DependsOn)), nodes) {
		t.Errorf("nginx waits for %+v", front.DependsOn)
	}
	var files []string
	for _, v := range front.Volumes {
		if v.Type == "bind" {
			files = append(files, path.Base(v.Source)+" "+v.Target)
		}
	}
	for _, directive := range []string{"ssl_certificate ", "ssl_certificate_key "} {
		at := regexp.MustCompile(directive + ` *(\S+);`).FindStringSubmatch(nginx)
		if at == nil || !strings.Contains(strings.Join(files, "\n"), " "+at[1]) {
			t.Errorf("%sis %q, which is not among %q", directive, at, files)
		}
	}
	conf, err := filepath.EvalSymlinks(front.Volumes[0].Source)
	if err != nil || !strings.HasSuffix(conf, "docs/front/nginx.conf") {
		t.Errorf("nginx has the settings %s: %v", front.Volumes[0].Source, err)
	}
	// The storage is what the tests run.
	version := regexp.MustCompile(`versity/versitygw (v\S+)`).FindSubmatch(read(t, repository, "tools/s3/go.mod"))
	if want := "versity/versitygw:" + string(version[1]); storage.Image != want {
		t.Errorf("the storage is %s, want %s", storage.Image, want)
	}
}

// TestComposeRefuses: a file that is wrong is not read.
func TestComposeRefuses(t *testing.T) {
	fleet := string(read(t, repository, "deploy/compose/fleet/compose.yaml"))
	all := example(t, repository+"/deploy/compose/fleet")
	for name, tt := range map[string]struct{ old, by string }{
		"read":                  {"", ""},
		"a misspelt key":        {"read_only:", "readonly:"},
		"a missing service":     {"storage: {condition:", "store: {condition:"},
		"a missing volume":      {"node1:/var/lib", "node3:/var/lib"},
		"a variable not set":    {"${MASTER_KEY:?}", "${MASTER:?}"},
		"a condition not known": {"service_healthy", "service_up"},
	} {
		file := filepath.Join(t.TempDir(), "compose.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(fleet, tt.old, tt.by, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", ".", "compose", file}, all...)...)
		cmd.Dir = repository + "/tools/deploy"
		if out, err := cmd.CombinedOutput(); (err == nil) != (tt.old == "") {
			t.Errorf("%s: %v:\n%s", name, err, out)
		}
	}
}

// TestDockerRun: the command in docs/docker.md fits the image.
func TestDockerRun(t *testing.T) {
	const begin, end = "<!-- docker run, checked by TestDockerRun -->\n```\n", "\n```\n"
	_, rest, ok := strings.Cut(string(read(t, repository, "docs/docker.md")), begin)
	command, _, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/docker.md has no %q", begin)
	}
	words := strings.Fields(strings.ReplaceAll(command, "\\\n", ""))
	if !slices.Equal(words[:2], []string{"docker", "run"}) || words[len(words)-1] != "millrace" {
		t.Fatalf("it is %q", words)
	}
	options := map[string][]string{}
	for i, w := range words {
		if strings.HasPrefix(w, "--") {
			options[w] = append(options[w], words[i+1])
		}
	}
	of := settingsOf(t, "docs/docker.md", options["--env"])
	var ports []string
	for _, p := range options["--publish"] {
		outside, inside, _ := strings.Cut(p, ":")
		if port, protocol, ok := strings.Cut(inside, "/"); port != outside {
			t.Errorf("%s is another port outside", p)
		} else if !ok {
			inside = port + "/tcp"
		} else if protocol != "udp" {
			t.Errorf("%s is of no protocol", p)
		}
		ports = append(ports, inside)
	}
	want := listens(of)
	slices.Sort(ports)
	slices.Sort(want)
	if !slices.Equal(ports, want) {
		t.Errorf("it publishes %q, want %q", ports, want)
	}
	seconds, err := strconv.Atoi(options["--stop-timeout"][0])
	if err != nil || time.Duration(seconds)*time.Second <= stopping(of) {
		t.Errorf("it is ended after %d s, but may take %s", seconds, stopping(of))
	}
	if got := options["--volume"]; !slices.Equal(got, []string{"millrace:/var/lib/millrace"}) {
		t.Errorf("its volumes are %q", got)
	}
}
