package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // makes .deb
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // makes .rpm
)

const description = `self-hosted live and on-demand video service
Takes live video over RTMP, SRT and WebRTC, and files, and serves them over HLS
and low-latency HLS, with an API in the wire format of Mux Video.`

// pack writes the package of a packager: deb or rpm.
func (r *release) pack(packager, arch string, list []installed) (a artefact, err error) {
	script := func(name string) string { return filepath.Join(r.root, "deploy", packager, name) }
	info := &nfpm.Info{
		Name: "millrace", Arch: arch, Platform: "linux", Version: r.of.version, Release: "1",
		Section: "video", Priority: "optional", Maintainer: "The Millrace authors <millrace@localhost>",
		Description: description, License: "Apache-2.0", MTime: r.of.time, DisableGlobbing: true,
	}
	switch packager {
	case "deb":
		info.Scripts = nfpm.Scripts{
			PreInstall: script("preinst"), PostInstall: script("postinst"),
			PreRemove: script("prerm"), PostRemove: script("postrm"),
		}
		info.Deb.Predepends = []string{"passwd"}
		info.Depends = []string{"ffmpeg", "ca-certificates", "init-system-helpers"}
		info.Recommends = []string{"pocketsphinx-en-us"} // recognises speech
	case "rpm":
		info.Scripts = nfpm.Scripts{
			PreInstall: script("pre"), PostInstall: script("post"),
			PreRemove: script("preun"), PostRemove: script("postun"),
		}
		// Distributions have ffmpeg in packages of several names.
		info.Depends = []string{"/usr/bin/ffmpeg", "/usr/bin/ffprobe", "ca-certificates", "shadow-utils"}
		info.RPM.Summary = "Self-hosted live and on-demand video service"
		info.RPM.BuildHost = "localhost"
	}
	for _, f := range list {
		if f.path == "" || f.only != "" && f.only != packager {
			continue
		}
		kind := files.TypeFile
		if f.settings {
			kind = files.TypeConfigNoReplace
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: f.source, Destination: f.path, Type: kind,
			FileInfo: &files.ContentFileInfo{Mode: f.mode, Group: f.group, MTime: r.of.time},
		})
	}
	info = nfpm.WithDefaults(info)
	by, err := nfpm.Get(packager)
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.work, by.ConventionalFileName(info))
	out, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("write package: %w", err)
	}
	if err = errors.Join(by.Package(info, out), out.Close()); err != nil {
		return "", fmt.Errorf("make %s: %w", filepath.Base(path), err)
	}
	return artefact(path), nil
}
