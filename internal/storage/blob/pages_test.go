package blob_test

import (
	"os"
	"regexp"
	"testing"

	"millrace/internal/storage/blob"
)

// TestURLsOfPages: each provider's storage URL in docs/s3.md is one, with a bucket, a region and known parameters.
func TestURLsOfPages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("`(s3://[^`]+)`").FindAllSubmatch(text, -1)
	if len(all) < 7 {
		t.Fatalf("docs/s3.md has %d storage URLs", len(all))
	}
	for _, m := range all {
		o, err := blob.ParseURL(string(m[1]))
		if err != nil || o.S3.Bucket != "BUCKET" || o.S3.Region == "" {
			t.Errorf("%s: %+v, %v", m[1], o.S3, err)
		}
	}
}
