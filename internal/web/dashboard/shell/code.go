package shell

import "millrace/internal/web/sdkcode"

// Code is what a form would send, in other languages.
type Code struct {
	Form    string // ID of the form
	Address string // where it is shown for what is filled in
	Open    bool
	Samples []sdkcode.Sample
	None    string // why there are none; empty: there are
}

// Why a form has no code.
const (
	Unreadable = "Fix the invalid field to see the request."
	unchanged  = "Nothing has changed, so there is no request. Change something to see it."
)

// Code writes those calls in each language that change something, for the form with this ID.
func (s *Shell) Code(form, address string, c ...sdkcode.Request) Code {
	out := Code{Form: form, Address: address, Samples: sdkcode.Samples(s.PublicURL, c...)}
	if out.Samples == nil {
		out.None = unchanged
	}
	return out
}
