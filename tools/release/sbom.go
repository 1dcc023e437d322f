package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// escaped is a version as it stands in the URL of a package.
func escaped(version string) string { return url.QueryEscape(version) }

// sbom writes what the programs of an architecture are linked from, in the form of CycloneDX.
func (r *release) sbom(arch string, of *inventory) (artefact, error) {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid(r.of.version+" "+r.of.commit+" "+arch)
	main := described(of.components[ours], cyclonedx.ComponentTypeApplication)
	main.Properties = &[]cyclonedx.Property{
		{Name: "millrace:commit", Value: r.of.commit}, {Name: "millrace:platform", Value: "linux/" + arch},
	}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.of.time.Format(time.RFC3339), Component: &main}
	var parts []cyclonedx.Component
	var needs []cyclonedx.Dependency
	for _, name := range of.names() {
		c := of.components[name]
		if name != ours {
			parts = append(parts, described(c, cyclonedx.ComponentTypeLibrary))
		}
		refs := []string{}
		for _, other := range slices.Sorted(maps.Keys(c.needs)) {
			refs = append(refs, of.components[other].purl)
		}
		needs = append(needs, cyclonedx.Dependency{Ref: c.purl, Dependencies: &refs})
	}
	bom.Components, bom.Dependencies = &parts, &needs
	var b bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	path := filepath.Join(r.work, fmt.Sprintf("millrace-%s-linux-%s.cdx.json", r.of.version, arch))
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("write SBOM for %s: %w", arch, err)
	}
	return artefact(path), nil
}

// described is a component in the words of CycloneDX.
func described(c *component, kind cyclonedx.ComponentType) cyclonedx.Component {
	d := cyclonedx.Component{BOMRef: c.purl, Type: kind, Name: c.name, Version: c.version, PackageURL: c.purl}
	licences := cyclonedx.Licenses{}
	for _, id := range c.licences {
		licences = append(licences, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	d.Licenses = &licences
	// go.sum has the SHA-256 of the list of a module's files and their hashes.
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(c.sum, "h1:"))
	if err == nil && len(sum) == sha256.Size {
		d.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return d
}

// uuid is the same for the same name: a UUID of version 8 (RFC 9562), made of a hash.
func uuid(name string) string {
	h := sha256.Sum256([]byte(name))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
