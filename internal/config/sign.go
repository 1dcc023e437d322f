package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signTypes are what a token can be for.
var signTypes = []string{"video", "thumbnail", "gif", "storyboard", "stats", "drm_license"} //nolint:gochecknoglobals // constants

//nolint:gochecknoglobals // a table
var signOptions = []option{
	{
		name: "key-id", word: "id", help: "ID of the signing key. Required.", commands: []string{TokenSign},
		apply: func(c *Command, s string) error { c.Sign.Key = s; return nil },
	},
	{
		name: "private-key-file", word: "path", help: "File with the signing key's private key: PEM, or base64 of it as printed by the service. Required.",
		commands: []string{TokenSign},
		apply:    func(c *Command, s string) error { c.Sign.KeyFile = s; return nil },
	},
	{
		name: "playback-id", word: "id", help: "Playback ID that the token is for. Required.", commands: []string{TokenSign},
		apply: func(c *Command, s string) error { c.Sign.Playback = s; return nil },
	},
	{
		name: "type", word: "type", def: "video", help: "What it is for: " + strings.Join(signTypes, ", ") + ".", commands: []string{TokenSign},
		apply: func(c *Command, s string) error {
			if !slices.Contains(signTypes, s) {
				return errors.New("is none of " + strings.Join(signTypes, ", "))
			}
			c.Sign.Type = s
			return nil
		},
	},
	{
		name: "expiry", word: "duration", def: "7d", help: "How long the token is valid, such as 90m, 12h or 7d.", commands: []string{TokenSign},
		apply: func(c *Command, s string) (err error) {
			c.Sign.Expiry, err = parseDays(s)
			return err
		},
	},
	{
		name: "param", word: "name=value", help: "An additional claim, such as width=640 or playback_restriction_id=…; may be repeated.", commands: []string{TokenSign},
		apply: func(c *Command, s string) error {
			name, value, ok := strings.Cut(s, "=")
			if !ok || name == "" {
				return errors.New("is not of the form name=value")
			}
			if slices.Contains([]string{"sub", "aud", "exp", "kid"}, name) {
				return errors.New("is a claim with a flag of its own")
			}
			if c.Sign.Params == nil {
				c.Sign.Params = map[string]string{}
			}
			c.Sign.Params[name] = value
			return nil
		},
	},
}

// parseDays reads a duration that may be in days, of at most 100 years.
func parseDays(s string) (d time.Duration, err error) {
	const day, most = 24 * time.Hour, 36500
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, badDays := strconv.Atoi(days)
		if badDays != nil || n < 1 || n > most {
			return 0, errors.New("is not a number of days from 1 to 36500")
		}
		return time.Duration(n) * day, nil
	}
	if d, err = parseDuration(s); err == nil && (d < time.Second || d > most*day) {
		err = errors.New("is not between 1s and 36500d")
	}
	return d, err
}
