package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"millrace/internal/programtest"
)

// builtImage has what several tests need of the container image.
type builtImage struct {
	layout string // the archive, unpacked
	config imageConfig
	layers []string // files of the layers, the lowest first
	files  map[string]entry
	err    error
}

// entry is a file of the image.
type entry struct {
	head    *tar.Header
	content []byte // of small ones
}

// imageConfig is of an image's configuration what is read here.
type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Created      string `json:"created"`
	Config       struct {
		User         string              `json:"User"`
		StopSignal   string              `json:"StopSignal"`
		Entrypoint   []string            `json:"Entrypoint"`
		Cmd          []string            `json:"Cmd"`
		Env          []string            `json:"Env"`
		ExposedPorts map[string]struct{} `json:"ExposedPorts"`
		Volumes      map[string]struct{} `json:"Volumes"`
		Labels       map[string]string   `json:"Labels"`
		Healthcheck  struct {
			Test     []string `json:"Test"`
			Interval int64    `json:"Interval"`
		} `json:"Healthcheck"`
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// blobRef names a blob of the archive.
type blobRef struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
}

// small is how much of a file is kept.
const small = 1 << 20

// One for the test process.
var (
	imageOnce sync.Once
	theImage  builtImage
)

// image makes the image of the first release, once.
func image(t *testing.T) builtImage {
	t.Helper()
	m := all(t)
	programtest.Inputs(t, repository+"/tools/image")
	programtest.Inputs(t, repository+"/deploy/image")
	imageOnce.Do(func() {
		theImage.layout = filepath.Join(m.folder, "layout")
		if theImage.err = makeImage(m.folder, "image"); theImage.err == nil {
			theImage.err = theImage.read(file(t, filepath.Join(m.folder, "image"), ".oci.tar"))
		}
	})
	if theImage.err != nil {
		t.Fatal(theImage.err)
	}
	return theImage
}

// makeImage makes the image of the first release in a folder into another one in it.
func makeImage(folder, to string) error {
	debian, err := exec.CommandContext(context.Background(), repository+"/scripts/tool.sh", "image-root").Output()
	if err != nil {
		return fmt.Errorf("scripts/tool.sh image-root: %w", err)
	}
	out := filepath.Join(folder, to)
	if err = os.Mkdir(out, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "go", "-C", repository+"/tools/image", "run", ".", "-out", out,
		"-dockerfile", "../../Dockerfile", "-debian", strings.TrimSpace(string(debian)), "-arch", runtime.GOARCH,
		"-release", filepath.Join(folder, "first", "millrace-"+first+"-linux-"+runtime.GOARCH+".tar.gz"),
		"-version", first, "-commit", commit, "-time", "2026-09-21T14:13:20Z")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make image: %w\n%s", err, said)
	}
	return nil
}

// read unpacks the archive and checks that all of its blobs are what they are called.
func (b *builtImage) read(archive string) error {
	if said, err := exec.CommandContext(context.Background(), "mkdir", b.layout).CombinedOutput(); err != nil {
		return fmt.Errorf("make folder: %w: %s", err, said)
	}
	unpack := exec.CommandContext(context.Background(), "tar", "-xf", archive, "-C", b.layout)
	if said, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack image: %w: %s", err, said)
	}
	var index struct {
		Manifests []blobRef `json:"manifests"`
	}
	text, err := os.ReadFile(filepath.Join(b.layout, "index.json"))
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil || len(index.Manifests) != 1 {
		return fmt.Errorf("read index of image: %w: %s", err, text)
	}
	var manifest struct {
		Config blobRef   `json:"config"`
		Layers []blobRef `json:"layers"`
	}
	if err = b.decode(index.Manifests[0], &manifest); err != nil {
		return err
	}
	if err = b.decode(manifest.Config, &b.config); err != nil {
		return err
	}
	b.files = map[string]entry{}
	for i, l := range manifest.Layers {
		if l.MediaType != "application/vnd.oci.image.layer.v1.tar+gzip" || len(b.config.RootFS.DiffIDs) <= i {
			return fmt.Errorf("layer %d is %+v; the configuration has %q", i, l, b.config.RootFS.DiffIDs)
		}
		name, err := b.blob(l)
		if err != nil {
			return err
		}
		b.layers = append(b.layers, name)
		if err = b.layer(name, b.config.RootFS.DiffIDs[i]); err != nil {
			return fmt.Errorf("read layer %d: %w", i, err)
		}
	}
	return nil
}

// blob is the path of a blob, which has been checked.
func (b *builtImage) blob(ref blobRef) (string, error) {
	digest := strings.TrimPrefix(ref.Digest, "sha256:")
	name := filepath.Join(b.layout, "blobs/sha256", digest)
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest || int64(len(content)) != ref.Size {
		return "", fmt.Errorf("%s has another digest or size", ref.Digest)
	}
	return name, nil
}

func (b *builtImage) decode(ref blobRef, into any) error {
	name, err := b.blob(ref)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// layer reads a layer whose contents have a digest.
func (b *builtImage) layer(name, digest string) error {
	compressed, err := os.Open(name)
	if err != nil {
		return err
	}
	defer compressed.Close()
	z, err := gzip.NewReader(compressed)
	if err != nil {
		return err
	}
	h := sha256.New()
	all := io.TeeReader(z, h)
	for t := tar.NewReader(all); ; {
		head, next := t.Next()
		if errors.Is(next, io.EOF) {
			break
		} else if next != nil {
			return next
		}
		e := entry{head: head}
		if head.Size <= small {
			if e.content, err = io.ReadAll(t); err != nil {
				return err
			}
		}
		b.files[strings.TrimSuffix(head.Name, "/")] = e
	}
	if _, err = io.Copy(io.Discard, all); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(h.Sum(nil)); got != digest {
		return fmt.Errorf("its contents have the digest %s, want %s", got, digest)
	}
	return nil
}

// TestImageTwice: an image made again of the same files has the same bytes.
func TestImageTwice(t *testing.T) {
	image(t)
	m := all(t)
	if err := makeImage(m.folder, "image again"); err != nil {
		t.Fatal(err)
	}
	a, b := filepath.Join(m.folder, "image"), filepath.Join(m.folder, "image again")
	for _, name := range names(t, a) {
		if !bytes.Equal(read(t, a, name), read(t, b, name)) {
			t.Errorf("%s differs", name)
		}
	}
}

// TestImageConfig: the configuration is that of the Dockerfile, with the version of the release.
func TestImageConfig(t *testing.T) {
	b := image(t)
	c := b.config.Config
	for what, tt := range map[string]struct{ got, want any }{
		"platform":   {b.config.OS + "/" + b.config.Architecture, "linux/" + runtime.GOARCH},
		"created":    {b.config.Created, "2026-09-21T14:13:20Z"},
		"user":       {c.User, "10001:10001"}, // a number: Kubernetes checks that it is not root
		"command":    {append(c.Entrypoint, c.Cmd...), []string{"millrace", "serve"}},
		"env":        {c.Env, []string{"PATH=/usr/bin", "MILLRACE_DATA_DIR=/var/lib/millrace"}},
		"volumes":    {slices.Sorted(maps.Keys(c.Volumes)), []string{"/var/lib/millrace"}},
		"signal":     {c.StopSignal, "SIGTERM"},
		"ports":      {slices.Sorted(maps.Keys(c.ExposedPorts)), portsOfSettings()},
		"check":      {c.Healthcheck.Test, []string{"CMD", "millrace", "health"}},
		"check each": {c.Healthcheck.Interval, int64(10e9)},
		"labels": {c.Labels, map[string]string{
			"org.opencontainers.image.title":       "Millrace",
			"org.opencontainers.image.description": "Self-hosted live and on-demand video service",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     first,
			"org.opencontainers.image.revision":    commit,
			"org.opencontainers.image.created":     "2026-09-21T14:13:20Z",
		}},
	} {
		if got, want := fmt.Sprint(tt.got), fmt.Sprint(tt.want); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	var saved []struct {
		Config   string   `json:"Config"`
		RepoTags []string `json:"RepoTags"`
		Layers   []string `json:"Layers"`
	}
	if err := json.Unmarshal(read(t, b.layout, "manifest.json"), &saved); err != nil || len(saved) != 1 {
		t.Fatalf("manifest.json: %v", err)
	}
	var layers []string
	for _, l := range b.layers {
		layers = append(layers, "blobs/sha256/"+filepath.Base(l))
	}
	var config imageConfig
	if err := json.Unmarshal(read(t, b.layout, saved[0].Config), &config); err != nil ||
		!slices.Equal(config.RootFS.DiffIDs, b.config.RootFS.DiffIDs) || !slices.Equal(saved[0].Layers, layers) ||
		!slices.Equal(saved[0].RepoTags, []string{"millrace:" + first}) {
		t.Errorf("what docker load reads is another image: %+v (%v)", saved[0], err)
	}
}

// TestImageFiles: the image has what it needs and nothing that helps an intruder, all of it root's and read-only for
// the service, but for the data folder.
func TestImageFiles(t *testing.T) {
	b := image(t)
	data := b.files["var/lib/millrace"].head
	if data == nil || data.Uid != 10001 || data.Gid != 10001 || data.Mode != 0o755 || data.Typeflag != tar.TypeDir {
		t.Errorf("the data folder is %+v", data)
	}
	for name, e := range b.files {
		h := e.head
		if name != "var/lib/millrace" && (h.Uid != 0 || h.Gid != 0) {
			t.Errorf("%s belongs to %d:%d", name, h.Uid, h.Gid)
		}
		if !slices.Contains([]byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink}, h.Typeflag) {
			t.Errorf("%s is of type %c", name, h.Typeflag)
		}
		if h.Mode&0o6000 != 0 {
			t.Errorf("%s has mode %o", name, h.Mode)
		}
		if h.Typeflag != tar.TypeSymlink && h.Mode&0o022 != 0 && (h.Typeflag != tar.TypeDir || h.Mode != 0o1777) {
			t.Errorf("others may write %s: mode %o", name, h.Mode)
		}
		if h.Typeflag == tar.TypeReg && h.Mode&0o444 != 0o444 {
			t.Errorf("the service can't read %s: mode %o", name, h.Mode)
		}
	}
	for _, folder := range []string{
		"var/cache", "var/lib/apt", "var/log", "var/tmp", "tmp", "run", "root", "home", "usr/share/man",
	} {
		for name := range b.files {
			if strings.HasPrefix(name, folder+"/") && b.files[name].head.Typeflag != tar.TypeDir {
				t.Errorf("%s should be empty, but has %s", folder, name)
			}
		}
	}
	programs := []string{"ffmpeg", "ffplay", "ffprobe", "millrace", "millrace-speech", "qt-faststart"}
	var found []string
	for name, e := range b.files {
		if e.head.Typeflag != tar.TypeDir && strings.Contains("/"+path.Dir(name)+"/", "bin/") {
			found = append(found, path.Base(name))
		}
	}
	if slices.Sort(found); !slices.Equal(found, programs) {
		t.Errorf("it has the programs %q, want %q", found, programs)
	}
	released := unpack(t, filepath.Join(all(t).folder, "first"))
	root := b.unpack(t)
	for at, name := range map[string]string{
		"usr/bin": "millrace", "usr/bin/": "millrace-speech", "usr/share/doc/millrace": "LICENCES",
		"usr/share/doc/millrace/": "LICENSE",
	} {
		if !bytes.Equal(read(t, root, at, name), read(t, released, name)) {
			t.Errorf("%s is not that of the release", name)
		}
	}
	if n := bytes.Count(read(t, root, "etc/ssl/certs/ca-certificates.crt"), []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("it has %d certificates", n)
	}
	if !strings.Contains(string(read(t, root, "etc/os-release")), "VERSION_CODENAME=bookworm") {
		t.Error("scanners can't see that it is Debian")
	}
}

// TestImagePackages: each of Debian's packages has its version, where scanners look for it, and its licence.
func TestImagePackages(t *testing.T) {
	b := image(t)
	const status = "var/lib/dpkg/status.d/"
	packages := 0
	for name, e := range b.files {
		pkg, ok := strings.CutPrefix(name, status)
		if !ok {
			continue
		}
		packages++
		if text := string(e.content); !strings.HasPrefix(text, "Package: "+pkg+"\n") ||
			!strings.Contains(text, "\nVersion: ") {
			t.Errorf("%s%s: %.100q", status, pkg, text)
		}
		doc, licensed := "usr/share/doc/"+pkg, "usr/share/doc/"+pkg+"/copyright"
		if link := b.files[doc].head; link != nil && link.Typeflag == tar.TypeSymlink {
			licensed = path.Join(path.Dir(doc), link.Linkname, "copyright")
		}
		if b.files[licensed].head == nil {
			t.Errorf("%s has no licence at %s", pkg, licensed)
		}
	}
	if packages < 100 || b.files[status+"ffmpeg"].head == nil || b.files[status+"libc6"].head == nil {
		t.Errorf("it has %d packages", packages)
	}
}

// TestImageLibraries: whatever the programs load is there.
func TestImageLibraries(t *testing.T) {
	root := image(t).unpack(t)
	folders, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("folders of libraries: %q, %v", folders, err)
	}
	folders = append(folders, filepath.Join(folders[0], "pulseaudio")) // named by RUNPATH
	var next []string
	for _, name := range []string{"bin/ffmpeg", "bin/ffprobe", "lib/*-linux-gnu/libpocketsphinx.so.3"} {
		found, err := filepath.Glob(filepath.Join(root, "usr", name))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, %v", name, found, err)
		}
		next = append(next, found[0])
	}
	seen := map[string]bool{}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		f, err := elf.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := f.ImportedLibraries()
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		for _, library := range libraries {
			if seen[library] {
				continue
			}
			seen[library] = true
			at := slices.IndexFunc(folders, func(folder string) bool {
				_, err := os.Stat(filepath.Join(folder, library))
				return err == nil
			})
			if at < 0 {
				t.Errorf("%s needs %s, which is not there", strings.TrimPrefix(name, root), library)
				continue
			}
			next = append(next, filepath.Join(folders[at], library))
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d libraries were looked for", len(seen))
	}
}

// unpack unpacks the image's layers and returns the folder.
func (b builtImage) unpack(t *testing.T) string {
	t.Helper()
	root := filepath.Join(filepath.Dir(b.layout), "root")
	err := os.Mkdir(root, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return root // by another test
	} else if err != nil {
		t.Fatal(err)
	}
	for _, l := range b.layers {
		programtest.Run(t, "tar", "-xzf", l, "-C", root, "--keep-directory-symlink", "--numeric-owner",
			"--same-permissions")
	}
	return root
}
