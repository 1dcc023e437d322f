package shell

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// formerField of a form has the settings as they were when it was shown, as its fields would send them.
const formerField = "former"

// latencyField is the only field that can be shown and not be changed.
const latencyField = "latency_mode"

// Merge has a form change what somebody has typed, and nothing else: a field that was left as it was shown is as the
// setting is now, whatever somebody else has made of it meanwhile. It gives the fields that both have changed, with
// what the other has made of them.
func (r *Request) Merge(now url.Values) (both url.Values) {
	former, err := url.ParseQuery(r.PostFormValue(formerField))
	if err != nil || len(former) == 0 {
		return nil
	}
	names := maps.Clone(former)
	maps.Copy(names, now)
	both = url.Values{}
	for name := range names {
		sent, was, is := r.PostForm[name], former[name], now[name]
		left := equal(sent, was) || name == latencyField && len(sent) == 0 // it is not sent while it is fixed
		switch {
		case left:
			r.PostForm[name] = is
		case !equal(is, was) && !equal(sent, is):
			both[name] = is
		}
	}
	return both
}

// equal reports whether a field has the same values: those of what is shown, as browsers send them.
func equal(sent, shown []string) bool {
	return slices.EqualFunc(slices.Sorted(slices.Values(sent)), slices.Sorted(slices.Values(shown)),
		func(sent, shown string) bool {
			sent = strings.TrimSpace(strings.ReplaceAll(sent, "\r", ""))
			return sent == strings.TrimSpace(strings.ReplaceAll(shown, "\r", "")) || Unchanged(sent, shown)
		})
}
