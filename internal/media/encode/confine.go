package encode

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Confinement is what a child can't do on this system. What is false it could, because the kernel does not offer to
// prevent it.
type Confinement struct {
	Files    bool // sees no files but those of its program and those it is given (Landlock)
	Calls    bool // has no network, and ends, slows and reads no other process (seccomp)
	NewRight bool // gains no rights by a program that has more (no_new_privs)
}

// Missing names what the kernel does not offer; empty: nothing.
func (c Confinement) Missing() []string {
	var missing []string
	for _, m := range []struct {
		there bool
		name  string
	}{{c.NewRight, "no_new_privs"}, {c.Files, "Landlock"}, {c.Calls, "seccomp filters"}} {
		if !m.there {
			missing = append(missing, m.name)
		}
	}
	return missing
}

// rule lets a child do something with a file, or with all that is below a folder.
type rule struct {
	path  string
	right right
}

type right int

const (
	toRead  right = iota
	toRun         // and to read
	toWrite       // a file that is there, and to read it
	toUse         // a device
)

// rulesFor are those that a child needs: for its program with its libraries, for what these ask about the machine, for
// its files.
func rulesFor(o *ProcessOptions) []rule {
	program := o.Program
	if target, err := filepath.EvalSymlinks(program); err == nil {
		program = target
	}
	rules := []rule{{program, toRun}}
	for _, dir := range []string{
		"/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/lib", "/usr/local/lib64", "/lib", "/lib32",
		"/lib64",
	} {
		rules = append(rules, rule{dir, toRun}) // the loader is among them
	}
	if prefix := filepath.Dir(filepath.Dir(program)); filepath.Base(filepath.Dir(program)) == "bin" && prefix != "/" {
		beside, _ := filepath.Glob(filepath.Join(prefix, "lib*")) // the pattern is a good one
		for _, dir := range beside {
			rules = append(rules, rule{dir, toRun})
		}
	}
	if isScript(program) { // that starts the program, wherever it is
		for _, dir := range []string{"/bin", "/usr/bin", "/usr/local/bin", filepath.Dir(program)} {
			rules = append(rules, rule{dir, toRun})
		}
	}
	for _, path := range []string{
		"/nix/store", "/gnu/store", "/usr/share", "/usr/local/cuda", "/etc/ld.so.cache", "/etc/ld.so.preload",
		"/etc/localtime",
		"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system",
		"/dev/zero", "/dev/random", "/dev/urandom",
	} {
		rules = append(rules, rule{path, toRead})
	}
	rules = append(rules, rule{"/dev/null", toWrite})
	if slices.ContainsFunc(o.Args, hardwareCodec) {
		rules = append(rules, rule{"/dev/dri", toUse}, rule{"/sys", toRead}, rule{"/proc/driver/nvidia", toRead}, rule{
			"/etc/vulkan", toRead,
		})
		devices, _ := filepath.Glob("/dev/nvidia*") // the pattern is a good one
		for _, d := range devices {
			rules = append(rules, rule{d, toUse})
		}
	}
	for i, arg := range o.Args {
		if path, ok := strings.CutPrefix(arg, "file:"); ok && i > 0 && o.Args[i-1] == "-i" {
			rules = append(rules, rule{path, toRead})
		}
	}
	for _, path := range o.Reads {
		rules = append(rules, rule{path, toRead})
	}
	for _, path := range o.Writes {
		rules = append(rules, rule{path, toWrite})
	}
	return rules
}

// isScript reports whether a file begins as one.
func isScript(path string) bool {
	f, err := os.Open(path) //nolint:gosec // the operator's program
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read from
	var mark [2]byte
	_, err = io.ReadFull(f, mark[:])
	return err == nil && string(mark[:]) == "#!"
}

// hardwareCodec reports whether an argument names an encoder of a device.
func hardwareCodec(arg string) bool {
	return strings.HasSuffix(arg, "_nvenc") || strings.HasSuffix(arg, "_qsv") || strings.HasSuffix(arg, "_vaapi")
}

// begin starts a child that is confined. It goes on until release is called at the latest, or dies with this process.
func begin(cmd *exec.Cmd, o *ProcessOptions) (release func(), err error) {
	rules := rulesFor(o)
	started, done := make(chan error), make(chan struct{})
	go onOwnThread(func() {
		failed := confine(rules)
		if failed == nil {
			failed = cmd.Start()
		}
		started <- failed
		<-done // the death signal is sent when the thread that started the child ends
	})
	release = func() { close(done) }
	if err = <-started; err != nil {
		release()
		return nil, err
	}
	return release, nil
}
