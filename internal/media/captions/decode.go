package captions

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// decode turns the bytes of a file into valid UTF-8 without byte order mark or NUL. The encoding is read from the byte
// order mark, else guessed: UTF-16 by where its zero bytes stand, UTF-8 by being valid, Windows-1252 (a superset of
// Latin-1) else.
func decode(data []byte) (string, error) {
	enc := guess(data)
	if enc == nil {
		if zeros := bytes.Count(data, []byte{0}); zeros > max(8, len(data)/100) {
			return "", noCue("it is binary data, not text")
		}
	} else {
		decoded, err := enc.NewDecoder().Bytes(data)
		if err != nil {
			return "", noCue("its text can't be decoded")
		}
		data = decoded
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	text = strings.TrimPrefix(text, "\uFEFF")
	return strings.ReplaceAll(text, "\x00", "\uFFFD"), nil
}

// guess returns nil for UTF-8.
func guess(data []byte) encoding.Encoding {
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case zerosAt(data, 1):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case zerosAt(data, 0):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case mostlyUTF8(data):
		return nil
	}
	return charmap.Windows1252
}

// zerosAt reports whether zero bytes stand at odd (1) or even (0) places only, and often: every timing line of a UTF-16
// file is ASCII, whatever its language.
func zerosAt(data []byte, parity int) bool {
	data = data[:min(len(data), 8<<10)]
	var zeros [2]int
	for i, c := range data {
		if c == 0 {
			zeros[i&1]++
		}
	}
	return zeros[parity]*10 > len(data)/2 && zeros[1-parity]*20 < zeros[parity]
}

// mostlyUTF8 takes a file with a few damaged characters for UTF-8 still: one of another encoding has hardly any valid
// sequence of several bytes.
func mostlyUTF8(data []byte) bool {
	if utf8.Valid(data) {
		return true
	}
	valid, invalid := 0, 0
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			invalid++
		case size > 1:
			valid++
		}
		data = data[size:]
	}
	return valid > 4*invalid
}

// stripControls removes control characters except tab and line feed.
func stripControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r >= 0x7F && r < 0xA0 {
			return -1
		}
		return r
	}, s)
}
