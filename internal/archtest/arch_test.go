// Package archtest keeps the import direction, the owners of goroutines and the size budget.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "millrace/"

// layers says what each folder may import of this module; the longest matching prefix rules.
var layers = map[string][]string{
	"cmd": {"internal/app"},
	// alone: what loads libraries at run time is linked dynamically
	"cmd/millrace-speech": {"internal/media/speech/worker"},
	"internal/app":        {"internal"},
	"docs":                {},
	"docs/site":           {"internal/web/docsite"},
	"internal/broadcast": {
		"internal/broadcast/subtitles", "internal/measure", "internal/mediastore", "internal/control", "internal/media",
		"internal/lifecycle", "internal/id", "internal/fault",
	},
	"internal/broadcast/subtitles": {
		"internal/control/asset", "internal/control/live", "internal/media/delivered", "internal/media/livespeech",
		"internal/media/speech", "internal/media/timeline", "internal/media/window", "internal/id",
	},
	// no edge: what is live is asked of a playback.Broadcast, so that another node's can be shown as well
	"internal/presentation": {
		"internal/mediastore", "internal/stalecache", "internal/control", "internal/storage/blob", "internal/id",
		"internal/fault",
		"internal/media/captions", "internal/media/delivered", "internal/media/download", "internal/media/frame",
		"internal/media/hls",
		"internal/media/images", "internal/media/metering", "internal/media/objectkey", "internal/media/ondemand",
		"internal/media/playback",
		"internal/media/protection", "internal/media/rendition", "internal/media/timeline",
	},
	"internal/config":        {"internal/spelling"},
	"internal/spelling":      {},
	"internal/id":            {},
	"internal/fault":         {},
	"internal/trace":         {"internal/fault"},
	"internal/masterkey":     {},
	"internal/cpix":          {},
	"internal/lifecycle":     {},
	"internal/socket":        {},
	"internal/openfile":      {},
	"internal/unsent":        {"internal/clientaddr", "internal/fault"},
	"internal/clientaddr":    {},
	"internal/proxyprotocol": {"internal/socket"},
	"internal/programtest":   {},
	"internal/leaktest":      {},
	"internal/disk":          {},
	"internal/crash":         {},
	"internal/fetch":         {"internal/fault", "internal/disk", "internal/trace"},
	"internal/certificate":   {},
	"internal/delivery": {
		"internal/control/event", "internal/control/webhook", "internal/id", "internal/fault",
	},
	"internal/control/audit": {"internal/id"},
	"internal/control": {
		"internal/control/change", "internal/control/event", "internal/control/job", "internal/control/playbackid",
		"internal/control/assetopt", "internal/control/field", "internal/control/language", "internal/id",
		"internal/fault",
	},
	"internal/sketch": {},
	"internal/control/webhook": {
		"internal/control/change", "internal/control/event", "internal/control/field", "internal/spelling",
		"internal/id", "internal/fault",
	},
	"internal/control/audience": {"internal/sketch", "internal/id", "internal/fault"},
	"internal/control/usage":    {"internal/control/asset", "internal/id", "internal/fault"},
	"internal/control/retention": {
		"internal/control/asset", "internal/control/audit", "internal/control/change", "internal/control/job",
		"internal/id", "internal/fault",
	},
	"internal/control/event":      {"internal/id"},
	"internal/control/job":        {"internal/id", "internal/fault"},
	"internal/control/change":     {"internal/fault"},
	"internal/control/playbackid": {"internal/control/field", "internal/id", "internal/fault"},
	"internal/control/field":      {"internal/control/language", "internal/fault"},
	"internal/control/language":   {"internal/fault"},
	"internal/control/assetopt": {
		"internal/control/playbackid", "internal/control/field", "internal/control/language", "internal/id",
		"internal/fault",
	},
	"internal/media/frame":     {},
	"internal/media/hls":       {},
	"internal/media/metering":  {},
	"internal/media/watching":  {"internal/sketch"},
	"internal/media/turns":     {"internal/fault"},
	"internal/media/captions":  {},
	"internal/media/codec":     {"internal/media/frame", "internal/media/codec"},
	"internal/media/container": {"internal/media/frame", "internal/media/codec", "internal/media/container"},
	"internal/media/objectkey": {"internal/id"},
	"internal/media/delivered": {"internal/media/metering", "internal/fault"},
	"internal/mediastore": {
		"internal/control/asset", "internal/media/captions", "internal/media/delivered", "internal/media/objectkey",
		"internal/media/ondemand", "internal/media/timeline", "internal/storage/blob", "internal/id", "internal/fault",
	},
	"internal/media/timeline": {"internal/media/captions", "internal/media/frame"},
	"internal/media/ondemand": {
		"internal/media/frame", "internal/media/timeline", "internal/media/container", "internal/media/codec",
	},
	"internal/media/rtmpwire": {},
	"internal/media/ingest": {
		"internal/media/frame", "internal/media/codec", "internal/media/container", "internal/media/rtmpwire",
		"internal/media/ingest", "internal/web/respond", "internal/fault", "internal/lifecycle", "internal/socket",
	},
	"internal/media/relay": {
		"internal/media/frame", "internal/media/codec", "internal/media/container", "internal/media/rtmpwire",
		"internal/fault",
	},
	"internal/media/health":  {"internal/media/frame"},
	"internal/media/session": {"internal/media/frame", "internal/media/codec", "internal/lifecycle"},
	"internal/media/slate": {
		"internal/media/frame", "internal/media/codec", "internal/media/container", "internal/media/lettering",
	},
	"internal/media/transform": {
		"internal/fault", "internal/media/frame", "internal/media/codec", "internal/media/container",
		"internal/media/encode", "internal/media/lettering", "internal/media/overlay",
	},
	"internal/media/lettering": {},
	"internal/media/overlay":   {"internal/media/codec", "internal/fault"},
	"internal/media/clip": {
		"internal/media/delivered", "internal/media/frame", "internal/media/timeline", "internal/media/codec",
		"internal/media/container", "internal/media/encode",
	},
	"internal/media/download": {
		"internal/media/delivered", "internal/media/frame", "internal/media/timeline", "internal/media/container",
		"internal/fault",
	},
	"internal/media/images": {
		"internal/media/delivered", "internal/media/turns", "internal/media/timeline", "internal/media/codec",
		"internal/media/container", "internal/media/encode", "internal/media/frame", "internal/fault",
	},
	"internal/media/packager": {
		"internal/media/frame", "internal/media/timeline", "internal/media/container", "internal/media/codec",
	},
	"internal/media/journal": {"internal/media/frame", "internal/media/timeline", "internal/openfile"},
	"internal/media/window": {
		"internal/media/captions", "internal/media/delivered", "internal/media/objectkey", "internal/id",
		"internal/fault", "internal/media/frame", "internal/media/timeline", "internal/media/journal",
		"internal/media/hls", "internal/media/container", "internal/openfile", "internal/lifecycle",
	},
	"internal/media/playback": {
		"internal/clientaddr", "internal/unsent", "internal/web/respond", "internal/media/turns",
		"internal/media/delivered", "internal/media/metering", "internal/media/watching", "internal/media/frame",
		"internal/media/hls", "internal/media/timeline", "internal/media/captions", "internal/id", "internal/fault",
	},
	"internal/media/playback/playbacktest": {"internal/media/playback", "internal/id"},
	"internal/media/encode": {
		"internal/media/frame", "internal/media/codec", "internal/media/container", "internal/media/timeline",
		"internal/lifecycle", "internal/fault", "internal/trace",
	},
	"internal/storage/blob": {"internal/storage/blob", "internal/openfile", "internal/disk", "internal/fault"},
	"internal/storage/queue": {
		"internal/control/job", "internal/storage/db", "internal/crash", "internal/lifecycle", "internal/id",
		"internal/fault", "internal/trace",
	},
	"internal/receive": {
		"internal/control", "internal/media/objectkey", "internal/storage/blob", "internal/disk", "internal/id",
		"internal/fault",
	},
	"internal/stalecache":   {"internal/fault"},
	"internal/claim":        {"internal/lifecycle", "internal/id"},
	"internal/internode":    {"internal/id", "internal/fault", "internal/trace"},
	"internal/tally":        {"internal/control/usage", "internal/media/metering", "internal/id"},
	"internal/streamhealth": {"internal/control/live", "internal/media/follow", "internal/id", "internal/fault"},
	"internal/workers": {
		"internal/control/node", "internal/media/follow", "internal/media/turns", "internal/presentation",
		"internal/id", "internal/fault",
	},
	"internal/handover": {
		"internal/control/live", "internal/control/node", "internal/media/follow", "internal/id", "internal/fault",
	},
	"internal/copies": {
		"internal/control/live", "internal/control/node", "internal/media/follow", "internal/media/journal",
		"internal/id", "internal/fault",
	},
	"internal/measure": {
		"internal/control/asset", "internal/media/frame", "internal/media/rendition/ladder", "internal/media/timeline",
	},
	"internal/worker/workertest": {
		"internal/worker", "internal/control", "internal/media", "internal/mediastore", "internal/storage",
		"internal/fetch",
		"internal/programtest", "internal/id", "internal/fault",
	},
	"internal/worker/static/statictest": {
		"internal/worker", "internal/control", "internal/media", "internal/mediastore", "internal/presentation",
		"internal/id",
	},
	"internal/worker/captions/captionstest": {
		"internal/worker", "internal/control", "internal/media/captions", "internal/programtest",
	},
	"internal/worker": {
		"internal/measure", "internal/mediastore", "internal/worker/assetfile", "internal/worker/attempt",
		"internal/worker/clipping", "internal/control", "internal/media", "internal/storage/blob", "internal/fetch",
		"internal/id", "internal/fault",
	},
	"internal/web": {
		"internal/clientaddr", "internal/control", "internal/web/header", "internal/web/limit", "internal/web/pace",
		"internal/web/player", "internal/web/style", "internal/web/static", "internal/web/iframe",
		"internal/web/respond",
		"internal/web/sdkcode", "internal/web/follow", "internal/web/docsite", "internal/id",
		"internal/fault", "internal/spelling",
	},
	"internal/web/docsite":    {"docs", "internal/web/static", "internal/web/style"},
	"internal/web/express":    {"internal/socket", "internal/web/express/tlsrecord", "internal/web/httpdate"},
	"internal/web/express/h2": {"internal/socket", "internal/web/express/tlsrecord", "internal/web/httpdate"},
	"internal/web/httpdate":   {},
	"internal/web/respond":    {"internal/fault"},
	"internal/web/sdkcode":    {},
	"internal/web/follow":     {},
	// The rooms of the dashboard stand over the shell.
	"internal/web/dashboard": {
		"internal/web/dashboard", "internal/control", "internal/clientaddr", "internal/web/iframe",
		"internal/web/respond",
		"internal/web/sdkcode", "internal/web/follow", "internal/id", "internal/fault",
	},
	"internal/web/dashboard/shell": {
		"internal/control", "internal/clientaddr", "internal/web/follow", "internal/web/pace", "internal/web/player",
		"internal/web/respond", "internal/web/sdkcode", "internal/web/static", "internal/web/style", "internal/id",
		"internal/fault",
	},
	"internal/web/iframe": {},
	"internal/web/pace":   {},
	"internal/web/player": {"internal/web/static"},
	"internal/web/upload": {
		"internal/web/pace", "internal/web/respond", "internal/control/upload", "internal/disk", "internal/id",
		"internal/fault", "internal/trace",
	},
	"test":     {"test", "internal/programtest"},
	"test/rig": {"test", "internal/programtest", "internal/storage/blob"}, // what is stored, compared
	"tools":    {},
	"test/bench": {
		"test", "internal/programtest",
		"internal/media/encode", "internal/media/rendition/ladder", // whose settings its peer is given
	},
	"test/fleet": {
		"test/services", "test/bench/proc", "internal/broadcast", "internal/control", "internal/id",
		"internal/masterkey",
		"internal/media/frame", "internal/media/ingest", "internal/media/metering", "internal/media/playback",
		"internal/media/watching", "internal/presentation", "internal/stalecache", "internal/storage/blob",
		"internal/storage/db", "internal/storage/queue", "internal/tally",
	},
	"test/bench/populate": {"internal/control", "internal/storage/db", "internal/masterkey", "internal/id"},

	"internal/control/signing": {
		"internal/control/change", "internal/stalecache", "internal/control/field", "internal/id", "internal/fault",
	},
	"internal/control/drm": {
		"internal/control/change", "internal/stalecache", "internal/control/field", "internal/control/playbackid",
		"internal/id", "internal/fault",
	},
	"internal/control/restriction": {
		"internal/control/change", "internal/stalecache", "internal/control/field", "internal/id", "internal/fault",
	},
	"internal/permit": {
		"internal/control/audience", "internal/control/drm", "internal/control/playbackid",
		"internal/control/restriction", "internal/control/signing", "internal/media/container/cenc",
		"internal/media/playback", "internal/media/protection", "internal/id", "internal/fault",
	},

	"internal/web/express/tlsrecord": {"internal/socket"},
	"internal/media/rendition": {
		"internal/media/frame", "internal/media/timeline", "internal/media/codec", "internal/media/container",
		"internal/media/delivered", "internal/media/metering", "internal/media/objectkey", "internal/media/hls",
		"internal/media/window", "internal/media/rendition", "internal/stalecache", "internal/id", "internal/fault",
	},
	"internal/media/captions/cea608":  {"internal/media/captions"},
	"internal/media/captions/cea708":  {"internal/media/captions"},
	"internal/media/closedcaptions":   {"internal/media/captions", "internal/media/codec", "internal/media/frame"},
	"internal/media/rendition/ladder": {"internal/media/frame"},
	"internal/media/rendition/liveladder": {
		"internal/fault", "internal/media/frame", "internal/media/codec", "internal/media/container",
		"internal/media/encode", "internal/media/rendition/ladder", "internal/media/window",
	},
	"internal/media/rendition/justintime": {
		"internal/media/turns", "internal/media/delivered", "internal/media/frame", "internal/media/metering",
		"internal/media/timeline", "internal/media/codec", "internal/media/container", "internal/media/encode",
		"internal/media/rendition/ladder", "internal/fault",
	},
	"internal/media/edgeview": {
		"internal/media/captions", "internal/media/frame", "internal/media/timeline", "internal/media/delivered",
		"internal/media/metering", "internal/media/hls", "internal/media/playback", "internal/media/rendition",
		"internal/media/window", "internal/id", "internal/fault",
	},
	"internal/media/speech": {
		"internal/media/speech/wire", "internal/media/captions", "internal/media/encode", "internal/fault",
	},
	"internal/media/speech/worker": {"internal/media/speech/wire"},
	"internal/media/speech/wire":   {},
	"internal/media/livespeech": {
		"internal/fault", "internal/media/container", "internal/media/speech",
		"internal/media/timeline", "internal/media/window",
	},
	"internal/media/speech/remote": {"internal/media/speech"},
	"internal/media/speech/local":  {"internal/media/speech", "internal/media/encode"},
	"internal/media/speech/filter": {"internal/media/speech", "internal/media/encode"},
	"internal/media/follow": {
		"internal/media/follow/wire", "internal/media/captions", "internal/media/delivered", "internal/media/hls",
		"internal/media/metering", "internal/media/objectkey", "internal/media/playback", "internal/media/timeline",
		"internal/id", "internal/fault",
	},
	"internal/media/follow/wire": {
		"internal/media/captions", "internal/media/delivered", "internal/media/hls", "internal/media/playback",
		"internal/web/respond", "internal/id", "internal/fault",
	},
	"internal/media/follow/owner": {
		"internal/media/follow/wire", "internal/media/delivered", "internal/media/playback", "internal/media/timeline",
		"internal/media/window", "internal/id", "internal/fault",
	},
	"internal/media/protection": {
		"internal/media/container", "internal/media/delivered", "internal/media/hls", "internal/media/metering",
		"internal/media/playback", "internal/fault",
	},
	"internal/media/edgewriter": {
		"internal/media/frame", "internal/media/timeline", "internal/media/codec", "internal/media/encode",
		"internal/media/packager", "internal/media/slate", "internal/media/window", "internal/fault",
	},

	"internal/storage/db": {
		"internal/sketch", "internal/masterkey", "internal/control", "internal/storage/db", "internal/storage/rows",
		"internal/id", "internal/fault", "internal/trace",
	},
	"internal/storage/rows": {},
	"internal/backup": {
		"internal/media/objectkey", "internal/media/timeline", "internal/storage/blob", "internal/storage/rows",
		"internal/id", "internal/fault",
	},
}

// mayGo lists the folders whose job is to own goroutines.
var mayGo = []string{
	"internal/lifecycle", "internal/certificate", "internal/delivery", "internal/media/ingest",
	"internal/media/session", "internal/media/window", "internal/media/encode", "internal/media/relay",
	"internal/media/transform", "internal/media/rendition", "internal/media/edgewriter", "internal/media/images",
	"internal/media/follow", "internal/streamhealth", "internal/handover",
	"internal/copies",

	"internal/media/clip", "internal/media/speech", "internal/media/livespeech", "internal/storage/queue",
	"internal/storage/blob", "internal/backup", "internal/broadcast", "internal/stalecache", "internal/web/express",
	"internal/app", "test", "internal/proxyprotocol", "internal/storage/db/dbtest", "internal/worker/static/statictest",
}

// mayRecover lists the folders that stop panics themselves; all others do it through fault.Guard.
var mayRecover = []string{
	"internal/fault",
	// a library's, on bytes from outside; they know no fault
	"internal/media/codec/h264", "internal/media/codec/hevc", "internal/media/container/cenc",
	// net/http's http.ErrAbortHandler goes on through them
	"internal/web/express", "internal/web/express/h2", "internal/web/api",
}

const maxFuncLines, maxFileLines = 80, 500

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func rule(pkg string) ([]string, bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if allowed, ok := layers[p]; ok {
			return allowed, true
		}
	}
	return nil, false
}

// startsGoroutine reports whether n is a go statement or a call of a method Go, as sync.WaitGroup and errgroup.Group
// have it.
func startsGoroutine(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		_, ok = n.(*ast.GoStmt)
		return ok
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Go" && len(call.Args) == 1
}

// recovers reports whether n is a call of recover.
func recovers(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "recover"
}

// comparesKind reports whether n compares the kind of an error with one: nil is
// of no kind, and KindOf says Internal of it.
func comparesKind(n ast.Node) bool {
	b, ok := n.(*ast.BinaryExpr)
	if !ok || b.Op != token.EQL && b.Op != token.NEQ {
		return false
	}
	call, ok := b.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	kindOf, ok := call.Fun.(*ast.SelectorExpr)
	return ok && kindOf.Sel.Name == "KindOf"
}

func check(tree fs.FS) (complaints []string, err error) {
	complain := func(f string, args ...any) { complaints = append(complaints, fmt.Sprintf(f, args...)) }
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") {
			return err
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		if strings.HasSuffix(p, "_test.go") {
			code := string(src)
			if strings.Contains(code, "time.Sleep"+"(") && !strings.Contains(code, `"testing/synctest"`) {
				complain("%s sleeps outside synctest", p)
			}
			if (within(p, "test/e2e") || within(p, "test/browser")) && strings.Contains(code, "t.Parallel()") {
				complain("%s says t.Parallel: rig.Parallel waits until the machine has room", p)
			}
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Dir(p)
		allowed, ok := rule(pkg)
		if !ok {
			complain("%s: folder has no rule in archtest", pkg)
		}
		for _, spec := range file.Imports {
			full, _ := strconv.Unquote(spec.Path.Value)
			to, ours := strings.CutPrefix(full, module)
			if ours && !slices.ContainsFunc(allowed, func(a string) bool { return within(to, a) }) {
				complain("%s imports %s: may import only %v", pkg, to, allowed)
			}
			if to == "internal/media/speech/worker" && pkg != "cmd/millrace-speech" {
				complain("%s imports %s: the service stays without libraries that are loaded at run time", pkg, to)
			}
			if ours && strings.HasSuffix(to, "test") && !within(pkg, "test") && !strings.HasSuffix(pkg, "test") {
				complain("%s imports %s: what tests have in common is for tests", pkg, to)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.CallExpr:
				if recovers(n) && !slices.Contains(mayRecover, pkg) {
					complain("%s: stops a panic; use fault.Guard", set.Position(n.Pos()))
				}
				if startsGoroutine(n) && !slices.ContainsFunc(mayGo, func(f string) bool { return within(pkg, f) }) {
					complain("%s: starts a goroutine; give it to lifecycle or to an owner in mayGo",
						set.Position(n.Pos()))
				}
			case *ast.BinaryExpr:
				if comparesKind(n) {
					complain("%s: compares the kind of an error; use fault.Is", set.Position(n.Pos()))
				}
			case *ast.FuncDecl:
				if l := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1; l > maxFuncLines {
					complain("%s: %s has %d lines, budget %d", p, n.Name.Name, l, maxFuncLines)
				}
			}
			return true
		})
		if l := strings.Count(string(src), "\n"); l > maxFileLines {
			complain("%s has %d lines, budget %d", p, l, maxFileLines)
		}
		return nil
	})
	return complaints, err
}

// unwanted are modules that the program must not need again: each cost more than it gave.
var unwanted = map[string]string{
	"gocloud.dev":            "12 MB of program for one file (decision 31)",
	"google.golang.org/grpc": "nothing here speaks gRPC; otlptracehttp links it (decision 111)",
	"google.golang.org/api":  "nothing here speaks to Google's services",
}

func TestModules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		for word := range strings.FieldsSeq(line) {
			if why, is := unwanted[word]; is {
				t.Errorf("go.mod needs %s: %s", word, why)
			}
		}
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	complaints, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complaints {
		t.Error(c)
	}
}

func TestCheckComplains(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, src, want string }{
		"planes": {
			"internal/media/session/x.go", `package session; import _ "millrace/internal/control/live"`,
			"imports internal/control/live",
		},
		"nouns": {
			"internal/control/live/x.go", `package live; import _ "millrace/internal/control/asset"`,
			"imports internal/control/asset",
		},
		"sql": {
			"internal/web/api/x.go", `package api; import _ "millrace/internal/storage/db"`,
			"imports internal/storage/db",
		},
		"edges": {
			"internal/presentation/x.go", `package presentation; import _ "millrace/internal/media/window"`,
			"imports internal/media/window",
		},
		"config": {
			"internal/worker/vod/x.go", `package vod; import _ "millrace/internal/config"`, "imports internal/config",
		},
		"goroutine": {"internal/web/api/x.go", "package api\nfunc f() { go f() }", "starts a goroutine"},
		"group": {
			"internal/web/api/x.go", "package api\nfunc f() { var g sync.WaitGroup; g.Go(f) }", "starts a goroutine",
		},
		"kind": {
			"internal/web/stats/x.go", "package stats\nfunc f() bool { return fault.KindOf(nil) == 0 }", "use fault.Is",
		},
		"recover": {
			"internal/web/stats/x.go", "package stats\nfunc f() { defer func() { recover() }() }", "use fault.Guard",
		},
		"new":   {"internal/utils/x.go", "package utils", "no rule"},
		"sleep": {"internal/web/api/x_test.go", "package api\nfunc f() { time.Sleep" + "(1) }", "sleeps outside"},
		"turns": {"test/e2e/x_test.go", "package e2e_test\nfunc f() { t.Parallel() }", "rig.Parallel"},
		"tests": {
			"internal/media/ingest/srt/x.go", `package srt; import _ "millrace/internal/media/ingest/ingesttest"`,
			"for tests",
		},
		"libraries": {
			"internal/app/x.go", `package app; import _ "millrace/internal/media/speech/worker"`, "loaded at run time",
		},
		"long": {"internal/web/api/x.go", "package api\nfunc f() {" + strings.Repeat("\n", 90) + "}", "91 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := check(fstest.MapFS{tt.file: {Data: []byte(tt.src)}})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("got %q, want one with %q", got, tt.want)
			}
		})
	}
}
