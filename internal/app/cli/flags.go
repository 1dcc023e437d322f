package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"millrace/internal/config"
	"millrace/internal/id"
)

// flags are the flags of a command as they are defined, and then what is wrong with the values that are given. They
// are no flag set: of that the linker would keep every method, because actions are called through an interface.
type flags struct {
	config.Flags // settings

	own      []*pflag.Flag
	problems []string
	creates  bool // --create was given
}

// value is the value of a flag. An error does not end the parsing, so that all that is wrong is told at once.
type value struct {
	name, word, def string
	take            func(text string) error
	problems        *[]string
}

func (v *value) String() string { return v.def }

// Type is the word for the value in help texts.
func (v *value) Type() string { return v.word }

// Set takes a value.
func (v *value) Set(text string) error {
	if err := v.take(text); err != nil {
		*v.problems = append(*v.problems, fmt.Sprintf("--%s %q %v", v.name, text, err))
	}
	return nil
}

// each defines a flag that may be repeated: a word stands for its value in the help, and the default is as it would be
// written.
func (f *flags) each(take func(text string) error, name, word, def, help string) *pflag.Flag {
	v := &value{name, word, def, take, &f.problems}
	if def != "" {
		_ = v.Set(def) // what is wrong with it would be told of every command
	}
	f.own = append(f.own, &pflag.Flag{Name: name, Usage: help, DefValue: def, Value: v})
	return f.own[len(f.own)-1]
}

// add defines a flag whose value goes into a field.
func add[T any](f *flags, field *T, parse func(string) (T, error), name, word, def, help string) {
	f.each(func(text string) (err error) {
		*field, err = parse(text)
		return err
	}, name, word, def, help)
}

// oneOf defines a flag whose value is a word of a list.
func (f *flags) oneOf(field *string, words []string, name, word, def, help string) {
	add(f, field, config.OneOf(words...), name, word, def, help)
	f.own[len(f.own)-1].Annotations = map[string][]string{config.Words: words}
}

// on defines a switch.
func (f *flags) on(field *bool, name, help string) {
	f.each(func(text string) error {
		if text != "true" && text != "false" {
			return errors.New("is a switch: write it without a value")
		}
		*field = text == "true"
		return nil
	}, name, "", "", help).NoOptDefVal = "true"
}

// mayCreate defines --create, of commands that have a meaning in an empty database.
func (f *flags) mayCreate() {
	f.on(&f.creates, "create", "Create the SQLite database if it doesn't exist yet.")
}

// asJSON defines --json.
func (f *flags) asJSON(field *bool) { f.on(field, "json", "Print JSON.") }

// label defines --name.
func (f *flags) label(field *string) {
	add(f, field, label, "name", "text", "", "What it is for; shown in lists.")
}

// types defines --type, of commands about some types of events.
func (f *flags) types(field *[]string) {
	add(f, field, list, "type", "type,…", "", "Only events of these types.")
}

// since defines --since.
func (f *flags) since(field *time.Time) {
	add(f, field, moment, "since", "time", "", "All events from this time on, such as 2026-01-02T15:04:05Z.")
}

// inEnvironment is the flag of commands that work in one environment.
type inEnvironment struct{ environment id.Environment }

func (i *inEnvironment) flags(f *flags) {
	add(f, &i.environment, anything, "environment", "id", "",
		"ID of the environment. Default: the default environment; for audit, all of them.")
}

// A parser's error completes the sentence `--name "x" …`.

func anything[T ~string](text string) (T, error) { return T(text), nil }

func list(text string) ([]string, error) { return strings.Split(text, ","), nil }

// label reads a name that is shown in lists.
func label(text string) (string, error) {
	if len(text) > 255 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return "", errors.New("is not a name: use at most 255 bytes without control characters")
	}
	return text, nil
}

// maxTitle bounds the title of an asset, in characters.
const maxTitle = 512

func title(text string) (string, error) {
	if text == "" || utf8.RuneCountInString(text) > maxTitle || !utf8.ValidString(text) {
		return "", fmt.Errorf("is not a title: use 1 to %d characters", maxTitle)
	}
	return text, nil
}

func moment(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = errors.New("is not a time such as 2026-01-02T15:04:05Z")
	}
	return at, err
}

// days reads a duration that may be in days, of at most 100 years.
func days(text string) (d time.Duration, err error) {
	const day, most = 24 * time.Hour, 36500
	if number, ok := strings.CutSuffix(text, "d"); ok {
		n, badNumber := strconv.Atoi(number)
		if badNumber != nil || n < 1 || n > most {
			return 0, errors.New("is not a number of days from 1 to 36500")
		}
		return time.Duration(n) * day, nil
	}
	if d, err = config.ParseDuration(text); err == nil && (d < time.Second || d > most*day) {
		err = errors.New("is not between 1s and 36500d")
	}
	return d, err
}
