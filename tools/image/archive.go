package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// archive writes the image as an OCI archive. It has a manifest.json as well, as docker save writes it: docker load
// before Docker 25 reads that alone.
func (m *maker) archive(image v1.Image, to string) error {
	tag := strings.ReplaceAll(m.version, "+", "-") // tags have no +
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
		Platform: &v1.Platform{OS: "linux", Architecture: m.arch},
		Annotations: map[string]string{
			"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "docker.io/library/millrace:" + tag,
		},
	}})
	folder := filepath.Join(m.work, "layout")
	if _, err := layout.Write(folder, index); err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	saved := struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{Config: blob(manifest.Config.Digest), RepoTags: []string{"millrace:" + tag}}
	for _, l := range manifest.Layers {
		saved.Layers = append(saved.Layers, blob(l.Digest))
	}
	text, err := json.Marshal([]any{saved})
	if err != nil {
		return err
	}
	if err = os.WriteFile(filepath.Join(folder, "manifest.json"), text, 0o644); err != nil {
		return err
	}
	if err = same(folder, m); err != nil {
		return err
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	w := &writer{tar: tar.NewWriter(file), has: map[string]bool{}}
	return errors.Join(w.copied("/layout", "/", map[string]string{"/layout": folder}), w.tar.Close(), file.Close())
}

// same gives all files of the layout the same mode and the commit's time.
func same(folder string, m *maker) error {
	return filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if d.IsDir() {
			mode = 0o755
		}
		return errors.Join(os.Chmod(name, mode), os.Chtimes(name, m.time, m.time))
	})
}
