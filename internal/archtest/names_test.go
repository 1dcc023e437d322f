package archtest

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// What pages name: code between backticks or in a block, and in it settings, commands, events, paths and fields.
var (
	inlineCode  = regexp.MustCompile("`([^`\n]+)`")
	codeBlock   = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")
	flagName    = regexp.MustCompile(`(?:^|[\s\[])(--[a-z][a-z0-9-]+)`)
	environment = regexp.MustCompile(`\bMILLRACE_[A-Z0-9_]+`)
	eventName   = regexp.MustCompile(`\b(?:video\.(?:asset|live_stream|upload)|system\.webhook)(?:\.[a-z_]+)+`)
	apiPath     = regexp.MustCompile(`/(?:video|system)/v1(?:/[A-Za-z0-9_{}-]+|/\$[A-Z_]+)+`)
	oneOfPath   = regexp.MustCompile(`^(?:\{[^}]*\}|\$.*|[A-Z_]+)$`)
	fieldName   = regexp.MustCompile(`^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$`)
	commandLine = regexp.MustCompile(`(?:^|[\s(])millrace ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)?)`)
	yamlLine    = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	commandName = regexp.MustCompile(`(?m)^\.B "([a-z][a-z-]*(?: [a-z][a-z-]*)?)`)
	anyWord     = regexp.MustCompile(`[A-Za-z0-9_-]+`)
	sourceWord  = regexp.MustCompile(`[A-Za-z0-9_]+`)
)

// othersFlags are options of other programs that pages name by themselves.
var othersFlags = []string{
	"--convert", "--env", "--health-cmd", "--help", "--inference-path", "--ipc", "--memory", "--platform",
	"--read-only",
	"--stop-timeout", "--ulimit", "--volume",
}

// othersNames are names with an underscore of other programs, or that are accepted without effect.
var othersNames = []string{
	"max_client_conn", "max_prepared_statements", "proxy_cache_lock", "redundant_streams", "server_name",
	"synchronous_standby_names", "target_session_attrs",
}

// facts is what there is to be named.
type facts struct {
	commands map[string]bool // also the first words of those with two
	manual   map[string]bool // words of the manual page: every setting and option
	paths    map[string]bool // of the API, with {} for what differs
	sources  map[string]bool // words of the program
	text     string          // of the program
}

// known reads the facts from the golden files and the sources.
func known(tree fs.FS) (f facts, err error) {
	manual, err := fs.ReadFile(tree, "deploy/millrace.1")
	if err != nil {
		return f, err
	}
	page := strings.ReplaceAll(string(manual), `\-`, "-")
	f.manual, f.commands = words(anyWord, page), map[string]bool{}
	for _, m := range commandName.FindAllStringSubmatch(page, -1) {
		group, _, _ := strings.Cut(m[1], " ")
		f.commands[m[1]], f.commands[group] = true, true
	}
	text, err := fs.ReadFile(tree, "internal/web/api/testdata/openapi.json")
	if err != nil {
		return f, err
	}
	var doc struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err = json.Unmarshal(text, &doc); err != nil {
		return f, err
	}
	f.paths = map[string]bool{}
	for p := range doc.Paths {
		f.paths[shape(p)] = true
	}
	sources, err := read(tree, func(file string) bool {
		return strings.HasPrefix(file, "internal/") && !strings.HasSuffix(file, "_test.go") &&
			slices.Contains([]string{".go", ".js", ".json", ".sql"}, path.Ext(file))
	})
	f.text = strings.Join(slices.Collect(maps.Values(sources)), "\n")
	f.sources = words(sourceWord, f.text)
	return f, err
}

// shape is a path of the API with {} for IDs, however they are written.
func shape(p string) string {
	parts := strings.Split(strings.TrimSuffix(p, "/"), "/")
	for i, part := range parts {
		if oneOfPath.MatchString(part) {
			parts[i] = "{}"
		}
	}
	return strings.Join(parts, "/")
}

// words are the words of a text.
func words(pattern *regexp.Regexp, text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range pattern.FindAllString(text, -1) {
		out[w] = true
	}
	return out
}

// wrongNames lists what pages in docs name and the program does not have.
func wrongNames(tree fs.FS) (complaints []string, err error) {
	f, err := known(tree)
	if err != nil {
		return nil, err
	}
	pages, err := fs.Glob(tree, "docs/*.md")
	for _, page := range pages {
		text, failed := fs.ReadFile(tree, page)
		if failed != nil {
			return nil, failed
		}
		for name, right := range f.named(string(text)) {
			if !right() {
				complaints = append(complaints, page+" names "+name+", which there is not")
			}
		}
	}
	slices.Sort(complaints)
	return complaints, err
}

// named are the names in a page, each with what tells whether it is right.
func (f facts) named(page string) map[string]func() bool {
	out := map[string]func() bool{}
	for _, m := range codeBlock.FindAllStringSubmatch(page, -1) {
		block := strings.ReplaceAll(m[1], "\\\n", " ")
		if strings.HasPrefix(block, "# millrace.yaml\n") || strings.HasPrefix(block, "# /etc/millrace.yaml\n") {
			for _, key := range yamlLine.FindAllStringSubmatch(block, -1) {
				out[key[1]] = func() bool { return f.manual["--"+key[1]] || f.manual[key[1]] }
			}
		}
		for line := range strings.Lines(block) {
			f.inCode(out, line)
		}
	}
	for _, m := range inlineCode.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		code := m[1]
		f.inCode(out, code)
		if strings.HasPrefix(code, "--") {
			flag, _, _ := strings.Cut(strings.Fields(code)[0], "=")
			out[flag] = func() bool { return slices.Contains(othersFlags, flag) || f.manual[flag] }
		}
		if fieldName.MatchString(code) && !strings.HasPrefix(code, "millrace_") { // metrics are composed of parts
			out[code] = func() bool { return slices.Contains(othersNames, code) || f.sources[code] }
		}
	}
	return out
}

// inCode adds the names in a line of code, a command with its options among them.
func (f facts) inCode(out map[string]func() bool, line string) {
	for _, at := range commandLine.FindAllStringSubmatchIndex(line, -1) {
		command := line[at[2]:at[3]]
		if !strings.HasPrefix(command, "millrace") { // install millrace millrace-speech
			out["millrace "+command] = func() bool { return f.commands[command] }
		}
		rest, _, _ := strings.Cut(line[at[3]:], "|")
		for _, m := range flagName.FindAllStringSubmatch(rest, -1) {
			out[m[1]] = func() bool { return f.manual[m[1]] }
		}
	}
	for _, name := range environment.FindAllString(line, -1) {
		out[name] = func() bool { return f.manual[name] || f.sources[name] }
	}
	for _, name := range eventName.FindAllString(line, -1) {
		out[name] = func() bool { return strings.Contains(f.text, `"`+name+`"`) }
	}
	for _, p := range apiPath.FindAllString(line, -1) {
		out[p] = func() bool { return f.paths[shape(p)] }
	}
}

// TestDocumentsNameWhatThereIs: commands, options, settings, events, paths of the API and fields in pages exist.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	complaints, err := wrongNames(os.DirFS("../.."))
	complain(t, complaints, err)
}

func TestDocumentsNameWhatThereIsComplains(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := wrongNames(fstest.MapFS{
		"deploy/millrace.1": file(".B \"token create\"\n.B \"\\-\\-name\"\n" +
			"\\-\\-data\\-dir\nMILLRACE_DATA_DIR\n"),
		"internal/web/api/testdata/openapi.json": file(`{"paths":{"/video/v1/assets/{id}":{}}}`),
		"internal/a.go":                          file("package a // playback_id \"video.asset.ready\""),
		"docs/right.md": file("`millrace token create --name x` `--data-dir` `MILLRACE_DATA_DIR`\n" +
			"`video.asset.ready` `/video/v1/assets/$ID` `playback_id` `--ulimit nofile`\n```yaml\n# " +
			"millrace.yaml\ndata-dir: x\n```\n"),
		"docs/wrong.md": file("`millrace token make` `--data-die` `MILLRACE_DATA_DIE` `video.asset.red`\n" +
			"`playback_ix`\n```\nmillrace token create --nam x\ncurl /video/v1/asset/X\n```\n" +
			"```yaml\n# millrace.yaml\ndata-dye: x\n```\n"),
	})
	want := []string{
		"--data-die", "--nam", "/video/v1/asset/X", "MILLRACE_DATA_DIE", "data-dye", "millrace token make",
		"playback_ix", "video.asset.red",
	}
	for i := range want {
		want[i] = "docs/wrong.md names " + want[i] + ", which there is not"
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("complaints %q, %v", got, err)
	}
}
