// Package release tests what is published of a version: that it can be made again, what is in it, and that it installs.
package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"millrace/internal/programtest"
)

// Two versions, of which the second is newer.
const (
	first, second = "1.0.0-rc.1", "1.0.0"
	commit        = "0123456789abcdef0123456789abcdef01234567"
	seconds       = "1790000000" // 2026-09-21T14:13:20Z
)

// repository is this one's folder.
const repository = "../.."

// sources are what a release is made from.
func sources() []string {
	return []string{"go.mod", "go.sum", "LICENSE", "CHANGELOG.md", "cmd", "docs", "internal", "deploy"}
}

// made has what several tests need, which is made once.
type made struct {
	folder string // with a folder for each release: first, again, second
	copied string // sources of again and second
	err    error
}

// One for the test process.
var (
	once     sync.Once
	releases made
)

func TestMain(m *testing.M) {
	code := m.Run()
	if releases.folder != "" {
		_ = os.RemoveAll(releases.folder)
	}
	os.Exit(code)
}

// all makes the releases: first here, and again from a copy in another folder; second from the copy, with another
// settings file.
func all(t *testing.T) made {
	t.Helper()
	programtest.Inputs(t, repository+"/tools/release")
	once.Do(func() { releases = build() })
	if releases.err != nil {
		t.Fatal(releases.err)
	}
	return releases
}

func build() (m made) {
	if m.folder, m.err = os.MkdirTemp("", "millrace-bin-"); m.err != nil {
		return m
	}
	tool := filepath.Join(m.folder, "release")
	run := func(name string, args ...string) {
		if m.err != nil {
			return
		}
		if out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput(); err != nil {
			m.err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	release := func(root, version, to string) {
		run(tool, "-root", root, "-out", filepath.Join(m.folder, to), "-arch", runtime.GOARCH, "-version", version,
			"-commit", commit, "-time", seconds)
	}
	run("go", "-C", repository+"/tools/release", "build", "-o", tool, ".")
	release(repository, first, "first")
	m.copied = filepath.Join(m.folder, "elsewhere")
	for _, path := range sources() {
		if m.err == nil {
			m.err = copyTree(filepath.Join(m.copied, path), filepath.Join(repository, path))
		}
	}
	release(m.copied, first, "again")
	settings := filepath.Join(m.copied, "deploy/millrace.yaml")
	text, err := os.ReadFile(settings)
	if err == nil {
		err = os.WriteFile(settings, append(text, "\n# A setting that is new.\n"...), 0o644)
	}
	if m.err == nil {
		m.err = err
	}
	release(m.copied, second, "second")
	return m
}

func copyTree(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// names are those of the files in a folder.
func names(t *testing.T, folder string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// file is the one whose name ends so.
func file(t *testing.T, folder, end string) string {
	t.Helper()
	for _, name := range names(t, folder) {
		if strings.HasSuffix(name, end) {
			return filepath.Join(folder, name)
		}
	}
	t.Fatalf("%s has no %s", folder, end)
	return ""
}

// TestReleaseTwice: a release made from the same sources in another folder has the same bytes.
func TestReleaseTwice(t *testing.T) {
	m := all(t)
	here, there := filepath.Join(m.folder, "first"), filepath.Join(m.folder, "again")
	if a, b := names(t, here), names(t, there); !slices.Equal(a, b) {
		t.Fatalf("other files: %q, %q", a, b)
	}
	for _, name := range names(t, here) {
		if !bytes.Equal(read(t, here, name), read(t, there, name)) {
			t.Errorf("%s differs", name)
		}
	}
	if a, b := read(t, here, "SHA256SUMS"), read(t, m.folder, "second", "SHA256SUMS"); bytes.Equal(a, b) {
		t.Error("another version has the same checksums")
	}
}

// TestReleaseFromNothing: what the cache of builds had for the first build is not needed for the second to be equal. A
// small program stands for both: compiling the large one takes minutes.
func TestReleaseFromNothing(t *testing.T) {
	m := all(t)
	out := filepath.Join(t.TempDir(), "millrace-speech")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w "+
		"-X millrace/internal/app/cli.release="+first+" -X millrace/internal/app/cli.releaseCommit="+commit+
		" -X millrace/internal/app/cli.releaseTime=2026-09-21T14:13:20Z", "-o", out, "./cmd/millrace-speech")
	cmd.Dir = m.copied
	cmd.Env = append(cmd.Environ(), "GOCACHE="+t.TempDir(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	unpacked := unpack(t, filepath.Join(m.folder, "first"))
	if !bytes.Equal(read(t, out), read(t, unpacked, "millrace-speech")) {
		t.Error("it differs when nothing is taken from the cache")
	}
}

// unpack unpacks the archive and returns its folder.
func unpack(t *testing.T, release string) string {
	t.Helper()
	to := t.TempDir()
	programtest.Run(t, "tar", "-xzf", file(t, release, ".tar.gz"), "-C", to)
	return filepath.Join(to, names(t, to)[0])
}

// TestReleaseArchive: the archive has all that is needed, and its programs say which version they are; no program names
// a folder of the machine that built it.
func TestReleaseArchive(t *testing.T) {
	m := all(t)
	release := filepath.Join(m.folder, "first")
	check := exec.CommandContext(t.Context(), programtest.Path(t, "sha256sum"), "--check", "--strict", "SHA256SUMS")
	check.Dir = release
	said, err := check.CombinedOutput()
	if n := strings.Count(string(said), ": OK\n"); err != nil || n != len(names(t, release))-1 {
		t.Errorf("checksums: %v\n%s", err, said)
	}
	folder := unpack(t, release)
	if want := "millrace-" + first + "-linux-" + runtime.GOARCH; filepath.Base(folder) != want {
		t.Errorf("the folder is %s, want %s", filepath.Base(folder), want)
	}
	want := []string{
		"CHANGELOG.md", "LICENCES", "LICENSE", "completion", "millrace", "millrace-speech", "millrace.1",
		"millrace.service", "millrace.yaml",
	}
	if got := names(t, folder); !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}
	version := strings.TrimSpace(string(programtest.Run(t, filepath.Join(folder, "millrace"), "version")))
	from := fmt.Sprintf("millrace %s (commit %s, 2026-09-21T14:13:20Z, %s, linux/%s)",
		first, commit, runtime.Version(), runtime.GOARCH)
	if version != from {
		t.Errorf("millrace version: %s, want %s", version, from)
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"millrace", "millrace-speech"} {
		content := read(t, folder, program)
		for _, place := range []string{root, m.folder} {
			if bytes.Contains(content, []byte(place)) {
				t.Errorf("%s names %s", program, place)
			}
		}
	}
}

// sbom is of CycloneDX what is read here.
type sbom struct {
	BOMFormat   string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Metadata    struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	} `json:"metadata"`
	Components   []component `json:"components"`
	Dependencies []struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	} `json:"dependencies"`
}

type component struct {
	Ref      string `json:"bom-ref"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Licenses []struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	} `json:"licenses"`
	Hashes []struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	} `json:"hashes"`
}

// TestReleaseParts: the SBOM has each module that the linker has noted in the programs, with its version and checksum,
// and what is embedded; each part has a licence, and its text is in the file of licences.
func TestReleaseParts(t *testing.T) {
	m := all(t)
	release := filepath.Join(m.folder, "first")
	folder := unpack(t, release)
	var list sbom
	if err := json.Unmarshal(read(t, file(t, release, ".cdx.json")), &list); err != nil {
		t.Fatal(err)
	}
	if list.BOMFormat != "CycloneDX" || list.SpecVersion != "1.6" || list.Metadata.Component.Version != first ||
		list.Metadata.Timestamp != "2026-09-21T14:13:20Z" {
		t.Errorf("it begins with %s %s, %+v", list.BOMFormat, list.SpecVersion, list.Metadata)
	}
	licences := string(read(t, folder, "LICENCES"))
	parts := map[string]component{}
	for _, c := range list.Components {
		parts[c.Name] = c
		if len(c.Licenses) == 0 {
			t.Errorf("%s has no licence", c.Name)
		}
		if !strings.Contains(licences, "\n"+c.Name+" "+c.Version+": "+c.Licenses[0].License.ID) ||
			!regexp.MustCompile(`\n\S+ of `+regexp.QuoteMeta(c.Name+" "+c.Version)+`\n`).MatchString(licences) {
			t.Errorf("LICENCES does not have %s %s, or no text of it", c.Name, c.Version)
		}
	}
	noted := map[string]bool{"Go standard library": true, "hls.js": true}
	for _, program := range []string{"millrace", "millrace-speech"} {
		info, err := buildinfo.ReadFile(filepath.Join(folder, program))
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range info.Deps {
			noted[dep.Path] = true
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(dep.Sum, "h1:"))
			if err != nil || len(sum) != sha256.Size {
				t.Fatalf("%s of %s has the checksum %q", dep.Path, program, dep.Sum)
			}
			c := parts[dep.Path]
			if c.Version != dep.Version || len(c.Hashes) != 1 || c.Hashes[0].Content != hex.EncodeToString(sum) {
				t.Errorf("%s has %s %s (%s); the list has %+v", program, dep.Path, dep.Version, dep.Sum, c)
			}
		}
		if std := parts["Go standard library"]; std.Version != info.GoVersion {
			t.Errorf("built by %s, the list has %s", info.GoVersion, std.Version)
		}
	}
	refs := map[string]bool{list.Metadata.Component.Ref: true}
	for name, c := range parts {
		refs[c.Ref] = true
		if !noted[name] {
			t.Errorf("%s is linked into no program", name)
		}
	}
	reached, next := map[string]bool{}, []string{list.Metadata.Component.Ref}
	for len(next) > 0 {
		ref := next[0]
		next = next[1:]
		for _, d := range list.Dependencies {
			if d.Ref == ref && !reached[ref] {
				next = append(next, d.DependsOn...)
			}
		}
		reached[ref] = true
	}
	for ref := range refs {
		if !reached[ref] {
			t.Errorf("nothing depends on %s", ref)
		}
	}
}
