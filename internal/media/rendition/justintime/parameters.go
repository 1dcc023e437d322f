package justintime

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// parameters remembers the tracks that encoders have given. A track follows from the encoder's arguments and from how
// the source's pictures are to be decoded: what comes out of the same camera, or was encoded by the same program, needs
// no encoder for its init segment.
type parameters struct {
	tracks map[parametersKey]frame.Config
	order  []parametersKey // oldest first
}

type parametersKey [sha256.Size]byte

// maxParameters is how many tracks are remembered, of some hundred bytes each.
const maxParameters = 1024

func newParameters() *parameters { return &parameters{tracks: map[parametersKey]frame.Config{}} }

func (p *parameters) add(k parametersKey, c frame.Config) {
	if _, ok := p.tracks[k]; ok {
		return
	}
	if len(p.order) >= maxParameters {
		delete(p.tracks, p.order[0])
		p.order = p.order[1:]
	}
	p.tracks[k] = c
	p.order = append(p.order, k)
}

// visual is the length of a VisualSampleEntry with its header, in front of its boxes: ISO 14496-12 section 12.1.3.
const visual = 86

// parametersKey tells tracks of the work apart, where a source's init segment says all; false: its pictures may say
// more.
func (w *Work) parametersKey(head []byte, msn int64) (k parametersKey, ok bool) {
	tracks, err := cmaf.NewReader(bytes.NewReader(head), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 || tracks[0].FourCC != "avc1" || len(tracks[0].SampleEntry) < visual {
		return k, false
	}
	entry := tracks[0].SampleEntry
	said := bytes.Clone(entry[8:visual])
	err = bmff.Walk(entry[visual:], func(b bmff.Box) error {
		if !b.Type.Is("btrt") { // the bit rate is the film's
			said = append(said, b.Raw...)
		}
		return nil
	})
	return sha256.Sum256(fmt.Appendf(said, "\x00%s", strings.Join(w.args(msn).Build(), "\x00"))), err == nil
}
