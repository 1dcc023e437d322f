package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"millrace/internal/spelling"
)

const maxFile = 1 << 20 // bytes

// readSettings reads the YAML file: one flat mapping of setting names to scalars or lists of scalars.
func readSettings(path string, readFile func(string) ([]byte, error)) (values map[string]Value, problems []string) {
	if path == "" {
		return nil, nil
	}
	text, err := readFile(path)
	if err != nil {
		return nil, []string{fmt.Sprintf("read configuration file: %v", err)}
	}
	if len(text) > maxFile {
		return nil, []string{fmt.Sprintf("configuration file %s is larger than 1 MiB", path)}
	}
	values, problems = parseFile(text)
	for name, v := range values {
		v.Where = path + v.Where
		values[name] = v
	}
	for i, p := range problems {
		problems[i] = path + p
	}
	return values, problems
}

// parseFile returns values whose Where is ":line", and problems that start with ":line: ".
func parseFile(text []byte) (values map[string]Value, problems []string) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, []string{": is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		if len(doc.Content) == 1 && doc.Content[0].Tag == "!!null" {
			return nil, nil
		}
		return nil, []string{": must be lines of the form name: value"}
	}
	values = map[string]Value{}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		key, node := top[i], top[i+1]
		at := fmt.Sprintf(":%d", key.Line)
		if why := refuseKey(key.Value); why != "" {
			problems = append(problems, at+": "+why)
			continue
		}
		if first, twice := values[key.Value]; twice {
			problems = append(problems,
				at+": "+key.Value+" is there already, at line "+strings.TrimPrefix(first.Where, ":"))
			continue
		}
		v, ok := scalar(node)
		if !ok {
			problems = append(problems, at+": "+key.Value+" must be one value, or a list of values")
			continue
		}
		values[key.Value] = Value{Text: v, Source: FromFile, Where: at}
	}
	return values, problems
}

func refuseKey(name string) string {
	var known []string
	for _, s := range settings {
		if s.Foreign != "" {
			if s.Name == name || s.Foreign == name {
				return name + " is read from " + s.Foreign + " in the environment only"
			}
			continue
		}
		if s.Name == name {
			return ""
		}
		known = append(known, s.Name)
	}
	return fmt.Sprintf("unknown setting %q", name) + spelling.Suggest(name, known, "")
}

// scalar returns a node's text; a list becomes its items with commas between.
func scalar(n *yaml.Node) (string, bool) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "", true
	case n.Kind == yaml.ScalarNode:
		return n.Value, true
	case n.Kind == yaml.SequenceNode:
		items := make([]string, len(n.Content))
		for i, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return "", false
			}
			items[i] = item.Value
		}
		return strings.Join(items, ","), true
	}
	return "", false
}
