package release

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"millrace/internal/programtest"
)

// onMachines are the paths that a package has on a machine, but for the folders.
func onMachines(zsh string) []string {
	paths := []string{
		"/etc/millrace.yaml",
		"/usr/bin/millrace",
		"/usr/bin/millrace-speech",
		"/usr/lib/systemd/system/millrace.service",
		"/usr/share/bash-completion/completions/millrace",
		"/usr/share/doc/millrace/CHANGELOG.md",
		"/usr/share/doc/millrace/LICENSE",
		"/usr/share/doc/millrace/copyright",
		"/usr/share/fish/vendor_completions.d/millrace.fish",
		"/usr/share/man/man1/millrace.1.gz",
		"/usr/share/zsh/" + zsh + "/_millrace",
	}
	slices.Sort(paths)
	return paths
}

// TestDebianPackage: what dpkg reads of it.
func TestDebianPackage(t *testing.T) {
	release := filepath.Join(all(t).folder, "first")
	deb := file(t, release, ".deb")
	if want := "millrace_1.0.0~rc.1-1_" + runtime.GOARCH + ".deb"; filepath.Base(deb) != want {
		t.Errorf("it is called %s, want %s", filepath.Base(deb), want)
	}
	field := func(name string) string {
		return strings.TrimSpace(string(programtest.Run(t, "dpkg-deb", "--field", deb, name)))
	}
	for name, want := range map[string]string{
		"Package": "millrace", "Version": "1.0.0~rc.1-1", "Architecture": runtime.GOARCH, "Pre-Depends": "passwd",
		"Depends": "ffmpeg, ca-certificates, init-system-helpers", "Recommends": "pocketsphinx-en-us",
	} {
		if got := field(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	control, data := t.TempDir(), t.TempDir()
	programtest.Run(t, "dpkg-deb", "--control", deb, control)
	if got := string(read(t, control, "conffiles")); got != "/etc/millrace.yaml\n" {
		t.Errorf("conffiles: %q", got)
	}
	programtest.Run(t, "dpkg-deb", "--extract", deb, data)
	var paths []string
	for line := range strings.Lines(string(programtest.Run(t, "dpkg-deb", "--contents", deb))) {
		fields := strings.Fields(line)
		path := strings.TrimPrefix(fields[5], ".")
		if strings.HasSuffix(path, "/") {
			continue
		}
		paths = append(paths, path)
		owner, mode := "root/root", "-rw-r--r--"
		switch {
		case path == "/etc/millrace.yaml": // may have passwords
			owner, mode = "root/millrace", "-rw-r-----"
		case strings.HasPrefix(path, "/usr/bin/"):
			mode = "-rwxr-xr-x"
		}
		if fields[0] != mode || fields[1] != owner || fields[3] != "2026-09-21" {
			t.Errorf("%s, want %s %s of 2026-09-21", strings.TrimSpace(line), mode, owner)
		}
	}
	slices.Sort(paths)
	if want := onMachines("vendor-completions"); !slices.Equal(paths, want) {
		t.Errorf("it has %q, want %q", paths, want)
	}
	unpacked := unpack(t, release)
	for _, program := range []string{"millrace", "millrace-speech"} {
		if string(read(t, data, "usr/bin", program)) != string(read(t, unpacked, program)) {
			t.Errorf("%s is another one than in the archive", program)
		}
	}
}

// TestRPM: what rpm, which is not what wrote it, reads of it and does with it: files are whole, and settings that were
// changed are kept.
func TestRPM(t *testing.T) {
	m := all(t)
	older := file(t, filepath.Join(m.folder, "first"), ".rpm")
	newer := file(t, filepath.Join(m.folder, "second"), ".rpm")
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if want := "millrace-1.0.0~rc.1-1." + machine + ".rpm"; filepath.Base(older) != want {
		t.Errorf("it is called %s, want %s", filepath.Base(older), want)
	}
	rpm := func(args ...string) string {
		database := filepath.Join(t.TempDir(), "rpm") // none of the machine's
		return strings.TrimSpace(string(programtest.Run(t, "rpm", append([]string{"--dbpath", database}, args...)...)))
	}
	if got := rpm("-K", "--nosignature", older); !strings.HasSuffix(got, "digests OK") {
		t.Errorf("rpm -K: %s", got)
	}
	paths := strings.Split(rpm("-qlp", older), "\n")
	slices.Sort(paths)
	if want := onMachines("site-functions"); !slices.Equal(paths, want) {
		t.Errorf("it has %q, want %q", paths, want)
	}
	if got := rpm("-qcp", older); got != "/etc/millrace.yaml" {
		t.Errorf("its settings are %q", got)
	}
	const fields = "%{VERSION} %{RELEASE} %{ARCH} %{LICENSE} %{BUILDHOST} %{BUILDTIME}"
	want := "1.0.0~rc.1 1 " + machine + " Apache-2.0 localhost " + seconds
	if got := rpm("-qp", "--queryformat", fields, older); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	requires := strings.Split(rpm("-qp", "--requires", older), "\n")
	for _, want := range []string{"/usr/bin/ffmpeg", "/usr/bin/ffprobe", "ca-certificates", "shadow-utils"} {
		if !slices.Contains(requires, want) {
			t.Errorf("it does not require %s, but %q", want, requires)
		}
	}
	scripts := rpm("-qp", "--scripts", older)
	for _, want := range []string{
		"useradd --system", "preset millrace.service", "disable --now millrace.service", "try-restart millrace.service",
	} {
		if !strings.Contains(scripts, want) {
			t.Errorf("its scripts don't have %q:\n%s", want, scripts)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can install packages")
	}
	root := t.TempDir()
	install := func(args ...string) {
		t.Helper()
		args = append([]string{"--root", root, "--force-debian", "--nodeps", "--noscripts"}, args...)
		programtest.Run(t, "rpm", args...)
	}
	settings := filepath.Join(root, "etc/millrace.yaml")
	install("--install", older)
	changed := append(read(t, settings), "log-format: json\n"...)
	if err := os.WriteFile(settings, changed, 0o640); err != nil {
		t.Fatal(err)
	}
	install("--upgrade", newer)
	if got := string(read(t, settings)); got != string(changed) {
		t.Errorf("the upgrade has changed the settings:\n%s", got)
	}
	if got := string(read(t, settings+".rpmnew")); !strings.Contains(got, "# A setting that is new.") {
		t.Errorf("the new settings are not beside them:\n%s", got)
	}
	got := string(programtest.Run(t, filepath.Join(root, "usr/bin/millrace"), "version"))
	if !strings.HasPrefix(got, "millrace "+second+" ") {
		t.Errorf("after the upgrade it is %s", got)
	}
}
