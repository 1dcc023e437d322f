package db_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// additiveFrom is the first migration that nodes of the version before have to be able to live with: while a fleet is
// upgraded they go on, on the schema of the newer ones.
const additiveFrom = 42

// notAdditive are migrations that take something away, each with the reason why no version that may still run needs it.
var notAdditive = map[string]string{}

var (
	comment     = regexp.MustCompile(`--[^\n]*`)
	newTable    = regexp.MustCompile(`(?is)^CREATE TABLE (?:IF NOT EXISTS )?(\w+) \(`)
	newColumn   = regexp.MustCompile(`(?is)^ALTER TABLE (\w+) ADD COLUMN (?:IF NOT EXISTS )?\w+ (.*)$`)
	newIndex    = regexp.MustCompile(`(?is)^CREATE (UNIQUE )?INDEX (?:IF NOT EXISTS )?\w+ ON (\w+)\b`)
	newRow      = regexp.MustCompile(`(?is)^INSERT INTO (\w+)\b`)
	required    = regexp.MustCompile(`(?i)\b(?:NOT NULL|PRIMARY KEY)\b`)
	byDefault   = regexp.MustCompile(`(?i)\bDEFAULT\b`)
	bound       = regexp.MustCompile(`(?i)\b(?:UNIQUE|CHECK|REFERENCES|PRIMARY KEY)\b`)
	reference   = regexp.MustCompile(`(?i)\bREFERENCES (\w+)[^,]*`)
	letsGo      = regexp.MustCompile(`(?i)\bON DELETE (?:CASCADE|SET NULL)\b`)
	migrationUp = regexp.MustCompile(`(?s)-- \+goose Up\n(.*?)(?:-- \+goose Down|$)`)
)

// inTheWay lists the statements of a migration that may be in the way of a program that knows only the schema before.
func inTheWay(migration string) (statements []string) {
	up := migrationUp.FindStringSubmatch(migration)
	if up == nil {
		return []string{"it has no part up"}
	}
	own := map[string]bool{} // tables that the program before does not know
	for s := range strings.SplitSeq(comment.ReplaceAllString(up[1], ""), ";") {
		s = strings.Join(strings.Fields(s), " ")
		fine := s == ""
		if m := newTable.FindStringSubmatch(s); m != nil {
			own[m[1]], fine = true, true
			// Whoever deletes what it refers to does not know the table.
			for _, r := range reference.FindAllStringSubmatch(s, -1) {
				fine = fine && (own[r[1]] || letsGo.MatchString(r[0]))
			}
		} else if m := newColumn.FindStringSubmatch(s); m != nil {
			fine = own[m[1]] ||
				!bound.MatchString(m[2]) && (!required.MatchString(m[2]) || byDefault.MatchString(m[2]))
		} else if m := newIndex.FindStringSubmatch(s); m != nil {
			fine = own[m[2]] || m[1] == ""
		} else if m := newRow.FindStringSubmatch(s); m != nil {
			fine = own[m[1]]
		}
		if !fine {
			statements = append(statements, s)
		}
	}
	return statements
}

// TestMigrationsAreAdditive: a program of the version before can go on with the schema of this one.
func TestMigrationsAreAdditive(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	must(t, err)
	seen := 0
	for _, file := range files {
		name := filepath.Base(file)
		var number int
		number, err = strconv.Atoi(name[:5])
		must(t, err)
		if number < additiveFrom {
			continue
		}
		seen++
		var text []byte
		text, err = os.ReadFile(file)
		must(t, err)
		found := inTheWay(string(text))
		if notAdditive[name] != "" {
			if len(found) == 0 {
				t.Errorf("%s is additive: take it out of notAdditive", name)
			}
			continue
		}
		for _, s := range found {
			t.Errorf("%s: nodes of the version before may need what this takes, or write what it refuses:\n%s", name, s)
		}
	}
	if seen == 0 {
		t.Error("no migration was looked at")
	}
}

// TestInTheWay has what a migration may do, and what it may not.
func TestInTheWay(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]int{
		"ALTER TABLE assets ADD COLUMN a text":                                          0,
		"ALTER TABLE assets ADD COLUMN a text NOT NULL DEFAULT '' -- ; DROP TABLE":      0,
		"ALTER TABLE assets\n\tADD COLUMN a boolean DEFAULT FALSE":                      0,
		"CREATE TABLE n (a text PRIMARY KEY, b text NOT NULL UNIQUE)":                   0,
		"CREATE TABLE n (a text REFERENCES assets (id) ON DELETE CASCADE)":              0,
		"CREATE INDEX i ON assets (a)":                                                  0,
		"CREATE TABLE n (a text); CREATE UNIQUE INDEX i ON n (a); INSERT INTO n SELECT": 0,
		"CREATE TABLE n (a text); ALTER TABLE n ADD COLUMN b text NOT NULL":             0,

		"ALTER TABLE assets ADD COLUMN a text NOT NULL":                 1,
		"ALTER TABLE assets ADD COLUMN a text UNIQUE":                   1,
		"ALTER TABLE assets ADD COLUMN a text DEFAULT 'b' CHECK (a)":    1,
		"ALTER TABLE assets ADD COLUMN a text REFERENCES streams":       1,
		"ALTER TABLE assets DROP COLUMN a":                              1,
		"ALTER TABLE assets RENAME COLUMN a TO b":                       1,
		"ALTER TABLE assets RENAME TO films":                            1,
		"ALTER TABLE assets ALTER COLUMN a SET NOT NULL":                1,
		"ALTER TABLE assets ALTER COLUMN a TYPE bigint":                 1,
		"drop table assets; DROP INDEX i":                               2,
		"CREATE UNIQUE INDEX i ON assets (a)":                           1,
		"CREATE TABLE n (a text REFERENCES assets (id), b text)":        1,
		"INSERT INTO assets VALUES (1)":                                 1,
		"UPDATE assets SET a = 1; DELETE FROM assets":                   2,
		"CREATE TRIGGER t AFTER INSERT ON assets BEGIN SELECT 1; END":   2,
		"ALTER TABLE assets ADD COLUMN a text; DROP TABLE live_streams": 1,
	} {
		up := "-- x\n\n-- +goose Up\n" + sql + ";\n\n-- +goose Down\nDROP TABLE assets;\n"
		if got := inTheWay(up); len(got) != want {
			t.Errorf("%s: %q, want %d", sql, got, want)
		}
	}
	if got := inTheWay("DROP TABLE assets;"); !slices.Equal(got, []string{"it has no part up"}) {
		t.Errorf("without a part up: %q", got)
	}
}
