package cli

import (
	"context"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"millrace/internal/config"
)

// scripts have a shell ask for candidates.
//
//go:embed completion
var scripts embed.FS

func completionCommands() []command {
	return []command{
		of("completion bash|zsh|fish", "print a script that completes command lines in a shell",
			"Prints a script that has a shell complete commands, flags and their values. bash: source <(millrace "+
				"completion bash); zsh: the same with zsh; fish: millrace completion fish | source.",
			simply(printScript), alone),
	}
}

func printScript(_ context.Context, r *request) error {
	text, err := scripts.ReadFile("completion/millrace." + r.words[0])
	if err != nil {
		return fmt.Errorf("read script: %w", err)
	}
	_, err = r.out.Write(text)
	return err
}

// completeCommand is what the scripts call, with the words behind the program's name, the last of which is being typed.
const completeCommand = "__complete"

// filesHere has a shell complete names of files.
const filesHere = ":files"

// printCandidates prints the words that may stand where the last one is, each with what it means behind a tab.
func printCandidates(out io.Writer, words []string) {
	if len(words) == 0 {
		return
	}
	typed := words[len(words)-1]
	for _, c := range candidates(words[:len(words)-1], typed) {
		if c == filesHere || strings.HasPrefix(c, typed) {
			fmt.Fprintln(out, c)
		}
	}
}

// candidates are the words that may stand behind others.
func candidates(before []string, typed string) (found []string) {
	all, every := commands(), everyFlag()
	every.BoolP(helpCommand, "h", false, "Explain the command.")
	if name, _, joined := strings.Cut(typed, "="); joined && strings.HasPrefix(typed, "--") {
		return values(every.Lookup(name[2:]), name+"=")
	}
	if n := len(before); n > 0 && strings.HasPrefix(before[n-1], "--") {
		if f := every.Lookup(before[n-1][2:]); f != nil && f.NoOptDefVal == "" {
			return values(f, "")
		}
	}
	given, _ := split(every, before)
	cmd, rest, isWhole := find(all, given)
	switch {
	case strings.HasPrefix(typed, "-"):
		flags := every
		if isWhole {
			own, settings := cmd.newFlags()
			flags = setOf(append(slices.Clip(own.own), settings...))
			flags.AddFlag(every.Lookup(helpCommand))
		}
		flags.VisitAll(func(f *pflag.Flag) { found = append(found, "--"+f.Name+"\t"+f.Usage) })
	case !isWhole:
		return next(all, given)
	case cmd.name == helpCommand:
		return next(all, rest)
	case len(cmd.operands) > 0:
		operand := cmd.operands[min(len(rest), len(cmd.operands)-1)]
		if strings.HasPrefix(operand, "FILE") {
			return []string{filesHere}
		}
		if len(rest) == 0 && strings.Contains(operand, "|") {
			return strings.Split(operand, "|")
		}
	}
	return found
}

// next are the words with which the name of a command can go on, and what they stand for.
func next(all []command, given []string) (found []string) {
	if len(given) > 1 {
		return nil
	}
	for _, c := range all {
		words := strings.Fields(c.name)
		if len(words) <= len(given) || len(given) == 1 && words[0] != given[0] {
			continue
		}
		one := words[len(given)] + "\t" + c.summary
		if len(words) > len(given)+1 {
			one = words[0] + "\tsee millrace " + words[0] + " --help"
		}
		if !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	return found
}

// values are what the value of a flag can be.
func values(f *pflag.Flag, prefix string) (found []string) {
	if f == nil {
		return nil
	}
	for _, word := range f.Annotations[config.Words] {
		found = append(found, prefix+word)
	}
	if f.Value.Type() == string(config.KindPath) {
		return []string{filesHere}
	}
	return found
}
