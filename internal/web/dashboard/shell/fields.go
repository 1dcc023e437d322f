package shell

import (
	"html/template"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"millrace/internal/fault"
	"millrace/internal/web/respond"
)

// Field says at which field of a form what the service says against a path stands; without a path nothing does.
type Field struct {
	path, field string
	label       string // as the page calls the field
}

// At is a field of a form. Without a path no message of the service is about it.
func At(path, field, label string) Field { return Field{path, field, label} }

// FormErrors are what is wrong with a form: all of it at once.
type FormErrors struct {
	Bad    map[string]string // by the field that it stands beside
	Top    []string          // what belongs to no field
	Fields []Field           // in the order of the page
}

// FieldError is what is wrong with a field.
type FieldError struct{ Field, Label, Text string }

// Wrongs are all of them, in the order of the page.
func (fe FormErrors) Wrongs() (all []FieldError) {
	left := maps.Clone(fe.Bad)
	for _, f := range fe.Fields {
		if text, bad := left[f.field]; bad {
			all = append(all, FieldError{f.field, f.label, text})
			delete(left, f.field)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(left)) {
		all = append(all, FieldError{field, field, left[field]})
	}
	return all
}

// Wrong is what is wrong with a field; nil: nothing.
func (fe FormErrors) Wrong(field string) *FieldError {
	if text, bad := fe.Bad[field]; bad {
		return &FieldError{Field: field, Text: text}
	}
	return nil
}

// Mark are further attributes of the control of a field: one that is wrong is announced with what is wrong, and the
// first one has the focus.
func (fe FormErrors) Mark(field string) template.HTMLAttr {
	if fe.Bad[field] == "" {
		return ""
	}
	return ` aria-invalid="true"` + fe.described(field)
}

// MarkGroup are those of a fieldset, which is a group of controls.
func (fe FormErrors) MarkGroup(field string) template.HTMLAttr {
	if fe.Bad[field] == "" {
		return ""
	}
	return ` tabindex="-1"` + fe.described(field)
}

// described are the attributes that a wrong field and a wrong group have in common. Names of fields are constants.
func (fe FormErrors) described(field string) template.HTMLAttr {
	attrs := ` aria-describedby="` + field + `-bad"`
	if fe.Wrongs()[0].Field == field {
		attrs += " autofocus"
	}
	return template.HTMLAttr(attrs) //nolint:gosec // see above
}

// FormSummary stands at the head of a form that was refused.
type FormSummary struct {
	What   string // came of it
	Top    []string
	Wrongs []FieldError
}

// Summary is that of this form; nil: nothing is wrong with it.
func (fe FormErrors) Summary(what string) *FormSummary {
	if len(fe.Bad)+len(fe.Top) == 0 {
		return nil
	}
	return &FormSummary{what, fe.Top, fe.Wrongs()}
}

// Text is what somebody typed into a field, as text that a page can show.
func (r *Request) Text(name string) string {
	return strings.ToValidUTF8(strings.TrimSpace(r.PostFormValue(name)), "\uFFFD")
}

// Ticked reports whether a box was ticked.
func (r *Request) Ticked(name string) bool { return r.PostFormValue(name) != "" }

// Unchanged reports whether a field came back as it was shown: browsers leave line breaks out of it.
func Unchanged(typed, shown string) bool {
	return typed == strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(shown))
}

// Add says what is wrong with a field, behind what was said of it before.
func (fe *FormErrors) Add(field, what string) {
	if fe.Bad == nil {
		fe.Bad = map[string]string{}
	}
	switch is := fe.Bad[field]; {
	case is == "":
		fe.Bad[field] = what
	case !strings.Contains(is, what):
		fe.Bad[field] = is + " " + what
	}
}

// Overtaken puts beside their fields what somebody else has made of settings that are changed here too; it reports
// whether there are any. The form that says so is filled in with what was typed here, so it can be sent again.
func (fe *FormErrors) Overtaken(both url.Values) bool {
	for _, field := range slices.Sorted(maps.Keys(both)) {
		is := strings.Join(both[field], ", ")
		switch is {
		case "":
			is = "is empty now"
		default:
			is = "is “" + is + "” now"
		}
		if field == "type" { // has no message of its own
			field = "which"
		} else if fe.Bad[field] != "" {
			continue
		}
		fe.Add(field, "Changed meanwhile: it "+is+". Save again to replace that.")
	}
	return len(both) > 0
}

// Number reads a field that may be empty; what is no number is said beside it.
func (fe *FormErrors) Number(field, text, want string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		fe.Add(field, "This must be "+want+".")
		return 0, false
	}
	return n, true
}

// Time reads a field in which a time may stand, in seconds; nil: it is empty, or none, which is said beside it.
func (fe *FormErrors) Time(field, text string) *float64 {
	if text == "" {
		return nil
	}
	sec, ok := secondsOf(text)
	if !ok {
		fe.Add(field, "This must be a time, as 0:01:30.5 or as seconds.")
		return nil
	}
	return &sec
}

const maxSeconds = 1e6 // that a time has which is typed; no asset is as long

// secondsOf reads a time that is typed as h:mm:ss.s, m:ss or s.
func secondsOf(text string) (float64, bool) {
	parts := strings.Split(strings.Replace(text, ",", ".", 1), ":")
	if len(parts) > 3 {
		return 0, false
	}
	sum := 0.0
	for i, part := range parts {
		n, err := strconv.ParseFloat(part, 64)
		last := i == len(parts)-1
		switch {
		case err != nil, n > maxSeconds, strings.Trim(part, "0123456789.") != "":
			return 0, false
		case !last && n != math.Trunc(n), i > 0 && n >= 60:
			return 0, false
		}
		sum = sum*60 + n
	}
	return sum, true
}

// covers reports whether the field is the one at a path, or the one that it is within.
func (f Field) covers(path string) bool {
	rest, within := strings.CutPrefix(path, f.path)
	return f.path != "" && within && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// AddMessages puts messages of the service beside their fields.
func (fe *FormErrors) AddMessages(messages []fault.Message) {
	for _, m := range messages {
		i := slices.IndexFunc(fe.Fields, func(f Field) bool { return f.covers(m.Path) })
		if i < 0 {
			fe.Top = append(fe.Top, Capital(m.String())+".")
			continue
		}
		fe.Add(fe.Fields[i].field, "This "+strings.TrimPrefix(m.Text, ": ")+".")
	}
}

// TakeErr takes what the service says against a form, and gives the status of its page. Where nothing that was typed is
// at fault it gives err back.
func (fe *FormErrors) TakeErr(err error) (status int, _ error) {
	if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Conflict) {
		return 0, err
	}
	fe.AddMessages(fault.ByField(err))
	return respond.Form.Of(err).Code, nil
}

// AddErr adds what the service would say against the rest of a form of which something is wrong already.
func (fe *FormErrors) AddErr(err error) { _, _ = fe.TakeErr(err) }
