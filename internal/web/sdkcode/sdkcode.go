// Package sdkcode shows an API request as a curl command and as programs for Node and Go. It is pure: it knows the
// names of the libraries' methods and types, and nothing of what is requested.
package sdkcode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Request is one to the API, with what the libraries call it.
type Request struct {
	Method     string   // of HTTP; empty: POST
	Path       string   // below the address of the service
	IDs        []string // of what it is made in, or changes, which the libraries take apart
	Body       Object
	Node       string // the method of @mux/mux-node; empty: it has none
	Go, GoType string // the method and the request of mux-go; empty: it has none
	Once       string // the member of the response that is a secret, shown only once; empty: none
}

// verb is the method of HTTP.
func (r Request) verb() string { return cmp.Or(r.Method, http.MethodPost) }

// idle reports whether it would change nothing.
func (r Request) idle() bool { return r.Method != "" && len(r.Body) == 0 }

// requests are made one after the other. There is one at least; where there are several, mux-go has a method for each.
type requests []Request

func (r requests) last() Request { return r[len(r)-1] }

// Object is a JSON object whose members keep their order. A value is a string, a bool, a number, nil, a Secret, an
// Object, or a slice of strings or objects.
type Object []Member

// Member is one of an Object.
type Member struct {
	Name  string
	Value any
}

// Secret stands for what no page shows: the name of a variable of the environment.
type Secret string

// With adds a member, unless it is empty.
func (o Object) With(name string, value any) Object {
	switch v := value.(type) {
	case string:
		if v == "" {
			return o
		}
	case bool:
		if !v {
			return o
		}
	case []string:
		if len(v) == 0 {
			return o
		}
	case []Object:
		if len(v) == 0 {
			return o
		}
	case Object:
		if len(v) == 0 {
			return o
		}
	}
	return o.Set(name, value)
}

// Set adds a member, whatever it is.
func (o Object) Set(name string, value any) Object { return append(o, Member{name, value}) }

// Given adds a member that need not be there: v is nil where it is not.
func Given[T any](o Object, name string, v *T) Object {
	if v == nil {
		return o
	}
	return o.Set(name, *v)
}

// Sample is what a language has for it.
type Sample struct{ Name, Text string }

// capitalised is a word with a capital letter.
func capitalised(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// Samples writes those requests in each language that change something, to the service at base; nil: none does.
func Samples(base string, all ...Request) []Sample {
	c := slices.DeleteFunc(requests(all), Request.idle)
	if len(c) == 0 {
		return nil
	}
	return []Sample{{"curl", c.curl(base)}, {"Node", c.nodeJS(base)}, {"Go", c.golang(base)}}
}

func (r requests) curl(base string) string {
	var b strings.Builder
	for _, one := range r {
		b.WriteString(one.curl(base))
	}
	return b.String()
}

func (r Request) curl(base string) string {
	// The shell puts secrets between the quotes.
	body := notation{
		key:    func(name string) string { return quoted(name) },
		text:   func(text string) string { return strings.ReplaceAll(quoted(text), "'", `'\''`) },
		secret: func(v Secret) string { return `"'"$` + string(v) + `"'"` },
	}.object(r.Body, "")
	method := ""
	if r.Method != "" {
		method = "-X " + r.Method + " "
	}
	return "curl " + method + `-u "$MUX_TOKEN_ID:$MUX_TOKEN_SECRET" '` + base + r.Path + "' \\\n" +
		"  -H 'Content-Type: application/json' \\\n  -d '" + body + "'\n"
}

// outcome is a name for what the response has.
func (r Request) outcome() string {
	if r.Method == "" {
		return "made"
	}
	return "changed"
}

// first are the arguments before the body.
func (r Request) first() string {
	var b strings.Builder
	for _, id := range r.IDs {
		b.WriteString(quoted(id) + ", ")
	}
	return b.String()
}

// notation writes objects as JSON does, or JavaScript.
type notation struct {
	key, text func(string) string
	secret    func(Secret) string
}

// object writes one whose lines, but for the first, begin with indent.
func (n notation) object(o Object, indent string) string {
	if len(o) == 0 {
		return "{}"
	}
	if len(o) == 1 && indent != "" {
		return "{" + n.key(o[0].Name) + ": " + n.value(o[0].Value, indent) + "}"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for i, m := range o {
		b.WriteString(indent + "  " + n.key(m.Name) + ": " + n.value(m.Value, indent+"  "))
		if i < len(o)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	return b.String() + indent + "}"
}

func (n notation) value(value any, indent string) string {
	switch v := value.(type) {
	case string:
		return n.text(v)
	case Secret:
		return n.secret(v)
	case Object:
		return n.object(v, indent)
	case []string:
		return "[" + joined(v, n.text) + "]"
	case []Object:
		return "[" + joined(v, func(o Object) string { return n.object(o, indent) }) + "]"
	}
	return plainly(value)
}

// plainly writes a number, a bool, or null.
func plainly(value any) string {
	if value == nil {
		return "null"
	}
	if f, is := value.(float64); is {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

func joined[T any](all []T, write func(T) string) string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = write(v)
	}
	return strings.Join(out, ", ")
}

// quoted is a text as a string of JSON and JavaScript, without characters that are not seen, or turn others around.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // of a string to memory
	var out strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}
