package dashboard

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

// call is a request to the API, as a form would have it made.
type call struct {
	method       string   // of HTTP; empty: POST
	path         string   // below the address of the service
	of           []string // IDs of what it is made in, or changes, which the libraries take apart
	body         object
	node         string // the method of @mux/mux-node; empty: it has none
	goDo, goType string // the method and the request of mux-go; empty: it has none
	once         string // the member of the response that is a secret, shown this once; empty: none
}

// verb is the method of HTTP.
func (c call) verb() string { return cmp.Or(c.method, http.MethodPost) }

// idle reports whether it would change nothing.
func (c call) idle() bool { return c.method != "" && len(c.body) == 0 }

// calls are made one after the other. There is one at least; where there are several, mux-go has a method for each.
type calls []call

func (c calls) last() call { return c[len(c)-1] }

// object is a JSON object whose members keep their order. A value is a string, a bool, a number, nil, a secret, an
// object, or a slice of strings or objects.
type object []member

type member struct {
	name  string
	value any
}

// secret stands for what no page shows: the name of a variable of the environment.
type secret string

// with adds a member, unless it is empty.
func (o object) with(name string, value any) object {
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
	case []object:
		if len(v) == 0 {
			return o
		}
	case object:
		if len(v) == 0 {
			return o
		}
	}
	return append(o, member{name, value})
}

// code is what a form would send, in other languages.
type code struct {
	Form    string // ID of the form
	Address string // where it is shown for what is filled in
	Open    bool
	Samples []sample
	None    string // why there are none; empty: there are
}

type sample struct{ Name, Text string }

// Why a form has no code.
const (
	unreadable = "Fix the invalid field to see the request."
	unchanged  = "Nothing has changed, so there is no request. Change something to see it."
)

// code writes those calls in each language that change something, for the form with this ID.
func (s *server) code(form, address string, c ...call) code {
	if c = slices.DeleteFunc(c, call.idle); len(c) == 0 {
		return code{Form: form, Address: address, None: unchanged}
	}
	return code{Form: form, Address: address, Samples: []sample{
		{"curl", calls(c).curl(s.PublicURL)},
		{"Node", calls(c).nodeJS(s.PublicURL)},
		{"Go", calls(c).golang(s.PublicURL)},
	}}
}

func (c calls) curl(base string) string {
	var b strings.Builder
	for _, one := range c {
		b.WriteString(one.curl(base))
	}
	return b.String()
}

func (c call) curl(base string) string {
	// The shell puts secrets between the quotes.
	body := notation{
		key:    func(name string) string { return quoted(name) },
		text:   func(text string) string { return strings.ReplaceAll(quoted(text), "'", `'\''`) },
		secret: func(v secret) string { return `"'"$` + string(v) + `"'"` },
	}.object(c.body, "")
	method := ""
	if c.method != "" {
		method = "-X " + c.method + " "
	}
	return "curl " + method + `-u "$MUX_TOKEN_ID:$MUX_TOKEN_SECRET" '` + base + c.path + "' \\\n" +
		"  -H 'Content-Type: application/json' \\\n  -d '" + body + "'\n"
}

// outcome is a name for what the response has.
func (c call) outcome() string {
	if c.method == "" {
		return "made"
	}
	return "changed"
}

// first are the arguments before the body.
func (c call) first() string {
	var b strings.Builder
	for _, id := range c.of {
		b.WriteString(quoted(id) + ", ")
	}
	return b.String()
}

// notation writes objects as JSON does, or JavaScript.
type notation struct {
	key, text func(string) string
	secret    func(secret) string
}

// object writes one whose lines, but for the first, begin with indent.
func (n notation) object(o object, indent string) string {
	if len(o) == 0 {
		return "{}"
	}
	if len(o) == 1 && indent != "" {
		return "{" + n.key(o[0].name) + ": " + n.value(o[0].value, indent) + "}"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for i, m := range o {
		b.WriteString(indent + "  " + n.key(m.name) + ": " + n.value(m.value, indent+"  "))
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
	case secret:
		return n.secret(v)
	case object:
		return n.object(v, indent)
	case []string:
		return "[" + joined(v, n.text) + "]"
	case []object:
		return "[" + joined(v, func(o object) string { return n.object(o, indent) }) + "]"
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
