package config

import (
	"errors"
	"time"
)

// DRM is what a DRM configuration is made of.
type DRM struct {
	Scheme       string
	EncryptAudio bool
	KeysByClass  bool
	// EncryptedOnly: nothing is given in clear.
	EncryptedOnly bool
	ClearKey      bool
	Rotation      time.Duration // 0: never
	VendorsFile   string        // empty: none
}

// on makes the function of a switch.
func on(field func(*Command) *bool) func(*Command, string) error {
	return func(c *Command, s string) error { return isSwitch(s, field(c)) }
}

//nolint:gochecknoglobals // a table
var drmOptions = []option{
	{
		name: "scheme", word: "word", def: "cbcs", help: "Encryption scheme: cbcs, which all current players support, or cenc for old ones.", commands: []string{DRMCreate},
		apply: func(c *Command, s string) error {
			if s != "cbcs" && s != "cenc" {
				return errors.New("is neither cbcs nor cenc")
			}
			c.DRM.Scheme = s
			return nil
		},
	},
	{
		name: "encrypt-audio", help: "Encrypt audio too, with its own key.", commands: []string{DRMCreate},
		apply: on(func(c *Command) *bool { return &c.DRM.EncryptAudio }),
	},
	{
		name: "keys-by-class", help: "Use separate keys for SD, HD and UHD, so that licences can differ. Default: one key for all video.", commands: []string{DRMCreate},
		apply: on(func(c *Command) *bool { return &c.DRM.KeysByClass }),
	},
	{
		name: "encrypted-only", commands: []string{DRMCreate},
		help:  "Refuse everything that would expose the media unencrypted: policies other than drm, clips with them, and masters.",
		apply: on(func(c *Command) *bool { return &c.DRM.EncryptedOnly }),
	},
	{
		name: "rotation", word: "duration", help: "Key rotation interval of live streams, such as 1h; at least 5m. Default: never.", commands: []string{DRMCreate},
		apply: func(c *Command, s string) (err error) {
			c.DRM.Rotation, err = parseDuration(s)
			return err
		},
	},
	{
		name: "clear-key", help: "Serve keys with the built-in W3C ClearKey licence server, which needs no vendor but hides the keys from nobody who may play.", commands: []string{DRMCreate},
		apply: on(func(c *Command) *bool { return &c.DRM.ClearKey }),
	},
	{
		name: "vendors-file", word: "path", help: "YAML file with the licence servers of Widevine, PlayReady and FairPlay and a key provider (format: docs/drm-vendors.md).", commands: []string{DRMCreate},
		apply: func(c *Command, s string) error { c.DRM.VendorsFile = s; return nil },
	},
	{
		name: "new-key-file", word: "path", help: "File with the new master key, which is made if it is not there. Not given: the old key's file gets the new one.", commands: []string{MasterKeyRotate},
		apply: func(c *Command, s string) error { c.NewKeyFile = s; return nil },
	},
}
