package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"millrace/internal/config"
	"millrace/internal/control/drm"
	"millrace/internal/id"
)

// DRMConfigurations are those of an environment.
type DRMConfigurations interface {
	Create(ctx context.Context, name string, s drm.Settings) (drm.Configuration, error)
	List(ctx context.Context) ([]drm.Configuration, error)
	SetVendors(ctx context.Context, c id.DRMConfiguration, v drm.Vendors) error
	Delete(ctx context.Context, c id.DRMConfiguration) error
}

func drmCommands() []command {
	return []command{
		of("drm-configuration create", "create a DRM configuration for playback IDs with the policy drm",
			"Creates a DRM configuration and prints its ID, which playback IDs with the policy drm refer to as "+
				"drm_configuration_id. Its encryption can't be changed later.", &drmCreate{}),
		of("drm-configuration list", "list the DRM configurations",
			"Lists the DRM configurations, newest first, without their secrets.", &drmConfiguration{do: drmList}),
		of("drm-configuration set-vendors DRM-CONFIGURATION-ID FILE",
			"replace the licence servers and the key provider of a DRM configuration",
			"Replaces the licence servers and the key provider of a DRM configuration with those in a YAML file "+
				"(format: docs/drm-vendors.md). Takes effect within seconds. Existing keys are kept.",
			simply(drmSetVendors)),
		of("drm-configuration delete DRM-CONFIGURATION-ID", "delete a DRM configuration",
			"Deletes a DRM configuration that no playback ID refers to any more, and its content keys.",
			&drmConfiguration{do: func(ctx context.Context, all DRMConfigurations, r *request) error {
				err := all.Delete(ctx, id.DRMConfiguration(r.words[0]))
				return r.done(err, "DRM configuration %s is deleted.", r.words[0])
			}}),
	}
}

// drmConfiguration is a command about the DRM configurations of an environment.
type drmConfiguration struct {
	inEnvironment

	do func(ctx context.Context, all DRMConfigurations, r *request) error
}

func (d *drmConfiguration) run(ctx context.Context, r *request) error {
	all, closeDB, err := r.DRM(ctx, r.cfg, d.environment)
	return closing(closeDB, err, func() error { return d.do(ctx, all, r) })
}

// drmCreate makes a DRM configuration.
type drmCreate struct {
	inEnvironment

	name, scheme, vendorsFile string
	settings                  drm.Settings
}

func (d *drmCreate) flags(f *flags) {
	f.label(&d.name)
	f.mayCreate()
	d.inEnvironment.flags(f)
	f.oneOf(&d.scheme, []string{string(drm.CBCS), string(drm.CENC)}, "scheme", "word", string(drm.CBCS),
		"Encryption scheme: cbcs, which all current players support, or cenc for old ones.")
	f.on(&d.settings.EncryptAudio, "encrypt-audio", "Encrypt audio too, with its own key.")
	f.on(&d.settings.KeysByClass, "keys-by-class",
		"Use separate keys for SD, HD and UHD, so that licences can differ. Default: one key for all video.")
	f.on(&d.settings.EncryptedOnly, "encrypted-only",
		"Refuse everything that would expose the media unencrypted: policies other than drm, clips with them, and "+
			"masters.")
	add(f, &d.settings.Rotation, config.ParseDuration, "rotation", "duration", "",
		"Key rotation interval of live streams, such as 1h; at least 5m. Default: never.")
	f.on(&d.settings.ClearKey, "clear-key",
		"Serve keys with the built-in W3C ClearKey licence server, which needs no vendor but hides the keys from "+
			"nobody who may play.")
	add(f, &d.vendorsFile, anything, "vendors-file", "path", "",
		"YAML file with the licence servers of Widevine, PlayReady and FairPlay and a key provider (format: "+
			"docs/drm-vendors.md).")
}

func (d *drmCreate) run(ctx context.Context, r *request) (err error) {
	d.settings.Scheme = drm.Scheme(d.scheme)
	if d.vendorsFile != "" {
		if d.settings.Vendors, err = readVendors(d.vendorsFile); err != nil {
			return err
		}
	}
	create := func(ctx context.Context, all DRMConfigurations, r *request) error {
		made, err := all.Create(ctx, d.name, d.settings)
		return r.done(err, "%s", made.ID)
	}
	return (&drmConfiguration{d.inEnvironment, create}).run(ctx, r)
}

func drmSetVendors(ctx context.Context, r *request) error {
	vendors, err := readVendors(r.words[1])
	if err != nil {
		return err
	}
	set := func(ctx context.Context, all DRMConfigurations, r *request) error {
		err := all.SetVendors(ctx, id.DRMConfiguration(r.words[0]), vendors)
		return r.done(err, "DRM configuration %s has the vendors of the file now.", r.words[0])
	}
	return (&drmConfiguration{do: set}).run(ctx, r)
}

// vendorsFile is the form of the file.
type vendorsFile struct {
	drm.Vendors `yaml:",inline"`
	FairPlay    *struct {
		drm.LicenceServer `yaml:",inline"`
		CertificateFile   string `yaml:"certificate_file"`
	} `yaml:"fairplay"`
}

// readVendors reads the file of vendors. The certificate is a file beside it.
func readVendors(path string) (drm.Vendors, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return drm.Vendors{}, fmt.Errorf("read vendors: %w", err)
	}
	var f vendorsFile
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err = dec.Decode(&f); err != nil {
		return drm.Vendors{}, fmt.Errorf("read vendors %s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	v := f.Vendors
	if f.FairPlay != nil {
		v.FairPlay = &f.FairPlay.LicenceServer
		if at := f.FairPlay.CertificateFile; at != "" {
			if !filepath.IsAbs(at) {
				at = filepath.Join(filepath.Dir(path), at)
			}
			if v.FairPlay.Certificate, err = os.ReadFile(at); err != nil { //nolint:gosec // the operator names the file
				return drm.Vendors{}, fmt.Errorf("read FairPlay certificate: %w", err)
			}
		}
	}
	return v, nil
}

func drmList(ctx context.Context, all DRMConfigurations, r *request) error {
	found, err := all.List(ctx)
	if err != nil {
		return err
	}
	tab := newTable(r.out)
	tab.row("ID", "NAME", "SCHEME", "ENCRYPTS", "KEYS", "SYSTEMS", "CREATED")
	for _, c := range found {
		what, keys := "video", "made here"
		if c.EncryptAudio {
			what = "video, audio"
		}
		if c.EncryptedOnly {
			what += ", always"
		}
		if c.KeyProvider != nil {
			keys = "key provider"
		}
		if c.KeysByClass {
			keys += ", by class"
		}
		if c.Rotation > 0 {
			keys += ", every " + c.Rotation.String()
		}
		tab.row(c.ID, c.Name, c.Scheme, what, keys, strings.Join(systemNames(c), ", "), timeOrNone(c.CreatedAt))
	}
	return tab.end()
}

func systemNames(c drm.Configuration) (names []string) {
	for _, s := range c.Systems() {
		names = append(names, s.Name())
	}
	return names
}
