package cpix

import (
	"errors"
	"fmt"
	"strings"
)

// checkKeyLine refuses attributes of a key line that would make players take it for something else. Without KEYFORMAT
// it says identity (RFC 8216 section 4.3.2.4), that the key itself is at the URI: players then ask for it there, and
// stand still.
func checkKeyLine(list, scheme string) error {
	attributes, ok := parseAttributes(list)
	if !ok {
		return errors.New("HLSSignalingData is no list of attributes")
	}
	if format := attributes["KEYFORMAT"]; format == `""` || format == `"identity"` || !strings.HasPrefix(format, `"`) {
		return errors.New("HLSSignalingData names no DRM system (KEYFORMAT)")
	}
	if want := methodOf(scheme); attributes["METHOD"] != want {
		return fmt.Errorf("HLSSignalingData is for another encryption scheme: METHOD is not %s", want)
	}
	return nil
}

// methodOf is how HLS calls an encryption scheme.
func methodOf(scheme string) string {
	if scheme == "cenc" {
		return "SAMPLE-AES-CTR"
	}
	return "SAMPLE-AES"
}

// parseAttributes reads an attribute list, RFC 8216 section 4.2. Texts keep their quotes; no attribute may be there
// twice.
func parseAttributes(list string) (map[string]string, bool) {
	out := map[string]string{}
	for {
		name, rest, ok := strings.Cut(list, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, `",`) {
			return nil, false
		}
		end := strings.IndexByte(rest, ',')
		if strings.HasPrefix(rest, `"`) {
			if end = strings.IndexByte(rest[1:], '"'); end < 0 {
				return nil, false
			}
			end += 2
			if end == len(rest) {
				end = -1
			} else if rest[end] != ',' {
				return nil, false
			}
		}
		value := rest
		if end >= 0 {
			value, list = rest[:end], rest[end+1:]
		}
		if _, twice := out[name]; twice {
			return nil, false
		}
		if out[name] = strings.TrimSpace(value); end < 0 {
			return out, true
		}
	}
}
