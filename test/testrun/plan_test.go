package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	list, err := packages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const (
		h264, window           = "millrace/internal/media/codec/h264", "millrace/internal/media/window"
		checker, browsers, e2e = "millrace/test/hlscheck", "millrace/test/browser", "millrace/test/e2e"
		release                = "millrace/test/release"
	)
	type place struct {
		phase             int
		race, fresh, pace bool
	}
	for name, tt := range map[string]struct {
		options options
		changed map[string]change
		want    map[string]place
	}{
		"nothing has changed": {options: options{all: true}, want: map[string]place{
			h264: {}, window: {}, checker: {},
			browsers: {phase: 1, fresh: true, pace: true}, e2e: {phase: 1, fresh: true, pace: true},
			release: {phase: 3, fresh: true, pace: true},
		}},
		"something has changed": {
			options: options{all: true},
			changed: map[string]change{window: tests, h264: code, checker: code},
			want:    map[string]place{h264: {}, checker: {}, window: {phase: 1, race: true}},
		},
		"with -race": {options: options{all: true, race: true}, want: map[string]place{
			h264: {}, window: {phase: 1, race: true}, e2e: {phase: 2, fresh: true, pace: true},
		}},
		"units with -race": {options: options{units: true, race: true}, want: map[string]place{
			h264: {}, window: {phase: 1, race: true}, e2e: {phase: -1}, release: {phase: -1},
		}},
	} {
		phases := tt.options.phases(list, tt.changed)
		for pkg, want := range tt.want {
			holds := func(p phase) bool { return slices.Contains(p.packages, pkg) }
			got := place{phase: slices.IndexFunc(phases, holds)}
			if got.phase >= 0 {
				p := phases[got.phase]
				got.race, got.fresh = slices.Contains(p.args, "-race"), slices.Contains(p.args, "-count=1")
				got.pace = p.pace
			}
			if got != want {
				t.Errorf("%s: %s is at %+v, want %+v", name, pkg, got, want)
			}
		}
	}
}

// TestPaced: what the machine's pace decides comes before what is parallel, and each test runs in one of the
// two phases, both packages at the same time.
func TestPaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := `package x
func TestMain(m *testing.M) {}
func TestPaced(t *testing.T) { rig.Paced(t) }
func TestParallel(t *testing.T) { t.Helper(); rig.Parallel(t) }
func (x) TestMethod(t *testing.T) {}
func BenchmarkX(b *testing.B) {}
`
	write := func(source string) {
		if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(source)
	if names, err := pacedTests(dir); err != nil || !slices.Equal(names, []string{"TestPaced"}) {
		t.Fatalf("paced: %q, %v", names, err)
	}
	write(source + `func TestNeither(t *testing.T) { t.Run("x", func(t *testing.T) { rig.Parallel(t) }) }`)
	if names, err := pacedTests(dir); err == nil || !strings.HasSuffix(err.Error(), ": TestNeither") {
		t.Errorf("a test that says neither: %q, %v", names, err)
	}
	list := []pack{
		{path: "millrace/test/browser", paced: []string{"TestA"}},
		{path: "millrace/test/e2e", paced: []string{"TestB"}},
	}
	phases := options{all: true}.phases(list, nil)
	if len(phases) != 2 || !pairs(phases[0].args, "-p", "2") || !pairs(phases[0].args, "-parallel", "1000") ||
		!pairs(phases[1].args, "-p", "2") || !pairs(phases[1].args, "-parallel", "1000") ||
		!pairs(phases[0].args, "-run", "^(TestA|TestB)$") || !pairs(phases[1].args, "-skip", "^(TestA|TestB)$") {
		t.Errorf("phases: %+v", phases)
	}
}

// pairs reports whether a flag of args has this value.
func pairs(args []string, flag, value string) bool {
	i := slices.Index(args, flag)
	return i >= 0 && args[i+1] == value
}

// TestBounds: a package of units that hangs ends the run early; end to end and browser tests have more time.
func TestBounds(t *testing.T) {
	t.Parallel()
	const window, e2e = "millrace/internal/media/window", "millrace/test/e2e"
	list := []pack{{path: window, concurrent: true}, {path: e2e}}
	for name, tt := range map[string]struct {
		options options
		want    map[string]string
	}{
		"by itself": {options{all: true}, map[string]string{window: "15m0s", e2e: "40m0s"}},
		"raced":     {options{all: true, race: true}, map[string]string{window: "15m0s", e2e: "40m0s"}},
		"asked for": {options{all: true, timeout: time.Hour}, map[string]string{window: "1h0m0s", e2e: "1h0m0s"}},
	} {
		for _, p := range tt.options.phases(list, nil) {
			for _, pkg := range p.packages {
				if got := p.args[slices.Index(p.args, "-timeout")+1]; got != tt.want[pkg] {
					t.Errorf("%s: %s has %s, want %s", name, pkg, got, tt.want[pkg])
				}
			}
		}
	}
	named, err := plan(t.Context(), options{packages: []string{"./test/e2e"}}) // which may be any
	if err != nil || !slices.Contains(named[0].args, "40m0s") {
		t.Errorf("named packages: %+v, %v", named, err)
	}
}

func TestIsConcurrent(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"package x\nfunc f() { for range 3 {} }":                                 false,
		"package x\nfunc f() { go f() }":                                         true,
		"package x\nimport \"sync\"\nvar mu sync.Mutex":                          true,
		"package x\nimport \"sync/atomic\"\nvar n atomic.Int64":                  true,
		"package x\nimport \"testing\"\nfunc TestX(t *testing.T) {t.Parallel()}": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := isConcurrent(dir); got != want || err != nil {
			t.Errorf("%q: %t, %v", source, got, err)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	list := []pack{
		{path: "m/nal", dir: "/m/nal"},
		{path: "m/h264", dir: "/m/h264", deps: []string{"fmt", "m/nal"}},
		{path: "m/aac", dir: "/m/aac"},
	}
	all := []target{
		{pkg: "m/nal", name: "FuzzNAL"}, {pkg: "m/h264", name: "FuzzInfo"}, {pkg: "m/aac", name: "FuzzADTS"},
	}
	for range 9 { // others, whose turn comes after a while
		all = append(all, target{pkg: "m/other", name: "Fuzz" + string(rune('A'+len(all)-3))})
	}
	names := func(files []string, turn int) (out []string) {
		for _, t := range choose(all, list, changedPackages(list, files), turn) {
			out = append(out, t.name)
		}
		return out
	}
	for what, tt := range map[string]struct {
		file string
		want []string
	}{
		"what is imported":     {"/m/nal/nal.go", []string{"FuzzNAL", "FuzzInfo"}},
		"the package":          {"/m/aac/aac.go", []string{"FuzzADTS"}},
		"tests of the package": {"/m/aac/aac_test.go", []string{"FuzzADTS"}},
		"tests of an import":   {"/m/nal/nal_test.go", []string{"FuzzNAL"}},
		"seeds":                {"/m/aac/testdata/fuzz/FuzzADTS/0123", []string{"FuzzADTS"}},
		"something else":       {"/m/README.md", nil},
	} {
		got := names([]string{tt.file}, 0)
		if len(got) != len(tt.want)+rotated || !slices.Equal(got[:len(tt.want)], tt.want) {
			t.Errorf("%s: %v, want %v and %d others", what, got, tt.want, rotated)
		}
	}
	seen := map[string]bool{}
	for turn := range len(all) / rotated {
		for _, n := range names(nil, turn) {
			seen[n] = true
		}
	}
	if len(seen) != len(all) {
		t.Errorf("in turn come only %v", seen)
	}
}
