package assetopt

import "millrace/internal/control/field"

// BareInputs are inputs without the credentials that their URLs may carry.
func BareInputs(inputs []Input) []Input {
	bare := make([]Input, 0, len(inputs))
	for _, in := range inputs {
		in.URL = field.BareURL(in.URL)
		bare = append(bare, in)
	}
	return bare
}

// FullInputs are bare inputs with the URLs that they have now, where these are still the same.
func FullInputs(bare, now []Input) []Input {
	full := make([]Input, 0, len(bare))
	for i, in := range bare {
		if i < len(now) && field.BareURL(now[i].URL) == in.URL {
			in.URL = now[i].URL
		}
		full = append(full, in)
	}
	return full
}
