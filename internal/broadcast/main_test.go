package broadcast_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/leaktest"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

// template is an empty database with its schema, which each world gets a copy of.
var template []byte

func TestMain(m *testing.M) {
	var err error
	if template, err = schema(); err != nil {
		panic(err)
	}
	leaktest.Main(m)
}

func schema() ([]byte, error) {
	dir, err := os.MkdirTemp("", "broadcast")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "template.db")
	d, err := db.Open(context.Background(), db.Options{URL: path, MasterKey: masterkey.Of(masterkey.Key{})}) //nolint:forbidigo // there is no test yet to take one from
	if err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
