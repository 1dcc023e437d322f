package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

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

// drmConfigurations runs a command about DRM configurations.
func drmConfigurations(ctx context.Context, c config.Command, cfg config.Config, stdout io.Writer, a Actions) (err error) {
	var vendors drm.Vendors
	file := c.DRM.VendorsFile
	if c.Name == config.DRMVendors {
		file = c.Words[1]
	}
	if file != "" {
		if vendors, err = readVendors(file); err != nil {
			return err
		}
	}
	all, closeDB, err := a.DRM(ctx, cfg, id.Environment(c.Access.Environment))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	switch c.Name {
	case config.DRMCreate:
		made, failed := all.Create(ctx, c.Label, drm.Settings{
			Scheme: drm.Scheme(c.DRM.Scheme), EncryptAudio: c.DRM.EncryptAudio, KeysByClass: c.DRM.KeysByClass, Rotation: c.DRM.Rotation,
			EncryptedOnly: c.DRM.EncryptedOnly, ClearKey: c.DRM.ClearKey, Vendors: vendors,
		})
		if failed != nil {
			return failed
		}
		_, err = fmt.Fprintln(stdout, made.ID)
	case config.DRMVendors:
		err = all.SetVendors(ctx, id.DRMConfiguration(c.Words[0]), vendors)
		return sayUnless(err, stdout, "DRM configuration %s has the vendors of the file now.", c.Words[0])
	case config.DRMDelete:
		err = all.Delete(ctx, id.DRMConfiguration(c.Words[0]))
		return sayUnless(err, stdout, "DRM configuration %s is deleted.", c.Words[0])
	default:
		err = listDRM(ctx, all, stdout)
	}
	return err
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

func listDRM(ctx context.Context, all DRMConfigurations, stdout io.Writer) error {
	found, err := all.List(ctx)
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "ID\tNAME\tSCHEME\tENCRYPTS\tKEYS\tSYSTEMS\tCREATED")
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
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Name, c.Scheme, what, keys, strings.Join(systemNames(c), ", "),
			c.CreatedAt.UTC().Format(time.RFC3339))
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print DRM configurations: %w", err)
	}
	return nil
}

func systemNames(c drm.Configuration) (names []string) {
	for _, s := range c.Systems() {
		names = append(names, s.Name())
	}
	return names
}
