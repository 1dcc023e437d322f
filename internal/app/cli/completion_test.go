package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/internal/config"
)

// asMillrace has the test's binary be millrace for a shell.
const asMillrace = "MILLRACE_TEST_AS_MILLRACE"

func TestMain(m *testing.M) {
	if os.Getenv(asMillrace) != "" {
		os.Exit(Run(context.Background(), os.Args[1:], nil, os.Stdout, os.Stderr, Actions{}))
	}
	os.Exit(m.Run())
}

// wordsFor are the words that may stand where the last one of a line is.
func wordsFor(line string) (words []string) {
	var out strings.Builder
	printCandidates(&out, strings.Split(line, " "))
	for c := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSpace(c), "\t")
		words = append(words, word)
	}
	return words
}

// TestCandidates: what can stand where somebody types, and nothing that cannot.
func TestCandidates(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"sig":                                  "signing-key",
		"webhook re":                           "replay retry",
		"token ":                               "create list revoke sign",
		"--json do":                            "doctor",
		"--config x tok":                       "token",
		"serve --log-l":                        "--log-level",
		"serve --log-level ":                   "debug info warn error",
		"serve --log-level=d":                  "--log-level=debug",
		"serve --dashboard o":                  "on off",
		"upload --policy=s":                    "--policy=signed",
		"upload ":                              ":files",
		"serve --tls-cert ":                    ":files",
		"drm-configuration set-vendors one ":   ":files",
		"environment live-rungs ":              "on_demand always off default",
		"environment video-quality premium ":   "",
		"help webhook re":                      "replay retry",
		"doctor --j":                           "--json",
		"serve --j":                            "",
		"version --":                           "--help",
		"token create --permission video:read": "",
		"nothing ":                             "",
		"--nothing=":                           "",
	} {
		if got := strings.Join(wordsFor(typed), " "); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
	all := wordsFor("serve --")
	for _, s := range config.Settings() {
		if slices.Contains(all, "--"+s.Name) != s.Flag() {
			t.Errorf("--%s is completed: %v", s.Name, !s.Flag())
		}
	}
}

// TestCompletionInBash has a real bash complete, by the script that is printed.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err = os.Symlink(self, filepath.Join(folder, "millrace")); err != nil {
		t.Fatal(err)
	}
	o := try(t, &fakeTokens{}, "completion", "bash")
	if o.code != ExitOK {
		t.Fatal(o)
	}
	for typed, want := range map[string]string{
		"millrace tok":                             "token",
		"millrace token ":                          "create\nlist\nrevoke\nsign",
		"millrace serve --log-level ":              "debug\ninfo\nwarn\nerror",
		"millrace serve --log-level = w":           "warn", // as bash takes --log-level=w apart
		"millrace serve --log-level =":             "debug\ninfo\nwarn\nerror",
		"millrace serve --log-level = info --http": "--http-addr\n--https-addr",
	} {
		const ask = `
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _millrace; printf '%s\n' "${COMPREPLY[@]}"`
		args := append([]string{"-c", o.out + ask, "bash"}, strings.Split(typed, " ")...)
		cmd := exec.CommandContext(t.Context(), "bash", args...)
		cmd.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH"), asMillrace + "=1"}
		got, err := cmd.CombinedOutput()
		if lines := strings.TrimSpace(string(got)); err != nil || !sameLines(lines, want) {
			t.Errorf("%q: got %q, %v, want %q", typed, lines, err, want)
		}
	}
}

func sameLines(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.SplitSeq(a, "\n")), slices.Sorted(strings.SplitSeq(b, "\n")))
}
