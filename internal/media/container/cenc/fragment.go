package cenc

import (
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"

	"millrace/internal/media/container/bmff"
)

const blockSize = 16

// maxSamples bounds how many samples a movie fragment may claim.
const maxSamples = 1 << 16

// Encrypt encrypts movie fragments, whole ones: a segment or a part, less than 64 GiB. Boxes of other kinds stay as
// they are. bmff.ErrMalformed: they are none, or not of one track with its data behind it. The same data become the
// same bytes each time; data stays as it is.
func (t *Track) Encrypt(data []byte) ([]byte, error) {
	var pieces [][]byte
	var all []fragment
	size := 0 // of all pieces
	add := func(b []byte) { pieces, size = append(pieces, b), size+len(b) }
	var moof []byte
	for at := 0; at < len(data); {
		box, _, err := bmff.Next(data[at:])
		if err != nil {
			return nil, err
		}
		n := len(box.Raw)
		switch {
		case n == 0:
			return nil, bmff.Malformed("%d bytes behind the last fragment", len(data)-at)
		case box.Type.Is("moof") && moof == nil:
			moof = box.Raw
		case box.Type.Is("mdat") && moof != nil:
			f, head, failed := t.fragment(moof, box.Raw)
			if failed != nil {
				return nil, failed
			}
			add(head)
			f.mdat = size
			all = append(all, f)
			add(box.Raw)
			moof = nil
		case moof != nil, box.Type.Is("mdat"):
			return nil, bmff.Malformed("a movie fragment without its data, or data without one")
		default:
			add(box.Raw)
		}
		at += n
	}
	if moof != nil {
		return nil, bmff.Malformed("a movie fragment without its data")
	}
	out := bytes.Join(pieces, nil) // into memory that is not cleared before, which would cost as much as to encrypt
	for i := range all {
		t.encrypt(out[all[i].mdat:], &all[i])
	}
	return out, nil
}

// fragment is a movie fragment that is to be encrypted.
type fragment struct {
	mdat    int // where its mdat box is in the output
	moof    int // size of its moof box in the input: offsets of samples count from its beginning
	samples []bmff.RunSample
	counts  []int // of subsamples, for each sample
	subs    []subsample
	ivs     [][ivSize]byte // for each sample; none under cbcs
}

// fragment reads one; head is its moof box with what decrypters are told.
func (t *Track) fragment(moof, mdat []byte) (f fragment, head []byte, err error) {
	m := bmff.Moof{Body: moof[8:], MaxSamples: min(maxSamples, len(moof)+len(mdat)), Defaults: t.defaults}
	runs, err := m.Runs()
	if err != nil {
		return f, nil, err
	}
	if len(runs) != 1 || binary.BigEndian.Uint32(moof) < 8 {
		return f, nil, bmff.Malformed("a movie fragment of %d tracks", len(runs))
	}
	f = fragment{moof: len(moof), samples: runs[0].Samples, counts: make([]int, len(runs[0].Samples))}
	end := int64(8)
	for i, s := range f.samples {
		from, to := s.Offset-int64(len(moof)), s.Offset-int64(len(moof))+int64(s.Size)
		if from < end || to > int64(len(mdat)) {
			return f, nil, bmff.Malformed("sample %d lies outside of its fragment, or in front of the end of another",
				i)
		}
		end = to
		if t.units == nil {
			continue
		}
		had := len(f.subs)
		f.subs, err = t.units.divide(f.subs, mdat[from:to], t.scheme == CTR)
		if err == nil {
			f.subs, err = merged(f.subs, had, maxSubsamples(t.scheme))
		}
		if err != nil {
			return f, nil, fmt.Errorf("%w: sample %d: %w", bmff.ErrMalformed, i, err)
		}
		f.counts[i] = len(f.subs) - had
	}
	if t.scheme == CTR {
		f.ivs = t.ivs(moof, mdat, &f)
	}
	info := t.info(&f)
	head, err = withInfo(make([]byte, 0, len(moof)+info.growth()), moof, info)
	return f, head, err
}

// encrypt encrypts the samples of an mdat box in their place.
func (t *Track) encrypt(mdat []byte, f *fragment) {
	subs := f.subs
	for i, s := range f.samples {
		at := int(s.Offset) - f.moof
		sample, mine := mdat[at:at+int(s.Size)], subs[:f.counts[i]]
		if t.units == nil {
			mine = []subsample{{protected: len(sample)}}
		}
		encrypt := t.chain
		if t.scheme == CTR {
			stream := cipher.NewCTR(t.block, f.ivs[i][:])
			encrypt = func(b []byte) { stream.XORKeyStream(b, b) }
		}
		for _, x := range mine {
			encrypt(sample[x.clear : x.clear+x.protected])
			sample = sample[x.clear+x.protected:]
		}
		subs = subs[f.counts[i]:]
	}
}

// chain encrypts whole blocks by CBC, of video by the pattern; what is left over stays clear. Each stretch begins with
// the constant IV.
func (t *Track) chain(b []byte) {
	if !t.video {
		b = b[:len(b)&^(blockSize-1)]
		cipher.NewCBCEncrypter(t.block, t.key.IV[:]).CryptBlocks(b, b)
		return
	}
	le := binary.LittleEndian
	x, y := le.Uint64(t.key.IV[:]), le.Uint64(t.key.IV[8:])
	for ; len(b) >= blockSize; b = b[min(len(b), blockSize*(cryptBlocks+skipBlocks)):] {
		c := b[:blockSize:blockSize]
		le.PutUint64(c, x^le.Uint64(c))
		le.PutUint64(c[8:], y^le.Uint64(c[8:]))
		t.block.Encrypt(c, c)
		x, y = le.Uint64(c), le.Uint64(c[8:])
	}
}
