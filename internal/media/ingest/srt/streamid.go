package srt

import (
	"errors"
	"strings"
)

// streamID is what a caller asks for: its stream key alone, or the form of the SRT Access Control guidelines,
// "#!::r=key,m=publish".
type streamID struct {
	key  string // secret
	user string // what the caller calls itself, for people
	mode string // empty: publish
}

var errStreamID = errors.New("stream id is neither a stream key nor #!::r={stream key},m=publish")

const (
	standardForm = "#!::"
	maxKey       = 128 // bytes
	maxUser      = 64
)

// parseStreamID reads a stream id. Keys of the standard form that mean nothing here are passed over.
func parseStreamID(s string) (streamID, error) {
	list, standard := strings.CutPrefix(s, standardForm)
	if !standard {
		if strings.HasPrefix(s, "#!:") { // the nested form
			return streamID{}, errStreamID
		}
		return streamID{key: s}.checked()
	}
	var id streamID
	for part := range strings.SplitSeq(list, ",") {
		k, v, found := strings.Cut(part, "=")
		if !found {
			return streamID{}, errStreamID
		}
		switch k {
		case "r":
			id.key = v
		case "u":
			id.user = v
		case "m":
			id.mode = v
		}
	}
	return id.checked()
}

func (s streamID) checked() (streamID, error) {
	if s.key == "" || len(s.key) > maxKey {
		return streamID{}, errStreamID
	}
	s.user = strings.Map(func(r rune) rune { // it goes into the log
		if r < ' ' || r == 0x7f || r == '�' {
			return -1
		}
		return r
	}, s.user)
	if len(s.user) > maxUser {
		s.user = strings.ToValidUTF8(s.user[:maxUser], "")
	}
	return s, nil
}
