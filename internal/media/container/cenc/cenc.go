// Package cenc encrypts CMAF by Common Encryption (ISO/IEC 23001-7), with the schemes cbcs and cenc: it adds the boxes
// that signal encryption to init segments, and encrypts the samples of movie fragments and adds what is needed to
// decrypt each of them. Bytes in, bytes out: it must never know files, sockets, time of day or a logger, and it starts
// no goroutines.
package cenc

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"strings"

	"millrace/internal/media/container/bmff"
)

// Scheme is a protection scheme, ISO/IEC 23001-7 section 4.2.
type Scheme string

// The schemes.
const (
	CBCS Scheme = "cbcs" // AES-CBC; of video one block in ten
	CTR  Scheme = "cenc" // AES-CTR
)

// Key is a content key.
type Key struct {
	ID    [16]byte // KID
	Value [16]byte // AES-128
	IV    [16]byte // the constant IV of cbcs; the scheme cenc has one for each sample, which follows from its fragment
}

// ErrUnsupported means that there is no standard for encrypting a codec, or none that is written here.
var ErrUnsupported = errors.New("the codec can't be encrypted")

// The pattern of video under cbcs, section 9.6: so many blocks of 16 bytes are encrypted, then so many are left clear.
const cryptBlocks, skipBlocks = 1, 9

// Track encrypts what belongs to one init segment. It never changes: all methods may be called at the same time.
type Track struct {
	init     []byte // clear
	entry    bmff.SampleEntry
	video    bool
	defaults map[uint32]bmff.Defaults
	scheme   Scheme
	key      Key
	block    cipher.Block
	ivKey    []byte // under the scheme cenc
	units    *units // how samples are divided; nil: they are encrypted as a whole
	grouped  bool   // fragments say which key they have
}

// NewTrack reads a clear init segment. ErrUnsupported: its codec can't be encrypted. bmff.ErrMalformed: it is no init
// segment of one track.
func NewTrack(init []byte, s Scheme, k Key) (*Track, error) {
	m, err := Describe(init)
	if err != nil {
		return nil, err
	}
	t := &Track{
		init:     init,
		entry:    m.entry,
		video:    m.Video,
		scheme:   s,
		key:      k,
		defaults: bmff.ParseDefaults(bmff.Find(init, "moov", "mvex")),
	}
	if s != CBCS && s != CTR {
		return nil, fmt.Errorf("unknown protection scheme %q", s)
	}
	if t.block, err = aes.NewCipher(k.Value[:]); err != nil {
		return nil, err
	}
	if s == CTR {
		if t.ivKey, err = ivKey(k); err != nil {
			return nil, err
		}
	}
	if m.Video {
		t.units, err = unitsOf(m.entry)
	}
	return t, err
}

// InGroups is a track whose fragments say which key they have (sample groups seig, section 6): for init segments whose
// key changes.
func (t *Track) InGroups() *Track {
	out := *t
	out.grouped = true
	return &out
}

// Media is what an init segment is of.
type Media struct {
	Video         bool
	Width, Height int // pixels, video only

	entry bmff.SampleEntry
}

// Codec is the type of the sample entry.
func (m Media) Codec() string { return m.entry.Type.String() }

// Supported reports whether a codec, by its RFC 6381 name, can be encrypted.
func Supported(codec string) bool {
	name, _, _ := strings.Cut(codec, ".")
	switch name {
	case "avc1", "avc3", "hvc1", "hev1", "mp4a", "opus", "Opus", "fLaC", "flac", "ac-3", "ec-3", "alac":
		return true
	}
	return false
}

// Describe reads an init segment of one track. bmff.ErrMalformed: it is none.
func Describe(init []byte) (Media, error) {
	trak := bmff.Find(init, "moov", "trak")
	if trak == nil {
		return Media{}, bmff.Malformed("an init segment has no track")
	}
	t, err := bmff.ParseTrack(trak)
	if err != nil {
		return Media{}, err
	}
	if len(t.Entries) != 1 {
		return Media{}, bmff.Malformed("an init segment has %d sample entries", len(t.Entries))
	}
	m := Media{entry: t.Entries[0]}
	switch e := m.entry.Raw; {
	case t.Handler.Is("soun") && len(e) >= soundEntry:
	case t.Handler.Is("vide") && len(e) >= visualEntry:
		m.Video = true
		r := bmff.NewReader(e[32:])
		m.Width, m.Height = int(r.U16()), int(r.U16())
	default:
		return m, bmff.Malformed("a track of %s has a sample entry of %d bytes", t.Handler, len(e))
	}
	return m, nil
}

// How long sample entries are in front of their boxes, with their headers, ISO 14496-12 sections 12.1.3 and 12.2.3.
const visualEntry, soundEntry = 8 + 78, 8 + 28
