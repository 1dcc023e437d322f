package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	phases, err := plan(t.Context(), options{all: true})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, want := range map[string]struct {
		phase int
		race  bool
		fresh bool
	}{
		"millrace/internal/media/codec/h264": {phase: 0},
		"millrace/internal/media/window":     {phase: 1, race: true},
		"millrace/test/hlscheck":             {phase: 0},
		"millrace/test/browser":              {phase: 2, fresh: true},
		"millrace/test/e2e":                  {phase: 3, fresh: true},
	} {
		i := slices.IndexFunc(phases, func(p phase) bool { return slices.Contains(p.packages, pkg) })
		if i != want.phase {
			t.Errorf("%s is in phase %d, want %d", pkg, i, want.phase)
			continue
		}
		if race := slices.Contains(phases[i].args, "-race"); race != want.race {
			t.Errorf("%s: with -race %t", pkg, race)
		}
		if fresh := slices.Contains(phases[i].args, "-count=1"); fresh != want.fresh {
			t.Errorf("%s: -count=1 %t", pkg, fresh)
		}
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
	list := []pack{{path: "m/nal", dir: "/m/nal"}, {path: "m/h264", dir: "/m/h264", deps: []string{"fmt", "m/nal"}}, {path: "m/aac", dir: "/m/aac"}}
	all := []target{{pkg: "m/nal", name: "FuzzNAL"}, {pkg: "m/h264", name: "FuzzInfo"}, {pkg: "m/aac", name: "FuzzADTS"}}
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
