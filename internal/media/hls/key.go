package hls

import (
	"bytes"
	"encoding/hex"
	"time"
)

// Key is how players get a key in one key system: EXT-X-KEY, section 4.4.4.4, and EXT-X-SESSION-KEY, section 4.4.6.5.
type Key struct {
	Method   string // SAMPLE-AES, SAMPLE-AES-CTR
	URI      string
	Format   string   // KEYFORMAT
	Versions string   // KEYFORMATVERSIONS
	ID       [16]byte // KEYID, which some key systems have; zero: none
}

// The tags of keys, with their colon.
const (
	KeyTag        = "#EXT-X-KEY:"
	SessionKeyTag = "#EXT-X-SESSION-KEY:"
)

// Append appends the line.
func (k *Key) Append(b []byte, tag string) []byte {
	b = append(append(b, tag...), "METHOD="...)
	b = append(b, k.Method...)
	b = appendQuoted(b, "URI", k.URI)
	if k.ID != [16]byte{} {
		b = append(b, ",KEYID=0x"...)
		b = hex.AppendEncode(b, k.ID[:])
	}
	b = appendQuoted(b, "KEYFORMAT", k.Format)
	b = appendQuoted(b, "KEYFORMATVERSIONS", k.Versions)
	return append(b, '\n')
}

// WithKeys is a media playlist whose media is encrypted. lines are the EXT-X-KEY lines for what is decoded with an
// initialization segment, whose URI is given, and begins at a time (zero: the playlist does not say); they stand where
// they change. Empty lines: it is clear.
func WithKeys(playlist []byte, lines func(uri string, start time.Time) ([]byte, error)) ([]byte, error) {
	head, all := blocks(playlist)
	out := make([]byte, 0, len(playlist)+2048)
	out = append(out, head...)
	var uri string
	var start time.Time
	var had []byte
	for _, b := range all {
		if b.mapped != nil {
			uri = mapURI(b.mapped)
		}
		if !b.start.IsZero() {
			start = b.start
		}
		if uri == "" {
			out = append(out, b.text...)
			continue
		}
		now, err := lines(uri, start)
		if err != nil {
			return nil, err
		}
		switch {
		case bytes.Equal(now, had):
		case len(now) == 0:
			out = append(out, KeyTag+"METHOD=NONE\n"...)
		default:
			out = append(out, now...)
		}
		had = now
		out = append(out, b.text...)
	}
	return out, nil
}

// mapURI is the URI of an EXT-X-MAP line that was written here.
func mapURI(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`URI="`))
	uri, _, _ := bytes.Cut(rest, []byte{'"'})
	return string(uri)
}
