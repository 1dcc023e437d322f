package db_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millrace/internal/storage/db"
)

// additiveFrom is the first migration that programs which know less have to be able to live with, unless it says that
// they can't. From compatibilityFrom on it says so itself, in a line of its own:
//
//	-- +since same                 it is additive
//	-- +since same, as REASON      it isn't quite, and it does no harm to programs that know less
//	-- +since 47                   programs that know less than schema 47 can't run on its result
const (
	additiveFrom      = 42
	compatibilityFrom = 45
)

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

var (
	sinceSame   = regexp.MustCompile(`(?m)^-- \+since same(?:, as (\S.*))?$`)
	sinceRaised = regexp.MustCompile(`(?m)^-- \+since (\d+)$`)
	sinceMarks  = regexp.MustCompile(`(?m)^-- \+since\b.*$`)
)

// undeclared says what is wrong with what a migration says about programs that know less; empty: nothing is.
func undeclared(number int, migration string) string {
	found, reason := inTheWay(migration), sinceSame.FindStringSubmatch(migration)
	switch all := sinceMarks.FindAllString(migration, -1); {
	case number > compatibilityFrom && len(all) != 1:
		return "it has to say in one line whether programs that know less can run on its result: -- +since same, or " +
			"-- +since and the oldest schema whose programs can"
	case strings.Contains(migration, "schema_compatibility") && sinceRaised.FindString(migration) == "" &&
		number != compatibilityFrom:
		return "only one that says -- +since and a number changes schema_compatibility"
	case reason != nil && reason[1] != "" && len(found) == 0:
		return "it is additive, and needs no reason"
	}
	if m := sinceRaised.FindStringSubmatch(migration); m != nil {
		since, err := strconv.Atoi(m[1])
		set := fmt.Sprintf("\nUPDATE schema_compatibility SET since = %d WHERE since < %d;\n", since, since)
		if err != nil || since > number || since <= compatibilityFrom ||
			!strings.Contains(migrationUp.FindString(migration), set) {
			return fmt.Sprintf("it has to have the statement %q, with a number from %d to its own", set,
				compatibilityFrom+1)
		}
		return ""
	}
	if reason == nil || reason[1] == "" {
		for _, s := range found {
			return "programs that know less may need what this takes, or write what it refuses: " + s
		}
	}
	return ""
}

// TestMigrationsSaySince: each migration says whether programs that know less can run on its result, and those that say
// so take nothing from them.
func TestMigrationsSaySince(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	must(t, err)
	seen, newest := 0, 0
	for _, file := range files {
		name := filepath.Base(file)
		var number int
		number, err = strconv.Atoi(name[:5])
		must(t, err)
		newest = max(newest, number)
		if number < additiveFrom {
			continue
		}
		seen++
		var text []byte
		text, err = os.ReadFile(file)
		must(t, err)
		if problem := undeclared(number, string(text)); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
	if seen == 0 {
		t.Error("no migration was looked at")
	}
	if all, err := db.SchemaVersion(); err != nil || all != int64(newest) {
		t.Errorf("the newest migration is %d, %v, and that of the files %d: one in Go says nothing", all, err, newest)
	}
}

// TestUndeclared has what migrations may say.
func TestUndeclared(t *testing.T) {
	t.Parallel()
	const (
		add  = "ALTER TABLE assets ADD COLUMN a text;"
		drop = "ALTER TABLE assets DROP COLUMN a;"
		set  = "\nUPDATE schema_compatibility SET since = 50 WHERE since < 50;\n"
	)
	for name, tt := range map[string]struct {
		mark, up string
		fine     bool
	}{
		"additive":               {"-- +since same", add, true},
		"says nothing":           {"-- since same", add, false},
		"says two things":        {"-- +since same\n-- +since 50", add + set, false},
		"drops":                  {"-- +since same", drop, false},
		"drops with a reason":    {"-- +since same, as nobody reads it", drop, true},
		"a reason for nothing":   {"-- +since same, as nobody reads it", add, false},
		"raises":                 {"-- +since 50", drop + set, true},
		"does not raise":         {"-- +since 50", drop, false},
		"raises to another":      {"-- +since 49", drop + set, false},
		"raises when it is back": {"-- +since 50", drop + "\n-- +goose Down" + set, false},
		"raises secretly":        {"-- +since same, as it is odd", drop + set, false},
		"not a number":           {"-- +since now", drop + set, false},
	} {
		text := "-- x\n" + tt.mark + "\n\n-- +goose Up\n" + tt.up + "\n-- +goose Down\n"
		if got := undeclared(51, text); (got == "") != tt.fine {
			t.Errorf("%s: %q", name, got)
		}
	}
	if undeclared(49, "-- +since 50\n-- +goose Up\n"+drop+set) == "" {
		t.Error("it admits none but later programs")
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
