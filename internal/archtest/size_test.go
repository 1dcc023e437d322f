package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// What is to be held in the head at once: packages of ours that one imports, methods of a type, fields of a struct. Fields with tags, which are
// a wire format's or a table's, do not count.
const maxImports, maxMethods, maxFields = 25, 30, 15

// large says why a package or a type is larger than that.
var large = map[string]string{
	"internal/app":           "the object graph of the process: it imports what there is",
	"internal/app.node":      "the object graph of the process",
	"internal/config.Config": "a field for each setting",

	"internal/broadcast.broadcast":      "what one goroutine does for a broadcast, in files by what it is about; its fields are in groups",
	"internal/broadcast.recorder":       "the lease, the rows and what the asset shows have to agree under one lock",
	"internal/broadcast.sink":           "a publication ends in several ways, and each has to see the same moment",
	"internal/broadcast.Options":        "what the owner of all broadcasts is given",
	"internal/presentation.recorded":    "all that is known of one revision of an asset",
	"internal/delivery.Dispatcher":      "the queues of all endpoints with their limits",
	"internal/control/live.Service":     "a method for each thing that can be asked of the noun, or told of it",
	"internal/control/asset.Service":    "a method for each thing that can be asked of the noun, or told of it",
	"internal/control/live.CreateInput": "the fields of the request",

	"internal/media/window.Edge":          "one lock guards what the packager writes, storage takes and viewers read of a broadcast",
	"internal/media/window.liveRendition": "a rendition under that lock, of its own media or derived",
	"internal/media/window.segment":       "flags and numbers of 80 bytes: a day of segments stays in memory",

	"internal/media/packager.Packager":  "cuts all renditions of a publication at the same number",
	"internal/media/packager.track":     "where one rendition stands between frames and parts",
	"internal/media/session.Stats":      "what is counted of one publication",
	"internal/media/session.Session":    "the repair of one publication's timestamps",
	"internal/media/session.videoTrack": "the repair of a picture's timestamps",
	"internal/media/slate.content":      "what an encoder sends, until it is known that it goes on",
	"internal/media/journal.Journal":    "one file of parts: what is queued, written and synced",
	"internal/media/transform.worker":   "one encoder of a publication's pictures, between what goes in and what comes out",

	"internal/media/rendition/justintime.run":        "one encoder for a few segments, between what goes in and what comes out",
	"internal/media/rendition/liveladder.encoderRun": "one encoder that follows the edge, between what goes in and what comes out",
	"internal/media/encode.run":                      "one child process with its pipes, limits and ends",
	"internal/media/encode.Track":                    "what ffprobe says of a track",
	"internal/media/images.Request":                  "the parameters of an image",

	"internal/media/speech/worker.sphinx":    "the functions of a library, by its names",
	"internal/media/codec/h264.Slices":       "the fields of a slice header, by the standard's names",
	"internal/media/container/mp4.Track":     "the sample tables of a track",
	"internal/media/container/mpegts.stream": "one demultiplexer of a program's streams",
	"internal/media/hls.Media":               "the tags of a media playlist",
	"internal/media/ondemand.streamer":       "one pass over a file that is not played from its byte ranges",
	"internal/media/ondemand.trackBuffer":    "one pass over a track of it",
	"internal/media/ingest/srt.conn":         "one connection",
	"internal/media/ingest/whip.session":     "one connection",
	"internal/web/express.conn":              "one connection",
	"internal/web/dashboard.server":          "a method for each page and each form",
	"internal/web/api.Options":               "a service for each noun",
	"internal/web/api.server":                "a method for each operation of the API",
	"internal/storage/blob.folder":           "a store with what makes it durable",
	"internal/storage/db.DB":                 "a store for each noun, and the life of the database",
	"internal/worker/ingest.Worker":          "what becomes of a file that was fetched, step by step",
}

// sizes are what a tree has, by package or by type.
type sizes struct {
	imports         map[string]map[string]bool
	methods, fields map[string]int
}

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch x := t.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func (s *sizes) add(pkg string, file *ast.File) {
	if s.imports[pkg] == nil {
		s.imports[pkg] = map[string]bool{}
	}
	for _, spec := range file.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		if to, ours := strings.CutPrefix(full, module); ours {
			s.imports[pkg][to] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				s.methods[pkg+"."+receiver(n.Recv.List[0].Type)]++
			}
		case *ast.TypeSpec:
			if t, ok := n.Type.(*ast.StructType); ok {
				for _, f := range t.Fields.List {
					if f.Tag == nil {
						s.fields[pkg+"."+n.Name.Name] += max(len(f.Names), 1)
					}
				}
			}
		}
		return true
	})
}

// tooLarge gives what is larger than it may be, with what is wrong, by package or by type.
func tooLarge(tree fs.FS) (map[string]string, error) {
	s := sizes{imports: map[string]map[string]bool{}, methods: map[string]int{}, fields: map[string]int{}}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, src, parser.SkipObjectResolution)
		if err == nil {
			s.add(path.Dir(p), file)
		}
		return err
	})
	out := map[string]string{}
	for pkg, all := range s.imports {
		if len(all) > maxImports {
			out[pkg] = fmt.Sprintf("imports %d packages of ours, budget %d", len(all), maxImports)
		}
	}
	for t, n := range s.methods {
		if n > maxMethods {
			out[t] = fmt.Sprintf("has %d methods, budget %d", n, maxMethods)
		}
	}
	for t, n := range s.fields {
		if n > maxFields {
			out[t] = fmt.Sprintf("has %d fields, budget %d", n, maxFields)
		}
	}
	return out, err
}

func TestSizes(t *testing.T) {
	t.Parallel()
	found, err := tooLarge(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for name, what := range found {
		if strings.HasPrefix(name, "internal/") && large[name] == "" {
			t.Errorf("%s %s: split it, or say why in large", name, what)
		}
	}
	for name := range large {
		if found[name] == "" {
			t.Errorf("%s is no longer too large: take it out of large", name)
		}
	}
}

func TestSizesComplain(t *testing.T) {
	t.Parallel()
	var imports, fields, methods, tagged strings.Builder
	for i := range 31 {
		fmt.Fprintf(&imports, "import _ \"%sinternal/x%d\"\n", module, i)
		fmt.Fprintf(&fields, "f%d int\n", i)
		fmt.Fprintf(&tagged, "f%d int `json:\"f%d\"`\n", i, i)
		fmt.Fprintf(&methods, "func (t *T[K]) m%d() {}\n", i)
	}
	for name, tt := range map[string]struct{ src, want string }{
		"imports":     {"package a\n" + imports.String(), "internal/a"},
		"methods":     {"package a\ntype T[K any] struct{}\n" + methods.String(), "internal/a.T"},
		"fields":      {"package a\ntype T struct{\n" + fields.String() + "}", "internal/a.T"},
		"wire format": {"package a\ntype T struct{\n" + tagged.String() + "}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := tooLarge(fstest.MapFS{"internal/a/x.go": {Data: []byte(tt.src)}})
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 1 || (tt.want != "") != (len(found) == 1) || tt.want != "" && found[tt.want] == "" {
				t.Errorf("got %v, want %q", found, tt.want)
			}
		})
	}
}
