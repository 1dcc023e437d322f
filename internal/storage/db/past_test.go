package db

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWritesPastTheAuditLog: what writes without engine.begin is in no audit log. Only what nobody has asked for may do
// so.
func TestWritesPastTheAuditLog(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"claims.go": "which node encodes", "deaths.go": "jobs that killed a process",
		"deliveries.go": "which node delivers", "jobs.go": "which nodes live",
		"owners.go": "which numbers are reserved, and which owners were there",
		"sqlite.go": "how transactions begin",
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		writes := regexp.MustCompile(`\bwrite\.(New(Insert|Update|Delete|Raw|Merge|Truncate)|Exec|Begin|RunInTx)`).
			Match(text)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if why, ok := allowed[file]; writes != ok {
			t.Errorf("%s writes past transactions: %t, allowed: %q", file, writes, why)
		}
	}
}
