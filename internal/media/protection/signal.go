package protection

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"unicode/utf16"

	"millrace/internal/media/container/cenc"
	"millrace/internal/media/hls"
)

// System is a DRM system whose players are told how to get keys.
type System struct {
	ID [16]byte // as in the box pssh
	// Signals are what a key provider has said of single keys. Without one, the usual is said.
	Signals []Signal
}

// Signal is what players are told of one key in one system; what is empty is not told.
type Signal struct {
	KeyID   [16]byte
	Header  []byte // pssh box
	Media   string // line EXT-X-KEY
	Session string // line EXT-X-SESSION-KEY
}

// The systems that more than one line is known about, by their IDs at dashif.org/identifiers.
//
//nolint:gochecknoglobals // constants
var (
	// W3C Common PSSH.
	clearKey  = [16]byte{0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d, 0x02, 0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b}
	widevine  = [16]byte{0xed, 0xef, 0x8b, 0xa9, 0x79, 0xd6, 0x4a, 0xce, 0xa3, 0xc8, 0x27, 0xdc, 0xd5, 0x1d, 0x21, 0xed}
	playReady = [16]byte{0x9a, 0x04, 0xf0, 0x79, 0x98, 0x40, 0x42, 0x86, 0xab, 0x92, 0xe6, 0x5b, 0xe0, 0x88, 0x5f, 0x95}
	fairPlay  = [16]byte{0x94, 0xce, 0x86, 0xfb, 0x07, 0xff, 0x4f, 0x43, 0xad, 0xb8, 0x93, 0xd2, 0xfa, 0x96, 0x8c, 0xa2}
)

// headers are the pssh boxes of an init segment. The W3C's is always there: browsers take key IDs from no other for
// ClearKey, and pass the rest over.
func (v View) headers(k cenc.Key) [][]byte {
	all := [][]byte{cenc.Header(clearKey, [][16]byte{k.ID}, nil)}
	for _, s := range v.Content.Systems {
		if i := slices.IndexFunc(s.Signals, func(x Signal) bool { return x.KeyID == k.ID }); i >= 0 {
			if len(s.Signals[i].Header) > 0 {
				all = append(all, s.Signals[i].Header)
			}
			continue
		}
		switch s.ID {
		case widevine:
			all = append(all, cenc.PlainHeader(widevine, widevineData(v.Content.Scheme, k.ID)))
		case playReady:
			all = append(all, cenc.PlainHeader(playReady, playReadyObject(v.Content.Scheme, k.ID)))
		}
	}
	return all
}

// appendKeys appends the lines of one key, one for each system. There is never one of KEYFORMAT identity: hls.js takes
// that first, and stands still.
func (v View) appendKeys(b []byte, tag string, k cenc.Key) []byte {
	for _, s := range v.Content.Systems {
		if i := slices.IndexFunc(s.Signals, func(x Signal) bool { return x.KeyID == k.ID }); i >= 0 {
			line := s.Signals[i].Media
			if tag == hls.SessionKeyTag {
				line = s.Signals[i].Session
			}
			if line != "" {
				b = append(append(b, line...), '\n')
			}
			continue
		}
		for _, line := range v.usual(s.ID, k) {
			b = line.Append(b, tag)
		}
	}
	return b
}

// usual is what players of a system are told of a key that no provider has said anything about.
func (v View) usual(system [16]byte, k cenc.Key) []hls.Key {
	base := hls.Key{Method: "SAMPLE-AES", Versions: "1"}
	if v.Content.Scheme == cenc.CTR {
		base.Method = "SAMPLE-AES-CTR"
	}
	data := func(kind string, b ...[]byte) string {
		return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(slices.Concat(b...))
	}
	line := func(format, uri string) hls.Key {
		out := base
		out.Format, out.URI = format, uri
		return out
	}
	common, wide := cenc.Header(clearKey, [][16]byte{k.ID}, nil),
		cenc.PlainHeader(widevine, widevineData(v.Content.Scheme, k.ID))
	forWidevine := func(headers ...[]byte) hls.Key {
		out := line("urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed", data("text/plain", headers...))
		out.ID = k.ID
		return out
	}
	switch system {
	case clearKey:
		// Shaka knows no KEYFORMAT for ClearKey; it is told to use ClearKey where a playlist says Widevine, and finds
		// the W3C's header there.
		all := []hls.Key{line("org.w3.clearkey", data("text/plain", k.ID[:]))}
		if !slices.ContainsFunc(v.Content.Systems, func(s System) bool { return s.ID == widevine }) {
			all = append(all, forWidevine(common, wide))
		}
		return all
	case widevine:
		if slices.ContainsFunc(v.Content.Systems, func(s System) bool { return s.ID == clearKey }) {
			return []hls.Key{forWidevine(common, wide)}
		}
		return []hls.Key{forWidevine(wide)}
	case playReady:
		return []hls.Key{
			line("com.microsoft.playready", data("text/plain;charset=UTF-16", playReadyObject(v.Content.Scheme, k.ID))),
		}
	case fairPlay:
		if v.Content.Scheme != cenc.CBCS { // FairPlay knows no other
			return nil
		}
		return []hls.Key{line("com.apple.streamingkeydelivery", "skd://"+hex.EncodeToString(k.ID[:]))}
	}
	return nil
}

// widevineData is a WidevinePsshData message of Protocol Buffers: key_ids (2) and protection_scheme (9), the scheme's
// four characters.
func widevineData(s cenc.Scheme, id [16]byte) []byte {
	b := append([]byte{2<<3 | 2, 16}, id[:]...)
	return binary.AppendUvarint(append(b, 9<<3), uint64(binary.BigEndian.Uint32([]byte(s))))
}

// playReadyObject is a PlayReady Object with one record, a header of version 4.3. Key IDs are GUIDs there: their first
// three fields are little-endian.
func playReadyObject(s cenc.Scheme, id [16]byte) []byte {
	algorithm := "AESCBC"
	if s == cenc.CTR {
		algorithm = "AESCTR"
	}
	guid := id
	slices.Reverse(guid[:4])
	slices.Reverse(guid[4:6])
	slices.Reverse(guid[6:8])
	text := `<WRMHEADER xmlns="http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader" version="4.3.0.0"><DATA><PROTECTINFO><KIDS><KID ALGID="` +
		algorithm + `" VALUE="` + base64.StdEncoding.EncodeToString(guid[:]) +
		`"></KID></KIDS></PROTECTINFO></DATA></WRMHEADER>`
	le := binary.LittleEndian
	var header []byte
	for _, u := range utf16.Encode([]rune(text)) {
		header = le.AppendUint16(header, u)
	}
	out := le.AppendUint32(nil, uint32(len(header)+10))
	out = le.AppendUint16(out, 1) // one record,
	out = le.AppendUint16(out, 1) // a header
	return append(le.AppendUint16(out, uint16(len(header))), header...)
}
