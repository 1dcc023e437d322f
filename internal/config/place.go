package config

import (
	"errors"
	"net/url"
	"strings"
)

// StorageAt is a storage that an operand names: a folder, or a bucket as in storage-url, which may also have its prefix
// as a path, s3://bucket/prefix. What it does not say of a bucket comes from AWS_* in the environment.
func (c Config) StorageAt(text string) (Storage, error) {
	if !strings.Contains(text, "://") {
		if text == "" || strings.ContainsRune(text, 0) {
			return Storage{}, errors.New("names no folder")
		}
		return Storage{Kind: Folder, Path: text, URL: Secret(text)}, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return Storage{}, errStorage
	}
	if prefix := strings.Trim(u.Path, "/"); u.Scheme == "s3" && prefix != "" {
		q := u.Query()
		if q.Has("prefix") {
			return Storage{}, errors.New("has a prefix twice, as a path and as prefix=")
		}
		q.Set("prefix", prefix+"/")
		u.Path, u.RawPath, u.RawQuery = "", "", q.Encode()
		text = u.String()
	}
	s, err := parseStorage(text)
	if err == nil && s.Kind == S3 {
		s.URL = c.AWS.complete(s.URL)
	}
	return s, err
}

// DatabaseAt reads the URL of another database than the configured one, as database-url is written.
func DatabaseAt(text string) (Database, error) {
	if text == "" {
		return Database{}, errors.New("names no database")
	}
	return parseDatabase(text)
}
