package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// component is a part of the programs that others have made, or the programs themselves.
type component struct {
	name, version, sum string
	purl               string
	licences           []string // SPDX
	files              []licenceFile
	needs              map[string]bool // names of components
}

// licenceFile is a text that comes with a component: a licence, a notice.
type licenceFile struct{ name, text string }

// inventory is what the programs of an architecture are linked from, by name.
type inventory struct{ components map[string]*component }

// Names of components that are no modules.
const (
	ours    = "millrace"
	library = "Go standard library"
)

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Dir  string
	Standard         bool
	Imports, GoFiles []string
	Module           *struct {
		Path, Version, Dir, Sum string
		Main                    bool
		Replace                 *struct{ Path string }
	}
}

// inventory lists what the programs are linked from.
func (r *release) inventory(ctx context.Context, arch string) (*inventory, error) {
	args := []string{"list", "-trimpath", "-deps", "-json=ImportPath,Dir,Standard,Imports,GoFiles,Module"}
	for _, name := range programs() {
		args = append(args, "./cmd/"+name)
	}
	out, err := r.goTool(ctx, arch, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("list packages for %s: %w", arch, err)
	}
	version, err := r.goTool(ctx, arch, "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask for Go's version: %w", err)
	}
	goVersion, root, _ := strings.Cut(strings.TrimSpace(string(version)), "\n")
	found := &inventory{components: map[string]*component{
		ours:    {name: ours, version: r.of.version, purl: "pkg:generic/millrace@" + escaped(r.of.version)},
		library: {name: library, version: goVersion, purl: "pkg:golang/std@" + strings.TrimPrefix(goVersion, "go")},
	}}
	owner, packages := map[string]*component{}, []goPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err = decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read list of packages: %w", err)
		}
		c, err := found.owner(p)
		if err != nil {
			return nil, err
		}
		owner[p.ImportPath], packages = c, append(packages, p)
		top := root
		if p.Standard {
			p.Dir = root // what lies deeper is of parts that are not linked: BoringSSL's
		} else {
			top = p.Module.Dir
		}
		if err = c.read(top, p.Dir); err != nil {
			return nil, err
		}
	}
	for _, p := range packages {
		from := owner[p.ImportPath]
		for _, name := range p.Imports {
			if to := owner[name]; to != nil && to != from {
				from.need(to)
			}
		}
	}
	if err = errors.Join(found.embedded(), found.heads(owner, packages)); err != nil {
		return nil, err
	}
	return found, found.judge()
}

// owner is the component that a package belongs to.
func (i *inventory) owner(p goPackage) (*component, error) {
	switch m := p.Module; {
	case p.Standard:
		return i.components[library], nil
	case m == nil:
		return nil, fmt.Errorf("%s belongs to no module", p.ImportPath)
	case m.Main:
		return i.components[ours], nil
	case m.Replace != nil:
		return nil, fmt.Errorf("%s is replaced, so its version does not say what it is", m.Path)
	default:
		c := i.components[m.Path]
		if c == nil {
			c = &component{
				name: m.Path, version: m.Version, sum: m.Sum,
				purl: "pkg:golang/" + strings.ToLower(m.Path) + "@" + escaped(m.Version),
			}
			i.components[m.Path] = c
		}
		return c, nil
	}
}

func (c *component) need(other *component) {
	if c.needs == nil {
		c.needs = map[string]bool{}
	}
	c.needs[other.name] = true
}

// licenceName is how files with licences and notices are called.
var licenceName = regexp.MustCompile(`(?i)(licen[cs]e|copying|notice|copyright|patents)`)

const mostLicence = 256 << 10 // bytes

// read takes the texts from the folder of a package and those above it, to the top of its module: some packages came
// from elsewhere and have a licence of their own.
func (c *component) read(top, folder string) error {
	for ; ; folder = filepath.Dir(folder) {
		inside, err := filepath.Rel(top, folder)
		if err != nil || strings.HasPrefix(inside, "..") {
			return nil
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			return fmt.Errorf("look for licences: %w", err)
		}
		for _, e := range entries {
			name := filepath.Join(inside, e.Name())
			has := func(f licenceFile) bool { return f.name == name }
			if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" ||
				slices.ContainsFunc(c.files, has) {
				continue
			}
			info, err := e.Info()
			if err == nil && info.Size() > mostLicence {
				err = errors.New("it is too long for a licence")
			}
			var text []byte
			if err == nil {
				text, err = os.ReadFile(filepath.Join(folder, e.Name()))
			}
			if err != nil {
				return fmt.Errorf("read %s of %s: %w", name, c.name, err)
			}
			c.files = append(c.files, licenceFile{name, string(text)})
		}
	}
}

// embedded makes components of what is in our folders but not ours: it has a licence beside it, NAME.LICENSE, whose
// first line is its name on npm, and its version.
func (i *inventory) embedded() error {
	us := i.components[ours]
	var kept []licenceFile
	for _, f := range us.files {
		if !strings.HasSuffix(f.name, ".LICENSE") {
			kept = append(kept, f)
			continue
		}
		line, _, _ := strings.Cut(f.text, "\n")
		name, version, ok := strings.Cut(line, " ")
		if !ok {
			return fmt.Errorf("%s does not begin with a name and a version", f.name)
		}
		other := &component{
			name: name, version: version, purl: "pkg:npm/" + name + "@" + escaped(version),
			files: []licenceFile{{filepath.Base(f.name), f.text}},
		}
		i.components[name] = other
		us.need(other)
	}
	us.files = kept
	return nil
}

// heads takes what stands above the code of files, where a component comes without a file of licences.
func (i *inventory) heads(owner map[string]*component, packages []goPackage) error {
	for _, c := range i.components {
		if len(c.files) > 0 {
			continue
		}
		for _, p := range packages {
			if owner[p.ImportPath] != c {
				continue
			}
			for _, name := range p.GoFiles {
				text, err := os.ReadFile(filepath.Join(p.Dir, name))
				if err != nil {
					return fmt.Errorf("read %s of %s: %w", name, c.name, err)
				}
				if head, _, ok := strings.Cut(string(text), "\npackage "); ok && strings.Contains(head, "Copyright") {
					c.files = append(c.files, licenceFile{name, head})
				}
			}
		}
	}
	return nil
}

// accepted are the licences under which a part may be linked: they ask for their text and for notices alone, or,
// MPL-2.0, for the sources of its own files, which are unchanged and public.
func accepted() []string {
	return []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}
}

// judge finds out each component's licences. Each must have one, and none may have another than is accepted.
func (i *inventory) judge() error {
	var wrong []error
	for _, name := range i.names() {
		c := i.components[name]
		found := map[string]bool{}
		for _, f := range c.files {
			if base := strings.ToLower(f.name); strings.Contains(base, "notice") || strings.Contains(base, "patents") {
				continue // goes with a licence
			}
			for _, m := range licensecheck.Scan([]byte(f.text)).Match {
				found[m.ID] = true
			}
		}
		c.licences = slices.Sorted(maps.Keys(found))
		if len(c.licences) == 0 {
			wrong = append(wrong, fmt.Errorf("%s %s has no licence that is known", c.name, c.version))
		}
		for _, id := range c.licences {
			if !slices.Contains(accepted(), id) {
				wrong = append(wrong, fmt.Errorf("%s %s has the licence %s, which is not accepted",
					c.name, c.version, id))
			}
		}
	}
	return errors.Join(wrong...)
}

// names are the components' names, in order.
func (i *inventory) names() []string { return slices.Sorted(maps.Keys(i.components)) }

// licences writes what is linked into any of the programs, with all texts, each of them once.
func (r *release) licences(parts map[string]*inventory) (path string, err error) {
	all := map[string]*component{}
	for _, part := range parts {
		for name, c := range part.components {
			if name != ours {
				all[name+" "+c.version] = c
			}
		}
	}
	names := slices.Sorted(maps.Keys(all))
	var b strings.Builder
	b.WriteString("Millrace is licensed under the Apache License, Version 2.0: see LICENSE.\n" +
		"Its programs contain what follows, under the licences below.\n\n")
	users, texts := map[string][]string{}, []string{}
	for _, name := range names {
		c := all[name]
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(c.licences, ", "))
		slices.SortFunc(c.files, func(x, y licenceFile) int { return cmp.Compare(x.name, y.name) })
		for _, f := range c.files {
			if users[f.text] == nil {
				texts = append(texts, f.text)
			}
			users[f.text] = append(users[f.text], f.name+" of "+name)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n",
			strings.Repeat("=", 80), strings.Join(users[text], "\n"), strings.TrimSpace(text))
	}
	path = filepath.Join(r.work, "LICENCES")
	if err = os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return "", fmt.Errorf("write licences: %w", err)
	}
	return path, nil
}
