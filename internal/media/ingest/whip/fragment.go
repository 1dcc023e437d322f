package whip

import (
	"strings"
)

// fragment is what an SDP fragment of trickle ICE says, RFC 8840 section 9.
type fragment struct {
	ufrag, pwd string
	candidates int
}

const (
	maxFragmentLines = 512
	maxCandidates    = 256
)

// parseFragment reads a fragment. Its candidates are checked and counted, no more: this side is ICE-lite and connects
// to nobody, and an address in it could be anybody's.
func parseFragment(body string) (fragment, error) {
	var f fragment
	n := 0
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if n++; n > maxFragmentLines {
			return fragment{}, malformed("the fragment has more than %d lines", maxFragmentLines)
		}
		if len(line) < 2 || line[1] != '=' || line[0] != 'a' && line[0] != 'm' {
			return fragment{}, malformed("line %d of the fragment is neither a= nor m=", n)
		}
		if line[0] == 'm' {
			continue
		}
		key, value, _ := strings.Cut(line[2:], ":")
		// With BUNDLE there is one transport: wherever the parameters stand, they are the same.
		switch key {
		case "ice-ufrag":
			if f.ufrag != "" && f.ufrag != value {
				return fragment{}, malformed("the fragment has two ice-ufrag")
			}
			f.ufrag = value
		case "ice-pwd":
			if f.pwd != "" && f.pwd != value {
				return fragment{}, malformed("the fragment has two ice-pwd")
			}
			f.pwd = value
		case "candidate":
			if f.candidates++; f.candidates > maxCandidates {
				return fragment{}, malformed("the fragment has more than %d candidates", maxCandidates)
			}
			if !isCandidate(value) {
				return fragment{}, malformed("line %d of the fragment is not a candidate", n)
			}
		}
	}
	if f.ufrag == "" && f.pwd == "" {
		return f, nil
	}
	return f, credentials(f.ufrag, f.pwd)
}

// isCandidate checks the form of a candidate, RFC 8839 section 5.1: foundation component transport priority address
// port "typ" type ….
func isCandidate(value string) bool {
	words := strings.Fields(value)
	return len(words) >= 8 && len(value) <= 1024 && words[6] == "typ"
}
